"""A profile's text becomes rules with their lines, or faults with theirs; with a fault nothing is judged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.seatbelt_model import profile as module
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all, evaluate, verdicts
from tests.seatbelt_model.filters import End, Path, Some
from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import MissingImport, Modifier, Profile, Rule, load
from tests.seatbelt_model.request import connect
from tests.seatbelt_model.values import ProfileError, ProfileSyntaxError


def test_rules_in_their_order_with_their_lines() -> None:
    profile = load(
        '(version 1)\n(debug deny)\n(deny default (with message "no"))\n'
        '(allow (with report) file-read* file-write*\n  (literal "/a")\n  (subpath "/b"))\n'
        "(allow process-exec (with no-log))"
    )
    assert profile.checked() == (
        Rule("deny", ("default",), None, (Modifier("message", "no"),), 3),
        Rule(
            "allow",
            ("file-read*", "file-write*"),
            Some((Path("literal", "/a"), Path("subpath", "/b"))),
            (Modifier("report"),),
            4,
        ),
        Rule("allow", ("process-exec*",), None, (Modifier("no-log"),), 7),
    )
    filter_ = profile.rules[1].filter
    assert filter_ is not None
    assert [part.line for part in filter_.parts] == [5, 6]


def test_functions_conditions_and_parameters_make_rules() -> None:
    text = """(version 1)
(define (home path) (subpath (string-append (param "HOME") path)))
(define ports (list "localhost:1" "localhost:2"))
(deny default)
(if (param "HOME") (allow file-read* (home "/.npm")))
(when (equal? (param "STRICT") "no") (allow network*))
(for-each (lambda (port) (allow network-outbound (remote tcp port))) ports)
"""
    profile = load(text, {"HOME": "/Users/me", "STRICT": "yes"})
    assert [(rule.action, rule.line) for rule in profile.checked()] == [
        ("deny", 4), ("allow", 5), ("allow", 7), ("allow", 7)
    ]  # fmt: skip
    assert profile.rules[1].filter == Path("subpath", "/Users/me/.npm")
    assert profile.rules[3].filter == End("remote", "tcp", "localhost", 2)


def test_a_parameter_that_was_not_given_is_false_and_no_path() -> None:
    text = '(version 1)(deny default)(when (param "X") (allow network*))\n(allow file-read* (subpath (param "X")))'
    profile = load(text)
    assert len(profile.rules) == 1
    assert [fault.line for fault in profile.faults] == [2]
    assert load(text, unset=lambda name: f"/{name}").rules[-1].filter == Path("subpath", "/X")


@pytest.mark.parametrize(
    ("rule", "part"),
    [
        ("(allow file-execute)", "no operation file-execute"),
        ("(allow file-read-write*)", "no operation"),
        ("(allow)", "names no operation"),
        ('(allow (literal "/a"))', "names no operation"),
        ('(allow file-read* "/a")', "is no operation, filter or modifier"),
        ('(allow file-read* (with-info "/a"))', "not a filter or function"),
        ('(allow file-read* (fancy "/a"))', "not a filter or function"),
        ("(allow file-read* (with magic))", "is no modifier"),
        ("(allow file-read* (with))", "is no modifier"),
        ('(allow network-outbound (remote ip "127.0.0.1:*"))', "neither \\* nor localhost"),
        ('(allow network-bind (local ip "localhost:0"))', "the port is not"),
        ('(trace "x")', "not a filter or function"),
        ('(string-replace "a" "b" "c")', "not a filter or function"),
        ("(version 2)", "only \\(version 1\\)"),
        ('(import "system.sb")', "is not at hand"),
        ("(import 1)", "import takes one name"),
        ("(param 1)", "param takes one name"),
        ("(allow network*", "never closed"),
    ],
)
def test_a_fault_voids_the_whole_profile_and_nothing_is_judged(rule: str, part: str) -> None:
    """INV-1: a profile that is not understood wholly allows nothing and denies nothing; it is refused."""
    text = f"(version 1)\n(deny default)\n{rule}"
    if part == "never closed":
        with pytest.raises(ProfileSyntaxError, match=part):
            load(text)
        return
    profile = load(text)
    request = connect("203.0.113.7", 443)
    for ask in (evaluate, denied_under_all, allowed_under_all, lambda p, r: list(verdicts(p, r))):
        with pytest.raises(ProfileError, match=part) as caught:
            ask(profile, request)
        assert caught.value.line == 3


def test_all_faults_are_collected_and_the_other_rules_still_read() -> None:
    profile = load("(version 1)\n(deny default)\n(allow a)\n(allow file-read*)\n(allow b)")
    assert [fault.line for fault in profile.faults] == [3, 5]
    assert [rule.line for rule in profile.rules] == [2, 4]


def test_without_a_version_nothing_loads() -> None:
    with pytest.raises(ProfileError, match="no \\(version 1\\)"):
        load("(deny default)").checked()
    imported = load('(import "a.sb") (deny default)', imported={"a.sb": "(version 1)"}.get)
    with pytest.raises(ProfileError, match="no \\(version 1\\)"):
        imported.checked()


def test_imports_come_only_from_what_is_given() -> None:
    given_ = {"base.sb": '(define (dev name) (literal (string-append "/dev/" name)))\n(allow process-fork)'}
    profile = load(
        '(version 1)(deny default)\n(import "base.sb")\n(allow file-read* (dev "null"))', imported=given_.get
    )
    assert [(rule.source, rule.line) for rule in profile.checked()] == [("", 1), ("base.sb", 2), ("", 3)]
    assert isinstance(load('(version 1)(import "other.sb")', imported=given_.get).faults[0], MissingImport)


def test_faults_of_an_imported_profile_name_it() -> None:
    given_ = {"bad.sb": "(allow\nmagic)", "worse.sb": "\n(("}
    profile = load('(version 1)(deny default)(import "bad.sb")(import "worse.sb")', imported=given_.get)
    assert [(fault.source, fault.line) for fault in profile.faults] == [("bad.sb", 2), ("worse.sb", 2)]


def test_a_profile_that_imports_itself_comes_to_an_end() -> None:
    profile = load('(version 1)(import "a.sb")', imported={"a.sb": '(import "a.sb")'}.get)
    assert profile.faults


def test_the_number_of_rules_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RULES", 3)
    assert "more than 3 rules" in load("(version 1)" + "(allow signal)" * 4).faults[0].text


def test_three_thousand_paths_are_no_trouble() -> None:
    paths = " ".join(f'(subpath "/Users/me/p{number}")' for number in range(3000))
    profile = load(f"(version 1)(deny default)(allow file-read* {paths})")
    assert len(profile.checked()) == 2
    assert lint(profile) == []


WORDS = (
    "allow deny default file-read* network* network-outbound literal subpath regex remote local tcp ip require-any "
    "require-not with no-log define let if param string-append list map version import f x"
)
ATOMS = st.sampled_from([*WORDS.split(), '"/a"', '"localhost:80"', '"*:53"', '"a"', "1", "#f", '#"^/a"'])
FORMS = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=5).map(lambda parts: f"({' '.join(parts)})"))


@given(st.lists(FORMS, max_size=6).map("\n".join))
def test_any_forms_make_a_profile_that_can_be_linted_and_is_judged_or_refused(text: str) -> None:
    profile = load(text, imported=lambda name: None)
    assert isinstance(profile, Profile)
    for finding in lint(profile):
        assert "; " in finding.text
        assert 1 <= finding.line <= text.count("\n") + 1
    if not profile.faults:
        evaluate(profile, connect("203.0.113.7", 443))
