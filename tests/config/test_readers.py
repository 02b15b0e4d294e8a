"""Readers of single values: a valid text is kept as it is, every other one is an error with advice."""

from __future__ import annotations

import pytest

from netsandbox.config.readers import check_profile, check_proxy, name_server, waiting
from netsandbox.errors import UsageError


@pytest.mark.parametrize(
    "text", ["http://p.test:3128", "http://p.test:3128/", "HTTP://u:p@w@10.0.0.1:80", "http://[2001:db8::1]:3128"]
)
def test_a_valid_proxy_is_kept_as_it_is(text):
    assert check_proxy(text, "--upstream-proxy") == text


@pytest.mark.parametrize(
    "text",
    [
        "p.test:3128",
        "https://p.test:3128",
        "http://p.test",
        "http://p.test:0",
        "http://p.test:1/x",
        "http://:3128",
        "http://a b:3128",
        "http://u:hush@p.test:x",
    ],
)
def test_an_invalid_proxy_is_refused_without_showing_a_password(text):
    with pytest.raises(UsageError) as caught:
        check_proxy(text, "--upstream-proxy")
    assert "hush" not in str(caught.value)


def test_a_server_is_one_address():
    assert name_server("192.0.2.53:5353", "--upstream-dns") == ("192.0.2.53", 5353)
    assert name_server("2001:db8::53", "--upstream-dns") == ("2001:db8::53", 53)


@pytest.mark.parametrize("text", ["", "ns.test", "192.0.2.53 192.0.2.54", "192.0.2.53:0"])
def test_a_text_that_is_not_one_server_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        name_server(text, "--upstream-dns")


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "99999999", "soon", ""])
def test_a_wait_is_a_whole_number_of_seconds_from_1_on(text: str) -> None:
    assert waiting("30", "--ask-wait") == 30
    with pytest.raises(UsageError):
        waiting(text, "--ask-wait")


@pytest.mark.parametrize("name", ["../x", "a b", "-x", "a.toml"])
def test_a_profile_is_named_by_letters_digits_and_dashes(name: str) -> None:
    assert check_profile("my-profile_2", "--profile") == "my-profile_2"
    with pytest.raises(UsageError):
        check_profile(name, "--profile")


def test_budgets_need_no_trust_and_add_up() -> None:
    from netsandbox.config.document import layer_of
    from netsandbox.config.merging import file_settings, merge

    own = layer_of("own.toml", b'[network]\nbudgets = ["10MB"]\n')
    project = layer_of("project.toml", b'[network]\nbudgets = [\n  "a.test=1MB",\n  "up=1kB",\n]\n', trusted=False)
    settings = file_settings(merge([own, project]))
    assert sorted(settings.budgets) == [
        ("10MB", "own.toml:2"),
        ("a.test=1MB", "project.toml:3"),
        ("up=1kB", "project.toml:4"),
    ]
    assert settings.ignored == ()


@pytest.mark.parametrize("value", ['["a.test"]', '["a.test=1"]', "[1]", '"10MB"'])
def test_a_list_that_holds_no_budgets_is_an_error_with_its_line(value: str) -> None:
    from netsandbox.config.document import layer_of

    with pytest.raises(UsageError, match=r"^f\.toml:2: .*; "):
        layer_of("f.toml", f"[network]\nbudgets = {value}\n".encode())
