"""A request asks as the kernel does: with the path resolved."""

from __future__ import annotations

import pytest

from tests.seatbelt_model.request import Request, bind, connect, connect_unix, file, listen, lookup
from tests.seatbelt_model.values import ProfileError


@pytest.mark.attack(141)
@pytest.mark.parametrize(
    ("path", "true"),
    [
        ("/tmp/x", "/private/tmp/x"),
        ("/var", "/private/var"),
        ("/etc/hosts", "/private/etc/hosts"),
        ("/variable", "/variable"),
        ("/Users/me/../you//x/./y/", "/Users/you/x/y"),
        ("/usr/../tmp/x", "/private/tmp/x"),
        ("/../..", "/"),
        ("/private/tmp/x", "/private/tmp/x"),
    ],
)
def test_links_of_every_mac_and_dots_are_resolved(path: str, true: str) -> None:
    assert file("file-read-data", path).path == true


@pytest.mark.parametrize("operation", ["file-execute", "default", "", "FILE*"])
def test_what_is_no_operation_cannot_be_asked(operation: str) -> None:
    with pytest.raises(ProfileError, match="no operation"):
        Request(operation)


def test_the_operations_of_each_call() -> None:
    made = [connect("::1", 1), connect_unix("/a"), bind("::1", 1), listen("::1", 1), lookup("x")]
    assert [request.operation for request in made] == [
        "network-outbound", "network-outbound", "network-bind", "network-inbound", "mach-lookup"
    ]  # fmt: skip
