"""What a user reads after a run: one line a host, with what to do about it."""

from __future__ import annotations

from netsandbox.api import Denial
from netsandbox.cli.denials import MAX_LINES, denial_lines


def denial(host: str | None, port: int | None = 443, reason: str = "not-allowed", flag: str | None = "--x") -> Denial:
    return Denial(host, port, reason, flag, 1)


def test_a_line_names_host_port_reason_and_the_option_that_would_allow_it() -> None:
    lines = denial_lines([denial("denied.test", 8443, flag="--allow-domain denied.test:8443")])
    assert lines == ["denied denied.test:8443 (not-allowed); allow it with --allow-domain denied.test:8443"]


def test_where_no_option_helps_the_line_says_so() -> None:
    (line,) = denial_lines([denial("resolver.test", reason="doh-endpoint", flag=None)])
    assert "no option" in line
    assert "--allow" not in line


def test_a_host_refused_at_several_doors_gets_one_line_the_one_with_the_port() -> None:
    lines = denial_lines([denial("a.test", None), denial("a.test", 443), denial("a.test", 80), denial("b.test", None)])
    assert [line.split()[1] for line in lines] == ["a.test:443", "b.test"]


def test_a_refused_unix_socket_or_a_record_without_a_host_is_left_to_the_log() -> None:
    assert denial_lines([denial("nscd", reason="unix-socket"), denial(None)]) == []


def test_what_seatbelt_refused_on_the_network_gets_a_line_by_address_or_port() -> None:
    refused = [denial(None, 443, "seatbelt", None), denial("2001:db8::7", 22, "seatbelt", None)]
    lines = denial_lines([*refused, denial(None, 443, "seatbelt", None)])
    assert [line.partition(";")[0] for line in lines] == [
        "denied port 443 (seatbelt)",
        "denied [2001:db8::7]:22 (seatbelt)",
    ]
    assert all("netsandbox audit" in line for line in lines)


def test_a_file_that_seatbelt_refused_is_left_to_the_log() -> None:
    assert denial_lines([denial(None, None, "seatbelt", None)]) == []


def test_a_flood_of_hosts_is_cut_and_counted() -> None:
    lines = denial_lines(denial(f"n{number}.test") for number in range(MAX_LINES + 5))
    assert len(lines) == MAX_LINES + 1
    assert "5 more" in lines[-1]
    assert "netsandbox audit" in lines[-1]


def test_nothing_denied_nothing_said() -> None:
    assert denial_lines([]) == []
