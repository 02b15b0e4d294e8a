"""Which changes of a session to `.git/config` stay. Pure.

A session changes a copy. Of its changes the host takes over those that name branches, remotes and submodules and that
make no program run: everything else could be a command (`core.fsmonitor`, `alias.*`, `remote.*.uploadpack`, a filter).
A setting that is refused stays as it is on the host and is reported.

Where a session could write the host's file, nobody can tell who changed it. There a setting that could run a program,
or lead elsewhere, gets its old value again (`taken_back`), and everything else stays.

- A URL must be one of the network, or a path that the session cannot write: a push runs the hooks of a local
  repository.
- No URL of a remote is removed. git takes the name of an unknown remote for a path, and such a folder may be in the
  project. For the same reason a branch follows only a remote that has a URL.
- Where the host changed the same setting meanwhile, the host's value stays.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.policy.git_config import parse, values, with_values, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.policy.git_config import Values

    IsOutside = Callable[[str], bool]

MAX_CHANGES = 1000
MAX_VALUE = 4096
SCHEMES = ("https", "http", "ssh", "git", "git+ssh", "ssh+git")
BOOLEANS = ("true", "false", "yes", "no", "on", "off", "1", "0")
HARMLESS = (
    *("user.name", "user.email", "pull.rebase", "push.default", "core.autocrlf", "core.filemode", "index.sparse"),
    *("core.bare", "core.logallrefupdates", "core.ignorecase", "core.symlinks", "core.precomposeunicode"),
    *("core.sparsecheckout", "core.sparsecheckoutcone", "extensions.worktreeconfig", "core.repositoryformatversion"),
)
HARMLESS_IF_NEW = (  # what git writes into a repository that it makes, besides
    *("extensions.objectformat", "extensions.refstorage", "submodule.active", "core.eol", "core.safecrlf", "gc.auto"),
    *(
        "extensions.relativeworktrees",
        "extensions.preciousobjects",
        "commit.gpgsign",
        "tag.gpgsign",
        "init.defaultbranch",
        "fetch.prune",
        "pull.ff",
    ),
)
NOT_IN_NAMES = frozenset('~^:?*[\\"')


@frozen
class Merged:
    """`text`: the host's file with what it takes over; None if nothing is. `refused`: names of settings that the
    session changed for itself only. `moved`: URLs of remotes that led elsewhere before, as `name value`."""

    text: str | None
    refused: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()


def is_harmless(name: str) -> bool:
    """Whether a setting of this name makes no program run, whatever its value is."""
    section, _, rest = name.partition(".")
    if name in HARMLESS:
        return True
    kind = f"{section}.{rest.rpartition('.')[2]}"
    return kind in _RULES and kind not in ("branch.remote", "submodule.url")  # a path, and a push runs the hooks there


def merge(base: str, mine: str, theirs: str, is_outside: IsOutside) -> Merged:
    """*base* is the file as the session got it, *mine* as the session left it, *theirs* as the host has it now.
    *is_outside* tells whether the session could not write a path."""
    old, new, host = values(parse(base)), values(parse(mine)), values(parse(theirs))
    wanted = [each for each in {**old, **new} if old.get(each) != new.get(each) != host.get(each)]
    expected: Values = dict(host)
    text, refused, moved = theirs, [], []
    for each in sorted(wanted, key=lambda each: not (each[0].startswith("remote.") and each[1] == "url")):
        value = new.get(each, [])
        plain = [item for item in value if item is not None]
        is_fine = len(plain) == len(value) and host.get(each) == old.get(each) and len(wanted) <= MAX_CHANGES
        if not is_fine or not _is_allowed(each, plain, expected, is_outside):
            refused.append(_name(each))
            continue
        if each in host and each[1] == "url" and each[0].startswith("remote."):
            moved.append(f"{_name(each)} {' '.join(plain)}")
        text = with_values(text, *each, plain)
        expected.pop(each, None)
        if plain:
            expected[each] = list(plain)
    if values(parse(text)) != expected:
        raise ValueError("the merged file would mean something else")
    return Merged(text if text != theirs else None, tuple(refused), tuple(moved))


def taken_back(known: str, found: str, is_outside: IsOutside) -> Merged:
    """The host's file *found* with the values of *known* for what could run a program. `refused` are their names. A
    setting that is gone runs nothing, except a URL: git takes the name of an unknown remote for a path, which the
    session may have made."""
    if "\0" in found:
        raise ValueError("a zero byte, at which git and this may differ")
    merged = merge(known, found, known, is_outside)
    old, new, refused = values(parse(known)), values(parse(found)), set(merged.refused)
    taken = {
        each: None
        for each in {**old, **new}
        if _name(each) in refused
        and not is_harmless(_name(each))
        and (each in new or (each[0].startswith("remote.") and each[1] == "url"))
    }
    text = without(found, taken)
    expected: Values = {each: value for each, value in new.items() if each not in taken}
    for each in taken:
        if each in old:
            text = with_values(text, *each, [item or "" for item in old[each]])
            expected[each] = old[each]
    if values(parse(text)) != expected:
        raise ValueError("the file would mean something else")
    return Merged(text if text != found else None, tuple(map(_name, taken)), merged.moved)


def reduced(text: str, is_outside: IsOutside, is_worktree: Callable[[str], bool]) -> tuple[str, tuple[str, ...]]:
    """The configuration of a repository that the session made, without what the host does not obey, and the names of
    that. *is_worktree* tells whether a path is the folder of its files: git would write files anywhere else."""
    if "\0" in text:
        raise ValueError("a zero byte, at which git and this may differ")
    lines = parse(text)
    found = values(lines)
    kept: Values = {}
    for each in sorted(found, key=lambda each: each[1] != "url"):
        plain = [value for value in found[each] if value is not None]
        is_fine = len(plain) == len(found[each]) and _is_allowed_if_new(each, plain, kept, is_outside)
        if is_fine or _name(each) in HARMLESS or (_name(each) == "core.worktree" and all(map(is_worktree, plain))):
            kept[each] = found[each]
    if len(kept) == len(found):
        return text, ()
    text = without(text, found.keys() - kept.keys())
    if values(parse(text)) != kept:
        raise ValueError("the reduced file would mean something else")
    return text, tuple(_name(each) for each in found if each not in kept)


def _is_allowed_if_new(each: tuple[str, str], plain: list[str], known: Values, is_outside: IsOutside) -> bool:
    section, _, name = each[0].partition(".")
    rule = _RULES_IF_NEW.get(f"{section}.{each[1]}")
    if _name(each) == "extensions.partialclone":
        return all((f"remote.{value}", "url") in known for value in plain)
    if rule is not None and _is_name(name):
        return all(map(rule, plain))
    return _name(each) in HARMLESS_IF_NEW or _is_allowed(each, plain, known, is_outside)


def _name(each: tuple[str, str]) -> str:
    return f"{each[0]}.{each[1]}"


def _is_allowed(each: tuple[str, str], plain: list[str], known: Values, is_outside: IsOutside) -> bool:
    section, dot, name = each[0].partition(".")
    kind = f"{section}.{each[1]}"
    if not dot or not _is_name(name) or any(len(value) > MAX_VALUE or "\0" in value for value in plain):
        return False
    if not plain:  # removed
        return section in ("branch", "submodule") and kind in _RULES
    if kind in ("remote.url", "submodule.url"):
        return all(is_safe_url(value, is_outside) for value in plain)
    if kind == "remote.fetch":
        return (each[0], "url") in known and all(map(_is_refspec, plain))
    if kind == "branch.remote":
        return all(value == "." or (f"remote.{value}", "url") in known for value in plain)
    return kind in _RULES and all(map(_RULES[kind], plain))


def _is_name(name: str) -> bool:
    """The name of a branch, a remote or a submodule that is nothing else for any program."""
    if not name or name[0] in "-/" or ".." in name or not name.isprintable():
        return False
    return NOT_IN_NAMES.isdisjoint(name)


def is_safe_url(url: str, is_outside: IsOutside) -> bool:
    """Whether git reaches *url* without a program of the session's choice."""
    if not url or url[0] == "-" or not url.isprintable() or " " in url:
        return False
    scheme, separator, rest = url.partition("://")
    if separator:
        if scheme == "file":
            return rest.startswith("/") and is_outside(rest)
        host = rest.partition("/")[0].rpartition("@")[2]
        return scheme in SCHEMES and bool(host) and host[0] != "-" and rest[0] != "-"
    host, colon, path = url.partition(":")
    if colon and "/" not in host:  # as scp writes it; `x::y` would be a helper program
        return bool(host) and bool(path) and path[0] not in ":-" and host.rpartition("@")[2][:1] not in ("-", "")
    return url.startswith("/") and is_outside(url)


