"""From records to what was used: only what was let through counts, everything else is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.record_line import line
from netsandbox.learn.usage import MAX_ENTRIES, Usage, usage


def egress(host: str, port: int = 443, address: str = "203.0.113.7", **more: object) -> dict[str, object]:
    return {"event": "egress", "verdict": "allow", "host": host, "port": port, "address": address, **more}


def test_names_ports_and_addresses_that_were_dialled_are_used() -> None:
    found = usage([egress("A.test"), egress("a.test"), egress("a.test", 8443), egress("192.0.2.7", 22, "192.0.2.7")])
    assert found.names == (("a.test", 443), ("a.test", 8443))
    assert found.literals == (("192.0.2.7", 22),)
    assert found.addresses == (("203.0.113.7", 443), ("203.0.113.7", 8443), ("192.0.2.7", 22))


def test_a_name_that_was_only_looked_up_is_not_used() -> None:
    questions = [{"event": "dns", "verdict": "allow", "host": host} for host in ("a.test", "b.test", "localhost")]
    assert usage([*questions, egress("a.test")]).looked_up == ("b.test",)


DENIED = {"event": "egress", "verdict": "deny", "port": 5432}


@pytest.mark.parametrize(
    ("entry", "field", "value"),
    [
        ({**DENIED, "host": "localhost", "reason": "address-guard", "address": "127.0.0.1"}, "host_ports", 5432),
        ({**DENIED, "host": "::1", "reason": "address-guard", "address": "::1"}, "host_ports", 5432),
        (
            {**DENIED, "host": "db.test", "reason": "address-guard", "address": "10.0.0.1"},
            "refused",
            "db.test:5432 (address-guard)",
        ),
        ({**DENIED, "host": "bad.test", "reason": "deny-rule"}, "denied_names", "bad.test"),
        ({**DENIED, "host": "a.test", "reason": "lookup-failed"}, "unreached", "a.test:5432 (lookup-failed)"),
        (
            {"event": "udp", "verdict": "deny", "reason": "udp", "address": "192.0.2.1", "port": 53},
            "refused",
            "192.0.2.1:53 (udp)",
        ),
        (
            {"event": "socket", "verdict": "deny", "reason": "unix-socket", "path": "/run/d.sock"},
            "unix_sockets",
            "/run/d.sock",
        ),
    ],
)
def test_what_was_refused_is_told_and_not_used(entry: dict[str, object], field: str, value: object) -> None:
    found = usage([entry])
    assert getattr(found, field) == (value,)
    assert (found.names, found.addresses, found.literals) == ((), (), ())


def test_a_socket_of_no_known_path_is_not_worth_a_line() -> None:
    assert usage([{"event": "socket", "verdict": "deny", "reason": "unix-socket", "exe": "/bin/ls"}]) == Usage()


def test_a_command_that_goes_everywhere_is_cut_and_known_to_be() -> None:
    found = usage(egress(f"n{number}.test") for number in range(MAX_ENTRIES + 1))
    assert len(found.names) == MAX_ENTRIES
    assert found.more
    assert not usage([egress("a.test")] * (MAX_ENTRIES + 1)).more


def file(path: object, operation: object = "make", **more: object) -> dict[str, object]:
    return {"event": "file", "path": path, "operation": operation, **more}


def test_what_was_written_is_kept_with_what_was_done() -> None:
    entries = [
        file("/srv/a"),
        file("/srv/a"),
        file("/srv/a", "change"),
        file("/srv/b", "many"),
        file("/srv/c", "folder"),
    ]
    found = usage(entries)
    assert found.written == (("/srv/a", "make"), ("/srv/a", "change"), ("/srv/b", "many"), ("/srv/c", "folder"))
    assert not found.more_paths


def test_what_was_read_without_a_refusal_is_not_kept() -> None:
    assert usage([file("/srv/x", "read")]) == Usage()


def test_what_a_rule_denies_is_told_and_never_proposed() -> None:
    assert usage([file("/srv/x", "make", verdict="deny", reason="deny-rule")]) == Usage(read=("/srv/x",))


def test_what_a_closed_session_refused_is_what_it_wanted() -> None:
    refused = [
        file("/srv/x", "read", verdict="deny", reason="not-shown"),
        {"event": "exec", "path": "/srv/tool", "operation": "execute", "verdict": "deny", "reason": "not-shown"},
        file("/srv/y", "make", verdict="deny", reason="read-only"),
        file("/srv/" + "z" * 600, "read", verdict="deny", reason="not-shown"),
    ]
    assert usage(refused) == Usage(read=("/srv/x", "/srv/tool"), written=(("/srv/y", "make"),))


def test_a_hidden_place_is_kept_and_what_is_in_it_is_not_written() -> None:
    found = usage([file("/home/me/.ssh/id", operation, place="/home/me/.ssh") for operation in ("read", "make")])
    assert found == Usage(secrets=("/home/me/.ssh",))


def test_a_path_that_the_log_has_cut_counts_as_its_folder() -> None:
    long = "/srv/" + "x" * 200 + "/" + "y" * 400
    written = line("t", 1, "s", "file", fields=file(long), prev="")
    assert usage([json.loads(written)]).written == (("/srv/" + "x" * 200, "many"),)


def test_that_there_was_more_than_is_recorded_is_kept() -> None:
    assert usage([{"event": "file", "count": 7, "detail": "more paths than are listed"}]).more_paths


VALUES: Any = (
    st.none() | st.integers() | st.text(max_size=8) | st.sampled_from(["a.test", "127.0.0.1", "allow", "deny"])
)
NAMES = ("event", "verdict", "host", "port", "address", "reason", "path", "operation", "place")


@given(
    st.lists(
        st.dictionaries(st.sampled_from(NAMES), VALUES).map(
            lambda entry: {"event": "file" if "path" in entry else "egress", "verdict": "allow", **entry}
        )
    )
)
def test_no_record_makes_it_raise(entries: list[dict[str, object]]) -> None:
    found = usage(entries)
    assert all(type(port) is int for _, port in found.names)


def test_requests_are_learnt_by_their_plain_path() -> None:
    request = {"event": "http", "verdict": "allow", "host": "a.test", "port": 443, "scheme": "https", "method": "GET"}
    found = usage(
        [
            {**request, "path": "/%61"},
            {**request, "path": "/a"},
            {**request, "path": "/@s%2fn"},
            {**request, "path": "/@s%2fn", "method": "PUT"},
            {**request, "path": "/**"},
            {**request, "path": "/a", "method": "get"},
            {**request, "path": "/a", "port": "443"},
            {**request, "path": "/a", "host": "192.0.2.1"},
            {**request, "path": "/a", "scheme": "ftp"},
            {**request, "path": "/denied", "verdict": "deny", "reason": "request-denied"},
        ]
    )
    assert [(each.method, each.path) for each in found.requests] == [("GET", "/a"), ("GET", "/@s%2fn")]
    assert len(found.unlearnt) == 6
    assert found.refused == ("GET https://a.test/denied (request-denied)",)
