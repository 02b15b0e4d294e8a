"""The `[[secret]]` tables of a file."""

from __future__ import annotations

import pytest

from netsandbox.config.document import layer_of
from netsandbox.config.merging import file_settings, merge
from netsandbox.config.secret_tables import PLACE
from netsandbox.errors import UsageError
from netsandbox.policy.secret_rules import parse_secret

TEXT = b"""\
[network]
secrets = ["A@a.example.com"]

[[secret]]
name = "B"
hosts = ["b.example.com:8443", "c.example.com"]
header = "x-api-key"
git = "user"
unless = ["OTHER"]
command = ["gh", "auth", "to ken"]

[[secret]]
name = "C"
registries = ["npm"]
file = "token,1"
optional = true
pass_in_body = true
"""


def test_each_table_is_a_rule_with_its_line() -> None:
    layer = layer_of("/project/f.toml", TEXT)
    assert layer.values[PLACE].value == (
        ("A@a.example.com", "/project/f.toml:2"),
        (
            "B@b.example.com:8443,c.example.com,header=x-api-key,git=user,unless=OTHER,command=gh auth 'to ken'",
            "/project/f.toml:4",
        ),
        ("C@registry=npm,optional=yes,body=pass,file=/project/token,1", "/project/f.toml:12"),
    )
    assert parse_secret(*layer.values[PLACE].value[2]).source == ("file", "/project/token,1")  # type: ignore[index]


def test_an_untrusted_file_has_no_secret() -> None:
    settings = file_settings(merge([layer_of("f.toml", TEXT, trusted=False)]))
    assert settings.secrets == ()
    assert settings.ignored == (("network.secrets", "f.toml:2"),)


@pytest.mark.parametrize(
    "table",
    [
        'hosts = ["a.example.com"]',
        'name = "A"',
        'name = "A"\nhosts = "a.example.com"',
        'name = "A"\nhosts = []',
        'name = "A"\nhosts = [1]',
        'name = 1\nhosts = ["a.example.com"]',
        'name = "A"\nhosts = ["a.example.com"]\nhost = "x"',
        'name = "A"\nhosts = ["a.example.com,header=host"]',
        'name = "A"\nhosts = ["a.example.com"]\nheader = "a,query=b"',
        'name = "A"\nhosts = ["a.example.com"]\noptional = "yes"',
        'name = "A"\nhosts = ["a.example.com"]\ncommand = "gh auth token"',
        'name = "A"\nhosts = ["a.example.com"]\ncommand = ["a"]\nfile = "b"',
        'name = "A"\nhosts = ["http://a.example.com/"]',
    ],
)
def test_what_is_no_secret_names_its_line(table: str) -> None:
    with pytest.raises(UsageError, match=r"^f.toml:1: "):
        layer_of("f.toml", f"[[secret]]\n{table}\n".encode())


@pytest.mark.parametrize("text", [b"secret = 1", b"secret = []", b"[secret]\nname = 'A'", b"secret = [1]"])
def test_what_is_no_list_of_tables(text: bytes) -> None:
    with pytest.raises(UsageError, match=r"\[\[secret\]\]"):
        layer_of("f.toml", text)
