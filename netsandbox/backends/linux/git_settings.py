"""The files that the user's own git configuration names: more configuration, ignored names, attributes, and the
template of commit messages, without which `git commit` fails.

A session sees them as they are, so one that may hold a secret is left out: by its place, its name or its content.
Configurations are often split so that one of them holds the tokens.
"""

from __future__ import annotations

import os

from netsandbox.policy import git_config
from netsandbox.policy.file_denials import is_secret, not_advised
from netsandbox.policy.redaction import names_credential
from netsandbox.runtime.host_file import read_host_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES = (("core", "excludesfile"), ("core", "attributesfile"), ("commit", "template"))
SIGNING_KEY = ("user", "signingkey")  # for ssh a file; with the public key an agent signs
MAX_FILES = 64
MAX_KEY = 16 << 10
KEY = b"PRIVATE KEY-----"
PUBLIC_KEY = rb"(ssh|ecdsa|sk-ssh|sk-ecdsa)-[\w@.-]+ [A-Za-z0-9+/=]+( [^\n]*)?\n?"
ENDINGS = ("auth", "key", "pass", "pwd")
HEADER = "extraheader"  # mostly `Authorization: …`
# Names with such a word in them that hold no credential: programs, and the number of a public key.
PLAIN = ("credential.helper", "user.signingkey", "credential.usehttppath", "credential.interactive")


def named_files(configurations: Iterable[str], home: str) -> list[str]:
    """The paths, as they are written, of plain files that *configurations* name, and those that these include."""
    found: dict[str, None] = {}
    waiting = list(configurations)
    for file in waiting:
        for name, is_included in _named(file, home):
            is_shown = _is_public_key(name) or _is_harmless(name, home, is_included=is_included)
            if name not in found and len(found) < MAX_FILES and is_shown:
                found[name] = None
                if is_included:
                    waiting.append(name)
    return list(found)


def _named(file: str, home: str) -> list[tuple[str, bool]]:
    """Each path in a configuration, and whether it is one of a configuration."""
    found = []
    try:
        lines = git_config.parse(read_host_file(file, git_config.MAX_CONFIG).decode("utf-8"))
    except (OSError, ValueError):  # git says what is wrong with it
        return []
    for line in lines:
        section = line.prefix.partition(".")[0]
        is_included = line.key == "path" and section in ("include", "includeif")
        is_key = (line.prefix, line.key) == SIGNING_KEY and str(line.value).endswith(".pub")
        if line.value and (is_included or is_key or (line.prefix, line.key) in NAMES):
            path = f"{home}/{line.value[2:]}" if line.value.startswith("~/") else line.value
            if is_included:
                path = os.path.join(os.path.dirname(file), path)
            if path.startswith("/") and "\0" not in path:
                found.append((os.path.normpath(path), is_included))
    return found


def _is_public_key(path: str) -> bool:
    """One line of a public key by a name that says so, also in ~/.ssh."""
    real = os.path.realpath(path)
    if not (path.endswith(".pub") and real.endswith(".pub") and os.path.isfile(real)):
        return False
    try:
        import re  # few sign

        return re.fullmatch(PUBLIC_KEY, read_host_file(real, MAX_KEY)) is not None
    except (OSError, ValueError):
        return False


def _is_harmless(path: str, home: str, *, is_included: bool) -> bool:
    real = os.path.realpath(path)
    if any(is_secret(each, home) or not_advised(each, home) for each in (path, real)):
        return False
    if any(names_credential(os.path.basename(each)) for each in (path, real)) or not os.path.isfile(real):
        return False
    try:
        data = read_host_file(real, git_config.MAX_CONFIG + 1)
        lines = git_config.parse(data.decode("utf-8")) if is_included else []
    except (OSError, ValueError):  # what is no configuration may be anything
        return False
    return len(data) <= git_config.MAX_CONFIG and KEY not in data and not any(map(_holds_credential, lines))


def _holds_credential(line: git_config.Line) -> bool:
    section = line.prefix.partition(".")[0]
    is_named = names_credential(line.key) or line.key.endswith(ENDINGS)  # the parser made one word of smtpPass
    is_named = is_named and f"{section}.{line.key}" not in PLAIN
    return is_named or line.key == HEADER or _has_login(f"{line.prefix} {line.value}")


def _has_login(text: str) -> bool:
    """Whether a URL in *text* has a name and a password. Every launch comes here, so without the module `re`."""
    for rest in text.split("://")[1:]:
        authority = f"{rest} ".split()[0].partition("/")[0] if rest.strip() and not rest[0].isspace() else ""
        if -1 < authority.find(":") < authority.rfind("@"):
            return True
    return False
