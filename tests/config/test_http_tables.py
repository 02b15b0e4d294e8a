"""The `[[http]]` tables of a file."""

from __future__ import annotations

import pytest

from netsandbox.config.document import layer_of
from netsandbox.config.http_tables import ALLOW, DENY
from netsandbox.config.merging import file_settings, merge
from netsandbox.errors import UsageError

TEXT = b"""\
[network]
allow_http = ["https://a.example.com/**"]

[[http]]
methods = ["GET", "HEAD"]
url = "https://api.example.com/v1/**"

[[http]]
verdict = "deny"
methods = ["POST"]
url = "https://api.example.com/upload"
"""


def test_each_table_is_a_rule_with_its_line() -> None:
    layer = layer_of("f.toml", TEXT)
    assert layer.values[ALLOW].value == (
        ("https://a.example.com/**", "f.toml:2"),
        ("GET,HEAD https://api.example.com/v1/**", "f.toml:4"),
    )
    assert layer.values[DENY].value == (("POST https://api.example.com/upload", "f.toml:8"),)


def test_an_untrusted_file_only_denies() -> None:
    settings = file_settings(merge([layer_of("f.toml", TEXT, trusted=False)]))
    assert settings.allow_http == ()
    assert settings.deny_http == (("POST https://api.example.com/upload", "f.toml:8"),)
    assert settings.ignored == (("network.allow_http", "f.toml:2"),)


@pytest.mark.parametrize(
    "text",
    [
        "http = 1",
        "[http]\nurl = 'https://example.com/'",
        "http = []",
        "http = [1]",
        "[[http]]\nmethods = ['GET']",
        "[[http]]\nurl = 'https://example.com/'\nmethods = 'GET'",
        "[[http]]\nurl = 'https://example.com/'\nverdict = 'maybe'",
        "[[http]]\nurl = 'https://example.com/'\nmethod = ['GET']",
        "[[http]]\nurl = 'https://example.com/a//b'",
    ],
)
def test_a_table_that_is_no_rule_is_an_error_with_its_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^f\.toml:1: .*; "):
        layer_of("f.toml", text.encode())