def _is_refspec(text: str) -> bool:
    source, colon, target = text.removeprefix("+").partition(":")
    fine = source == "HEAD" or source.startswith("refs/")
    return fine and colon == ":" and target.startswith(("refs/remotes/", "refs/tags/")) and " " not in text


def _is_reference(text: str) -> bool:
    return text.startswith("refs/") and _is_name(text) and " " not in text


_RULES: dict[str, Callable[[str], bool]] = {
    "branch.remote": _is_name,
    "branch.merge": _is_reference,
    "branch.description": lambda text: True,
    "submodule.url": _is_name,
    "remote.fetch": _is_refspec,
    "submodule.active": lambda text: text.lower() in BOOLEANS,
}
_RULES_IF_NEW: dict[str, Callable[[str], bool]] = {
    "remote.fetch": lambda text: text.removeprefix("+").startswith(("refs/", "HEAD:")) and " " not in text,
    "remote.promisor": lambda text: text.lower() in BOOLEANS,
    "remote.mirror": lambda text: text.lower() in BOOLEANS,
    "remote.partialclonefilter": lambda text: text.startswith(("blob:", "tree:")) and " " not in text,
    "remote.tagopt": lambda text: text in ("--tags", "--no-tags"),
    "branch.rebase": lambda text: text.lower() in BOOLEANS,
}
