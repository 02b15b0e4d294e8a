"""Rules as a session enforces them: wildcards on a real disk, and denies over allows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.policy.file_rules import FileRules, PathRule, is_within, path_rule
from netsandbox.policy.path_patterns import MAX_MATCHES
from netsandbox.runtime.effective_rules import effective

paths = st.lists(st.sampled_from(["/q", "/q/a", "/q/a/b", "/q/c", "/r"]).map(lambda path: PathRule(path, "--x")))


def rule(path: object, origin: str = "--allow-read") -> PathRule:
    return path_rule(str(path), origin, "/", lambda: "/home/me")


def names(rules: tuple[PathRule, ...], folder: Path) -> list[str]:
    return [each.path.removeprefix(f"{folder}/") for each in rules]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in ("a/docs", "b/docs", "c", ".d/docs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "c/docs").write_text("a file")
    return tmp_path


def test_a_wildcard_stands_for_what_exists(work: Path) -> None:
    found = effective(FileRules(allow_read=(rule(f"{work}/*/docs"),)))
    assert names(found.rules.allow_read, work) == ["a/docs", "b/docs", "c/docs"]
    assert [each.origin for each in found.rules.allow_read] == ["--allow-read"] * 3
    assert not any(each.wild for each in found.rules.allow_read)
    assert found.unmatched == ()


def test_with_a_slash_at_the_end_only_folders_count(work: Path) -> None:
    found = effective(FileRules(allow_write=(rule(f"{work}/*/docs/"),)))
    assert names(found.rules.allow_write, work) == ["a/docs", "b/docs"]


def test_a_match_that_is_a_name_with_a_star_is_not_expanded_again(work: Path) -> None:
    (work / "*").mkdir()
    found = effective(FileRules(allow_read=(rule(f"{work}/?"),)))
    assert names(found.rules.allow_read, work) == ["*", "a", "b", "c"]
    assert effective(found.rules).rules == found.rules


def test_what_matches_nothing_is_reported_and_opens_nothing(work: Path) -> None:
    nothing = rule(f"{work}/*/absent")
    found = effective(FileRules(allow_read=(nothing,), deny_read=(nothing,)))
    assert (found.rules.allow_read, found.rules.deny_read) == ((), ())
    assert found.unmatched == (("allow_read", nothing), ("deny_read", nothing))


def test_an_allow_takes_no_link_that_a_command_could_have_made(work: Path) -> None:
    secret = work / ".secret"
    (secret / "docs").mkdir(parents=True)
    (work / "planted").symlink_to(secret)
    (work / "e").mkdir()
    (work / "e/docs").symlink_to(secret)
    found = effective(FileRules(allow_read=(rule(f"{work}/*/docs"), rule(f"{work}/*")), deny_read=()))
    assert "planted" not in names(found.rules.allow_read, work)
    assert not [each for each in found.rules.allow_read if secret.samefile(Path(each.path).resolve())]
    denied = effective(FileRules(deny_read=(rule(f"{work}/*/docs"),)))
    assert {"planted/docs", "e/docs", ".d/docs"} <= set(names(denied.rules.deny_read, work))


def test_a_link_before_the_wildcard_is_the_users(work: Path) -> None:
    (work / "link").symlink_to(work / "a")
    found = effective(FileRules(allow_read=(rule(f"{work}/link/d*"),)))
    assert names(found.rules.allow_read, work) == ["link/docs"]


def test_too_many_matches_are_an_error_that_names_the_option(work: Path) -> None:
    for number in range(MAX_MATCHES + 1):
        (work / f"a/{number}").touch()
    for rules in (FileRules(allow_read=(rule(f"{work}/a/*"),)), FileRules(deny_read=(rule(f"{work}/a/*"),))):
        with pytest.raises(UsageError, match=r"^--allow-read: .* name the folder above them instead"):
            effective(rules)


def test_a_deny_wins_over_the_same_path_and_paths_inside(work: Path) -> None:
    deny, same, inside = rule(work / "a", "f:3"), rule(work / "a"), rule(work / "a/docs", "f:1")
    beside = rule(work / "b")
    found = effective(FileRules(allow_read=(same, inside, beside), deny_read=(deny,)))
    assert found.rules.allow_read == (beside,)
    assert [(each.allow, each.deny) for each in found.overruled] == [(same, deny), (inside, deny)]


def test_a_deny_inside_of_an_allow_is_no_contradiction(work: Path) -> None:
    rules = FileRules(allow_read=(rule(work / "a"),), deny_read=(rule(work / "a/docs"),))
    assert effective(rules).rules == rules
    assert effective(rules).overruled == ()


def test_a_deny_wins_through_links(work: Path) -> None:
    (work / "link").symlink_to(work / "a")
    found = effective(FileRules(allow_read=(rule(work / "link/docs"),), deny_read=(rule(work / "a"),)))
    assert found.rules.allow_read == ()


def test_what_may_not_be_written_is_shown(work: Path) -> None:
    write, deny = rule(work / "a/docs", "--allow-write"), rule(work / "a", "--deny-write")
    found = effective(FileRules(allow_write=(write,), deny_write=(deny,)))
    assert (found.rules.allow_read, found.rules.allow_write) == ((write,), ())
    assert [(each.allow, each.deny) for each in found.overruled] == [(write, deny)]


def test_a_cache_with_a_hidden_part_is_left_out(work: Path) -> None:
    caches = (rule(work / "a"), rule(work / "b"))
    for hidden in ("a", "a/docs"):
        found = effective(FileRules(caches=caches, deny_read=(rule(work / hidden),)))
        assert found.rules.caches == caches[1:]


@given(paths, paths, paths, paths)
def test_nothing_that_is_denied_stays_open(
    read: list[PathRule], write: list[PathRule], hide: list[PathRule], keep: list[PathRule]
) -> None:
    rules = FileRules(tuple(read), tuple(write), tuple(hide), deny_write=tuple(keep), caches=tuple(write))
    found = effective(rules).rules
    for each in (*found.allow_read, *found.allow_write, *found.caches):
        assert not any(is_within(each.path, deny.path) for deny in hide)
    for each in found.allow_write:
        assert not any(is_within(each.path, deny.path) for deny in keep)
    assert set(found.allow_read) <= {*read, *write}
    assert effective(found).rules == found
    if not hide and not keep:
        assert found == rules
