"""What a session did to its copy of `.git/config` reaches the host only where it can make no program run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.git_config import parse, quoted, values
from netsandbox.policy.git_merge import is_harmless, is_safe_url, merge, reduced, taken_back

BASE = """\
[core]
\tbare = false
[remote "origin"]
\turl = https://example.com/a.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
"""
TAKEN = (
    '[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x\n',
    '[branch "x"]\n\tremote = .\n\tmerge = refs/heads/main\n',
    '[branch "x"]\n\tdescription = "two\\nlines"\n',
    '[remote "up"]\n\turl = git@example.com:up.git\n\tfetch = +refs/heads/*:refs/remotes/up/*\n',
    '[remote "up"]\n\tfetch = +refs/heads/*:refs/remotes/up/*\n\turl = ssh://git@example.com/up.git\n',
    '[submodule "lib/a"]\n\tactive = true\n\turl = https://example.com/lib.git\n',
    '[remote "local"]\n\turl = /srv/outside.git\n\tfetch = +refs/heads/*:refs/remotes/local/*\n',
)
REFUSED = (
    ("[core]\n\tfsmonitor = ./evil\n", "core.fsmonitor"),
    ("[core]\n\tsshCommand = ./evil\n", "core.sshcommand"),
    ("[core]\n\thooksPath = evil\n", "core.hookspath"),
    ('[alias]\n\tst = "!evil"\n', "alias.st"),
    ("[include]\n\tpath = ../evil\n", "include.path"),
    ('[includeIf "gitdir:/"]\n\tpath = ../evil\n', "includeif.gitdir:/.path"),
    ('[filter "x"]\n\tclean = evil\n', "filter.x.clean"),
    ('[diff "x"]\n\ttextconv = evil\n', "diff.x.textconv"),
    ('[merge "x"]\n\tdriver = evil\n', "merge.x.driver"),
    ("[extensions]\n\tworktreeConfig = true\n", "extensions.worktreeconfig"),
    ('[remote "origin"]\n\tuploadpack = evil\n', "remote.origin.uploadpack"),
    ('[remote "origin"]\n\treceivepack = evil\n', "remote.origin.receivepack"),
    ('[remote "origin"]\n\tvcs = evil\n', "remote.origin.vcs"),
    ('[remote "origin"]\n\tproxy = evil\n', "remote.origin.proxy"),
    ('[remote "origin"]\n\tpushurl = ext::evil\n', "remote.origin.pushurl"),
    ('[remote "x"]\n\turl = ext::sh -c evil\n', "remote.x.url"),
    ('[remote "x"]\n\turl = ./evil\n', "remote.x.url"),
    ('[remote "x"]\n\turl = /project/evil\n', "remote.x.url"),
    ('[remote "x"]\n\turl\n', "remote.x.url"),
    ('[remote "x"]\n\tfetch = +refs/heads/*:refs/remotes/x/*\n', "remote.x.fetch"),
    ('[remote "origin"]\n\tfetch = +refs/heads/*:refs/heads/*\n', "remote.origin.fetch"),
    ('[remote "-x"]\n\turl = https://example.com/\n', "remote.-x.url"),
    ('[branch "x"]\n\tremote = ext::evil\n', "branch.x.remote"),
    ('[branch "x"]\n\tremote = evil\n', "branch.x.remote"),
    ('[branch "x"]\n\tmerge = --upload-pack=evil\n', "branch.x.merge"),
    ('[branch "x"]\n\trebase = true\n', "branch.x.rebase"),
    ('[submodule "x"]\n\tupdate = "!evil"\n', "submodule.x.update"),
    ('[submodule "../x"]\n\turl = https://example.com/\n', "submodule.../x.url"),
    ('[submodule "x"]\n\tactive = maybe\n', "submodule.x.active"),
    ('[url "ext::evil"]\n\tinsteadOf = https://example.com/\n', "url.ext::evil.insteadof"),
)


def is_outside(path: str) -> bool:
    return not path.startswith("/project")


@pytest.mark.parametrize("added", TAKEN)
def test_names_of_branches_remotes_and_submodules_are_taken_over(added: str) -> None:
    merged = merge(BASE, BASE + added, BASE, is_outside)
    assert merged.refused == ()
    assert merged.text is not None
    assert values(parse(merged.text)) == values(parse(BASE + added))


@pytest.mark.parametrize(("added", "name"), REFUSED)
def test_what_could_run_a_program_is_refused_and_named(added: str, name: str) -> None:
    merged = merge(BASE, BASE + added, BASE, is_outside)
    assert merged.refused == (name,)
    assert merged.text is None


def test_a_section_is_taken_over_by_key() -> None:
    mine = BASE + '[branch "x"]\n\tremote = origin\n\tpushRemote = evil\n'
    merged = merge(BASE, mine, BASE, is_outside)
    assert merged.refused == ("branch.x.pushremote",)
    assert merged.text == BASE + '[branch "x"]\n\tremote = origin\n'


def test_removed_settings_of_branches_are_removed_and_those_of_remotes_stay() -> None:
    """git takes the name of a remote without a URL for a path, and that may be in the project."""
    merged = merge(BASE, "[core]\n\tbare = false\n", BASE, is_outside)
    assert set(merged.refused) == {"remote.origin.url", "remote.origin.fetch"}
    assert merged.text == BASE.partition("[branch")[0]


def test_the_host_keeps_what_it_changed_meanwhile() -> None:
    mine = BASE.replace("refs/heads/main", "refs/heads/mine") + '[branch "x"]\n\tremote = origin\n'
    theirs = BASE.replace("refs/heads/main", "refs/heads/theirs") + "[user]\n\tname = n\n"
    merged = merge(BASE, mine, theirs, is_outside)
    assert merged.refused == ("branch.main.merge",)
    assert merged.text == theirs + '[branch "x"]\n\tremote = origin\n'


def test_a_url_that_leads_elsewhere_is_told() -> None:
    merged = merge(BASE, BASE.replace("example.com", "other.example"), BASE, is_outside)
    assert merged.moved == ("remote.origin.url https://other.example/a.git",)


def test_no_change_is_nothing_to_write() -> None:
    assert merge(BASE, BASE + "\n# comment\n", BASE, is_outside).text is None
    assert is_harmless("branch.x.y.merge")
    assert not is_harmless("core.pager")
    assert not is_harmless("branch.x.y.remote"), "it may be a path"


@pytest.mark.parametrize(
    "url",
    [
        *("https://example.com/a.git", "http://example.com/", "ssh://git@example.com:22/a", "git://example.com/a"),
        *("git@example.com:a/b.git", "example.com:a", "/srv/a.git", "file:///srv/a.git", "https://user@example.com/"),
    ],
)
def test_urls_of_the_network_and_paths_outside_are_safe(url: str) -> None:
    assert is_safe_url(url, is_outside)


@pytest.mark.parametrize(
    "url",
    [
        *("", "-u", "ext::sh", "fd::7", "a::b", "ssh://-oProxyCommand=x/", "ssh://-o@host/", "-oX:a", "ssh:///a"),
        *("ssh://user@-oX/a", "user@-oX:a", "host:-a", "host:", ":a", "../a", "a", "./a", "/project/a", "file://h/a"),
        *("file:///project/a", "https://a b/", "https://a\nb/", "transport://a/", "HTTPS://a/", "a/b:c", "x:/\x1b"),
    ],
)
def test_other_urls_are_not(url: str) -> None:
    assert not is_safe_url(url, is_outside)


names = st.sampled_from(["a", "b c", "../d", 'e"f', "g\\h", "i.j", "-k", "l]", "m\t"])
sections = st.sampled_from(["core", "alias", "branch", "remote", "submodule", "include", "filter"])
keys = st.sampled_from(["url", "fetch", "remote", "merge", "active", "path", "description", "update", "x"])
texts = st.one_of(
    st.sampled_from(["origin", "https://example.com/", "refs/heads/x", "true", "ext::x", "\n[core]\nx = y", '"', "\\"]),
    st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\r"), max_size=10),
)


@st.composite
def config(draw: st.DrawFn) -> str:
    text = BASE
    for section, name, key, value in draw(st.lists(st.tuples(sections, names, keys, texts), max_size=6)):
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        text += f'[{section} "{escaped}"]\n\t{key} = {quoted(value)}\n'
    return text


@given(mine=config(), theirs=config())
def test_whatever_the_session_wrote_only_allowed_settings_of_the_host_change(mine: str, theirs: str) -> None:
    merged = merge(BASE, mine, theirs, is_outside)
    after = values(parse(merged.text if merged.text is not None else theirs))
    before, wanted = values(parse(theirs)), values(parse(mine))
    for each in {**before, **after}:
        if before.get(each) != after.get(each):
            assert is_harmless(".".join(each)) or each[1] in ("url", "remote")
            assert each[0].startswith(("branch.", "remote.", "submodule."))
            assert after.get(each) == wanted.get(each)


# What a program of the host may have set meanwhile.
HOSTS = '[user]\n\tname = n\n[core]\n\tautocrlf = input\n[branch "y"]\n\tremote = origin\n'


@pytest.mark.parametrize(("text", "name"), [each for each in REFUSED if not is_harmless(each[1])])
def test_what_could_run_a_program_gets_its_old_value_and_the_rest_stays(text: str, name: str) -> None:
    result = taken_back(BASE, BASE + HOSTS + text, is_outside)
    assert name in result.refused
    assert result.text is not None
    assert "evil" not in str(values(parse(result.text)).values())
    assert values(parse(result.text)) == values(parse(BASE + HOSTS))


def test_an_old_value_comes_back() -> None:
    known = BASE + "[core]\n\thooksPath = mine\n\tpager\n"
    found = known.replace("mine", "evil").replace("\tpager", "\tpager = evil")
    with pytest.raises(ValueError, match="something else"):  # a setting without a value cannot be written again
        taken_back(known, found, is_outside)
    found = known.replace("mine", "evil")
    assert taken_back(known, found, is_outside).text is not None
    assert values(parse(taken_back(known, found, is_outside).text or "")) == values(parse(known))


def test_the_url_of_a_remote_is_not_taken_away() -> None:
    """git takes the name of an unknown remote for a path, and runs the hooks that are there."""
    result = taken_back(BASE, "[core]\n\tbare = false\n", is_outside)
    assert result.refused == ("remote.origin.url",)
    assert "url = https://example.com/a.git" in (result.text or "")
    moved = taken_back(BASE, BASE.replace("example.com", "other.example"), is_outside)
    assert (moved.text, moved.moved) == (None, ("remote.origin.url https://other.example/a.git",))


@pytest.mark.parametrize("found", ["[core\n", "[a]\n\tb = \0\n"])
def test_a_file_with_errors_is_not_understood(found: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        taken_back(BASE, found, is_outside)


@given(found=config())
def test_whatever_was_written_only_harmless_settings_stay(found: str) -> None:
    result = taken_back(BASE, found, is_outside)
    after, old, new = (values(parse(text)) for text in (result.text or found, BASE, found))
    for each in after:
        if after[each] != old.get(each):
            assert after[each] == new[each]
            assert is_harmless(".".join(each)) or each[1] in ("url", "remote")
    again = taken_back(BASE, result.text or found, is_outside)
    assert (again.text, again.refused) == (None, ())


def of_new(text: str) -> tuple[str, tuple[str, ...]]:
    return reduced(text, lambda path: path.startswith("/srv/"), lambda path: path == "../own")


NEW = (
    "[extensions]\n\tobjectFormat = sha256\n\tworktreeConfig = true\n[core]\n\tworktree = ../own\n",
    '[remote "p"]\n\turl = https://example.com/\n\tpromisor = true\n\tpartialclonefilter = blob:none\n'
    "\ttagOpt = --no-tags\n[extensions]\n\tpartialClone = p\n",
    '[remote "m"]\n\turl = https://example.com/\n\tmirror = true\n\tfetch = +refs/*:refs/*\n',
    "[user]\n\tname = n\n[commit]\n\tgpgSign = false\n[submodule]\n\tactive = .\n",
)


@pytest.mark.parametrize("text", [*TAKEN, *NEW])
def test_a_new_repository_keeps_what_git_writes(text: str) -> None:
    assert of_new(BASE + text) == (BASE + text, ())


KEPT_IF_NEW = ("extensions.worktreeconfig", "remote.origin.fetch", "remote.x.fetch", "branch.x.rebase")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *((text, name) for text, name in REFUSED if not is_harmless(name) and name not in KEPT_IF_NEW),
        ("[core]\n\tworktree = /home/user\n", "core.worktree"),
        ("[extensions]\n\tpartialClone = ./evil\n", "extensions.partialclone"),
        ("[core] fsmonitor = evil\n", "core.fsmonitor"),
        ("[core]\n\tfsmonitor = e\\\nvil\n", "core.fsmonitor"),
    ],
)
def test_a_new_repository_loses_what_could_run_a_program(text: str, name: str) -> None:
    result, gone = of_new(BASE + text)
    assert name in gone
    assert "evil" not in str(values(parse(result)).values())
    assert values(parse(result)).items() >= values(parse(BASE)).items()


@pytest.mark.parametrize("text", ["[core\n", "[a]\n\tb = \0\n"])
def test_a_new_configuration_with_errors_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        of_new(text)


@given(st.lists(st.sampled_from([*TAKEN, *NEW, *(text for text, _ in REFUSED)]), max_size=8))
def test_what_is_left_of_a_new_configuration_is_harmless(parts: list[str]) -> None:
    text, gone = of_new(BASE + "".join(parts))
    assert of_new(text) == (text, ())
    assert not set(gone) & {".".join(each) for each in values(parse(text))}
