"""The secrets of a session."""

from __future__ import annotations

import pytest

from netsandbox.errors import UsageError
from netsandbox.policy.placeholders import MAX_LENGTH
from netsandbox.policy.secret_rules import parse_secret
from netsandbox.runtime.session_secrets import SessionSecrets

VALUE = "ghp_cAnArYvAlUe0123456789"


def made(*texts: str, value: str = VALUE) -> SessionSecrets:
    return SessionSecrets([(value, [parse_secret(text, "here") for text in texts])])


def test_the_command_gets_placeholders_also_in_other_variables_and_words() -> None:
    secrets = made("TOKEN@api.example.com")
    placeholder = secrets.placeholders["TOKEN"]
    given = {b"TOKEN": VALUE.encode(), b"URL": f"https://{VALUE}@host/".encode(), b"A": b"b"}
    assert secrets.environment(given) == {
        b"TOKEN": placeholder.encode(),
        b"URL": f"https://{placeholder}@host/".encode(),
        b"A": b"b",
    }
    assert secrets.masked_words(["curl", f"-H{VALUE}"]) == ["curl", f"-H{placeholder}"]


def test_a_host_gets_its_own_secrets_in_their_places() -> None:
    secrets = made("TOKEN@api.example.com", "TOKEN@api.example.com,query=key", "TOKEN@other.example.com:8443")
    (found,) = secrets.messages("api.example.com", 443)
    assert found == {
        "name": "TOKEN",
        "value": VALUE,
        "places": [("header", "authorization"), ("query", "key")],
        "body": False,
    }
    assert len(secrets.messages("other.example.com", 8443)) == 1
    assert secrets.messages("other.example.com", 443) == []
    assert secrets.hosts == [
        ("api.example.com:443", "here"),
        ("api.example.com:443", "here"),
        ("other.example.com:8443", "here"),
    ]


def test_git_gets_a_helper_for_each_host_behind_its_other_settings() -> None:
    secrets = made("TOKEN@a.example.com,b.example.com:8443,git=user")
    given = {b"GIT_CONFIG_COUNT": b"1", b"GIT_CONFIG_KEY_0": b"a.b", b"GIT_CONFIG_VALUE_0": b"c"}
    found = secrets.environment(given)
    assert found[b"GIT_CONFIG_COUNT"] == b"5"
    assert [found[b"GIT_CONFIG_KEY_%d" % number] for number in range(5)] == [
        b"a.b",
        *[b"credential.https://a.example.com.helper"] * 2,
        *[b"credential.https://b.example.com:8443.helper"] * 2,
    ]
    assert found[b"GIT_CONFIG_VALUE_1"] == b""  # instead of other helpers
    assert b'"password=$TOKEN"' in found[b"GIT_CONFIG_VALUE_2"]
    assert b"GIT_CONFIG_COUNT" not in made("TOKEN@a.example.com").environment({})


def test_nothing_shows_a_value() -> None:
    secrets = made("TOKEN@api.example.com")
    assert repr(secrets) == str(secrets) == "SessionSecrets(TOKEN)"


def test_each_session_has_its_own_placeholder() -> None:
    assert made("TOKEN@api.example.com").placeholders != made("TOKEN@api.example.com").placeholders


def test_values_must_fit_into_a_message() -> None:
    rules = [[parse_secret(f"T{number}@api.example.com", "here")] for number in range(5)]
    with pytest.raises(UsageError, match="longer than"):
        SessionSecrets([("a" * MAX_LENGTH, each) for each in rules])
