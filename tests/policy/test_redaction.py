"""No credential is left in what a file may hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.redaction import (
    REDACTED,
    names_credential,
    parameters,
    shown_header,
    shown_query,
    shown_target,
)

SECRET = "s3cr3t-value"
CREDENTIALS = (
    *(
        "Authorization",
        "Proxy-Authorization",
        "Cookie",
        "Set-Cookie",
        "X-Api-Key",
        "X-API-KEY",
        "apikey",
        "x-amz-token",
    ),
    *(
        "X-Amz-Signature",
        "access_token",
        "accessToken",
        "sig",
        "key",
        "client_secret",
        "PHPSESSIONID",
        "x-csrf",
        "code",
    ),
    *("password", "user_pwd", "X-Goog-Credential", "jwt", "Private-Token", "auth", "x-auth", "accessKey", "%74oken"),
)


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_name_tells_a_credential(name: str) -> None:
    assert SECRET not in shown_query(f"a=1&{name}={SECRET}")
    assert shown_query(f"a=1&{name}={SECRET}").startswith("a=1&")
    if "%" not in name:
        assert names_credential(name)
        assert shown_header(name, SECRET, with_query=True) == REDACTED


@pytest.mark.parametrize(
    "name", ["Accept", "User-Agent", "page", "author", "keyword", "passenger", "Content-Type", "q"]
)
def test_other_names_keep_their_values(name: str) -> None:
    assert not names_credential(name)
    assert shown_header(name, "plain", with_query=False) == "plain"


@pytest.mark.parametrize(
    ("name", "value", "with_query", "shown"),
    [
        ("X-Custom", f"Bearer {SECRET}", True, REDACTED),
        ("Sec-WebSocket-Protocol", f"base64url.bearer.{SECRET}", True, REDACTED),
        ("Location", f"/next?x={SECRET}", False, "/next"),
        ("Location", f"/next?x=1&token={SECRET}#{SECRET}", True, "/next?x=1&token=redacted"),
        ("Referer", f"https://me:{SECRET}@example.com/a?b", False, "https://example.com/a"),
        ("X-Link", f"https://{SECRET}@example.com/a#{SECRET}", False, "https://example.com/a"),
        ("WWW-Authenticate", 'Basic realm="x"', False, 'Basic realm="x"'),
    ],
)
def test_values_of_headers(name: str, value: str, shown: str, *, with_query: bool) -> None:
    assert shown_header(name, value, with_query=with_query) == shown


def test_a_query_is_left_out_unless_it_is_wanted() -> None:
    assert shown_target(f"/a?{SECRET}", with_query=False) == "/a"
    assert shown_target(f"/a?b=1&token={SECRET}", with_query=True) == "/a?b=1&token=redacted"
    assert shown_query("x" * 25) == REDACTED
    assert parameters("a=1&flag") == [("a", "1"), ("flag", "")]


@given(st.text(), st.sampled_from(CREDENTIALS), st.text(alphabet="&=?#%abc", max_size=10))
def test_a_credential_stays_out_whatever_is_around_it(before: str, name: str, after: str) -> None:
    query = f"{before.replace('&', '')}&{name}={SECRET}&{after}"
    assert SECRET not in shown_query(query)
    assert SECRET not in shown_target(f"/a?{query}", with_query=True)
    assert SECRET not in shown_header("location", f"/a?{query}", with_query=True)
