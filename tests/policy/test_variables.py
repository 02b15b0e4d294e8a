"""Which variables reach the command: secrets do not, unless the user says so."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.policy.variables import (
    CLEAN,
    Layer,
    Patterns,
    VariableRules,
    carries_credentials,
    check_pattern,
)


@pytest.mark.parametrize(
    "name",
    [
        *("AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "NPM_TOKEN"),
        *("MY_SECRET", "MY_SECRET_THING", "DB_PASSWORD", "DB_PASSWORD_FILE", "PGPASSWORD", "SSH_AUTH_SOCK", "TOKEN"),
        *("github_token", "npm_config_auth", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "DATABASE_URL"),
        *("DB_PASS", "SMTP_PASS", "GOOGLE_CREDS", "TEST_DATABASE_URL", "STORAGE_CONNECTION_STRING"),
        *("GOOGLE_APPLICATION_CREDENTIALS", "SLACK_WEBHOOK_URL", "SENTRY_DSN", "GITLAB_PAT", "STRIPE_APIKEY"),
    ],
)
def test_secrets_and_loaders_are_withheld(name: str) -> None:
    assert not VariableRules().passes(name.encode())


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "USER", "SHELL", "TERM", "LANG", "LC_ALL", "EDITOR", "PAGER", "PWD", "TMPDIR", "COLORTERM"),
        *(
            "NODE_ENV",
            "npm_config_registry",
            "PIP_INDEX_URL",
            "GOPROXY",
            "VIRTUAL_ENV",
            "KEYBOARD",
            "TOKENIZERS_PARALLELISM",
        ),
        *("MONKEY", "SSH_TTY", "XDG_RUNTIME_DIR", "NETSANDBOX_X", "CARGO_HOME", "AUTHOR", "PATTERN", "LDFLAGS"),
    ],
)
def test_variables_without_secrets_are_passed_on(name: str) -> None:
    assert VariableRules().passes(name.encode())


def test_a_name_that_was_written_out_passes_though_a_pattern_below_it_denies() -> None:
    rules = VariableRules([Layer(denied=("*_API_KEY", "ANTHROPIC_API_KEY")), Layer(passed=("ANTHROPIC_API_KEY",))])
    assert rules.passes(b"ANTHROPIC_API_KEY")
    assert not rules.passes(b"OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("passed", "denied", "passes"),
    [
        (("A_KEY",), (), True),
        (("A_*",), (), True),
        (("A_KEY",), ("A_KEY",), False),
        (("A_KEY",), ("*_KEY",), True),
        (("A_*",), ("*_KEY",), False),
        (("A_*",), ("A_KEY",), False),
        ((), (), False),
    ],
)
def test_within_a_layer_names_beat_patterns_and_a_deny_beats_a_pass(
    passed: tuple[str, ...], denied: tuple[str, ...], *, passes: bool
) -> None:
    assert VariableRules([Layer(passed, denied)]).passes(b"A_KEY") is passes


def test_the_highest_layer_that_speaks_decides() -> None:
    assert not VariableRules([Layer(passed=("X",)), Layer(denied=("X*",)), Layer(passed=("Y",))]).passes(b"X")
    assert VariableRules([Layer(denied=("X",)), Layer(passed=("X*",)), Layer(denied=("Y",))]).passes(b"X")


def test_the_split_names_the_withheld_variables() -> None:
    outer = {b"PATH": b"/bin", b"Z_TOKEN": b"1", b"A_KEY": b"2", b"\xff\xfe": b"odd"}
    inner, withheld = VariableRules().split(outer)
    assert inner == {b"PATH": b"/bin", b"\xff\xfe": b"odd"}
    assert withheld == [b"A_KEY", b"Z_TOKEN"]


NAMES = st.text("AB_*", min_size=1, max_size=8).filter(lambda text: text.strip("*"))


@given(st.lists(NAMES, max_size=4), st.text("AB_", max_size=10))
def test_patterns_fit_as_a_shells_do(patterns: list[str], name: str) -> None:
    made = Patterns(patterns)
    expected = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    assert (made.names(name.encode()) or made.fits(name.encode())) == expected


@given(st.binary(max_size=20))
def test_no_name_is_too_odd_to_be_judged(name: bytes) -> None:
    assert VariableRules([Layer(("A*B",), ("*C*",))]).passes(name) in (True, False)


@pytest.mark.parametrize("text", ["", "*", "**", "A=B", "A B", "A-B", "1A", "Ä", "A\n", "A\0"])
def test_a_pattern_for_no_variable_or_all_of_them_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not the name of a variable"):
        check_pattern(text, "here")


@pytest.mark.parametrize("text", ["A", "_", "AWS_*", "*_KEY", "*_SECRET_*", "npm_config_registry", "A*B", "*1"])
def test_names_and_patterns_are_taken(text: str) -> None:
    assert check_pattern(text, "here") == text


@pytest.mark.parametrize(
    "value",
    [
        *("postgres://u:p@h/x", "http://u:p@proxy:3128", "https://token@host/x", "HTTPS://T@h", "redis://:pw@h:6379"),
        *("git+https://t@h/r.git", "a b mongodb://u:p@h1,h2/d", "jdbc:postgresql://h/d?user=u&password=p"),
        *("pg://u:p/w@h", "pg://u:p#w@h", "pg://u:p?w@h", "pg://u:p w@h", "x://a;y://u:p@h", "https://h/?Token=1"),
    ],
)
def test_a_url_with_credentials_is_withheld_whatever_its_variable_is_called(value: str) -> None:
    assert carries_credentials(value.encode())
    assert VariableRules().split({b"X": value.encode()}) == ({}, [b"X"])
    assert VariableRules([Layer(passed=("X",))]).passes(b"X", value.encode())
    assert VariableRules([Layer(passed=("*X",))]).passes(b"X", value.encode())


@pytest.mark.parametrize(
    "value",
    [
        *("ssh://git@host/x", "https://h/@scope/p", "https://a.test,https://b.test/@x", "postgres://u@h", "pg://u:@h/"),
        *("me@example.com", "git@example.com:a/b", "http://[::1]/@x", "http://h:80/@x", "https://h/?password=", "://"),
        *("a:// b@c", "https://h/a#x@y", "https://example.com/user:name@x", "http://127.0.0.1:3000", ""),
    ],
)
def test_a_url_without_credentials_passes(value: str) -> None:
    assert not carries_credentials(value.encode())


PLAIN = st.text(alphabet="abc019-._~%", min_size=1, max_size=12)


@given(
    before=st.binary(max_size=20), user=PLAIN | st.just(""), password=PLAIN, host=PLAIN, after=st.binary(max_size=20)
)
def test_no_url_with_a_password_passes_in_any_surroundings(
    before: bytes, user: str, password: str, host: str, after: bytes
) -> None:
    assert carries_credentials(before + f"x://{user}:{password}@{host}".encode() + after)


@given(st.binary(max_size=60))
def test_no_value_is_too_odd_and_none_without_a_url_is_withheld(value: bytes) -> None:
    assert not carries_credentials(value) or b"://" in value


def test_in_a_clean_environment_only_the_basics_pass_and_what_others_name() -> None:
    outer = dict.fromkeys(
        (b"PATH", b"HOME", b"LC_ALL", b"lang", b"EDITOR", b"FOO", b"DB_URL", b"SHOP_A", b"A_TOKEN"), b"x"
    )
    inner, withheld = VariableRules(CLEAN).split(outer)
    assert sorted(inner) == [b"EDITOR", b"HOME", b"LC_ALL", b"PATH", b"lang"]
    assert withheld == [b"A_TOKEN", b"DB_URL", b"FOO", b"SHOP_A"]
    layers = (*CLEAN, Layer(passed=("FOO", "SHOP_*")), Layer(passed=("A_TOKEN",), denied=("EDITOR",)))
    assert sorted(VariableRules(layers).split(outer)[0]) == [
        *(b"A_TOKEN", b"FOO", b"HOME", b"LC_ALL", b"PATH", b"SHOP_A", b"lang"),
    ]


@given(st.binary(min_size=1, max_size=20), st.binary(max_size=20))
def test_a_clean_environment_is_a_part_of_the_usual_one(name: bytes, value: bytes) -> None:
    assert not VariableRules(CLEAN).passes(name, value) or VariableRules().passes(name)
