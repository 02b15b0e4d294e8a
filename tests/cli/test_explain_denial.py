"""`netsandbox explain --last`: a past denial in words, with the smallest change; whatever stands in the log."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit import placed_log
from netsandbox.audit.log import AuditLog
from netsandbox.cli import explain
from netsandbox.cli.explain_denial import denial_json, denial_lines, explain_record, last_denial
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import PACKAGE, list_sessions, log_path, new_session_id
from netsandbox.policy import reasons
from netsandbox.policy.budgets import parse_budgets
from netsandbox.policy.inspection import inspection
from netsandbox.policy.policy import Policy
from netsandbox.policy.rules import parse_domain

ENVELOPE = {"v": 1, "ts": "2025-01-31T11:55:00.000000Z", "seq": 7, "session": "s", "prev": ""}
DENIED = {**ENVELOPE, "event": "egress", "verdict": "deny", "host": "a.test", "port": 443, "reason": "not-allowed"}
FILE = "/project/.netsandbox.toml"
WHEN = "when      2025-01-31T11:55:00.000000Z, record 7 of session s"


def lines(entry: dict[str, object], policy: Policy | None = None) -> list[str]:
    return denial_lines(explain_record(entry, policy or Policy()), FILE)


def test_people_read_what_when_why_and_both_ways_to_change_it() -> None:
    assert lines({**DENIED, "exe": "/bin/curl", "pid": 9}, Policy(["b.test"])) == [
        "denied    a.test:443, by /bin/curl (pid 9)",
        WHEN,
        "why       not-allowed: no rule allows this host",
        "to allow  netsandbox run --allow-domain a.test",
        f'or write  allow_domains = ["a.test"] below [network] in {FILE}, then `netsandbox trust`',
        "now       denied by the policy as it is now: no rule allows this host",
    ]


def test_the_rule_is_named_with_the_place_where_it_stands_now() -> None:
    entry = {**DENIED, "reason": "deny-rule", "rule": "*.test"}
    assert lines(entry, Policy(deny_domains=["*.test"]))[2:] == [
        "why       deny-rule: a deny rule names it",
        "rule      *.test (deny_domains, in the policy as it is now)",
        "to do     remove *.test from the deny rules (deny_domains)",
        "now       denied by the policy as it is now: a deny rule names it: *.test (deny_domains)",
    ]
    assert "rule      *.test (not in the policy as it is now)" in lines(entry)


def test_what_is_allowed_by_now_is_said_to_be() -> None:
    assert lines(DENIED, Policy(["a.test"]))[-1] == (
        "now       allowed by the policy as it is now: a rule allows it: a.test (allow_domains)"
    )


@pytest.mark.parametrize("reason", ["not-allowed", "port-not-allowed", "address-guard", "sni-mismatch"])
def test_a_run_with_options_is_not_explained_by_their_absence(reason: str) -> None:
    entry = {**DENIED, "reason": reason, "address": "10.0.0.1"}
    assert not any(line.startswith("now ") for line in lines(entry))
    closed = Policy(mode="offline", mode_origin=f"{FILE}:2")
    assert lines(entry, closed)[-1].startswith("now       denied by the policy as it is now: the session is offline")
    denied = Policy(deny_domains=["a.test"])
    assert lines(entry, denied)[-1].startswith("now       denied by the policy as it is now: a deny rule names it")


def test_a_host_that_was_allowed_and_not_reached_is_not_denied() -> None:
    for reason in ("lookup-failed", "unreachable"):
        shown = lines({**DENIED, "reason": reason, "exe": "/bin/curl"})
        assert shown[0] == "allowed   a.test:443, but it was not reached, by /bin/curl"
        assert shown[2].startswith(f"why       {reason}: it is allowed")
        assert shown[-1] == (
            "now       denied by the policy as it is now, without the options of that run: "
            "the session is offline, so nothing leaves"
        )


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        ({"reason": "port-not-allowed", "port": 8443}, ("--allow-domain a.test:8443", "allow_domains")),
        (
            {"reason": "address-literal", "host": "2001:db8::1"},
            ("--allow-address '[2001:db8::1]:443'", "allow_addresses"),
        ),
        ({"reason": "address-guard", "address": "10.0.0.1"}, ("--allow-address 10.0.0.1:443", "allow_addresses")),
        (
            {"event": "socket", "reason": "unix-socket", "path": "/run/a b"},
            ("--allow-unix-socket '/run/a b'", "allow_unix_sockets"),
        ),
        ({"event": "dns", "reason": "query-type", "qtype": "TXT"}, ("--allow-query-type TXT", "allow_query_types")),
        (
            {"event": "exec", "reason": "not-listed", "operation": "execute", "path": "/gone/tool"},
            ("--allow-execute /gone/tool", "allow_execute"),
        ),
    ],
)
def test_the_smallest_change_fits_the_reason(entry: dict[str, object], change: tuple[str, str]) -> None:
    shown = lines({**DENIED, **entry})
    assert f"to allow  netsandbox run {change[0]}" in shown
    assert any(line.startswith(f"or write  {change[1]} = [") for line in shown)


def test_a_rule_that_its_own_file_would_close_again_is_not_advised_alone() -> None:
    entry = {**DENIED, "reason": "offline"}
    written = f'or write  allow_domains = ["a.test"] below [network] in {FILE}'
    for origin, also in ((f"{FILE}:2", f", remove its mode ({FILE}:2)"), ("/home/me/config.toml:2", ""), ("", "")):
        assert f"{written}{also}, then `netsandbox trust`" in lines(entry, Policy(mode="offline", mode_origin=origin))
    assert f"{written}, then `netsandbox trust`" in lines(entry, Policy([parse_domain("a.test:22", f"{FILE}:3")]))
    bound = lines(entry, Policy(mode="offline", mode_origin="/etc/netsandbox/config.toml:2"))
    assert "to allow  no option allows it" in bound


@pytest.mark.parametrize("reason", sorted(reasons.ALL - reasons.ALLOWING))
def test_every_reason_has_something_to_do_or_says_that_nothing_helps(reason: str) -> None:
    shown = lines({**DENIED, "reason": reason})
    assert any(line.startswith(("to allow  ", "to do     ")) for line in shown)


def test_an_address_behind_an_allowed_name_is_judged_again() -> None:
    entry = {**DENIED, "reason": "address-guard", "address": "10.0.0.1"}
    assert "now       denied" in lines(entry, Policy(["a.test"]))[-1]
    assert "now       allowed" in lines(entry, Policy(["a.test"], allow_addresses=["10.0.0.1:443"]))[-1]


def test_the_last_denial_is_one_that_somebody_wonders_about() -> None:
    noise = {**DENIED, "event": "socket", "reason": "unix-socket", "host": None}
    assert last_denial([DENIED, noise]) == DENIED
    assert last_denial([noise]) == noise
    assert last_denial([{**DENIED, "verdict": "allow"}]) is None


VALUES: Any = (
    st.none() | st.integers() | st.text(max_size=12) | st.sampled_from(["a.test", "10.0.0.1", "--x", "\x1b[2J"])
)
NAMES = ("host", "port", "address", "reason", "rule", "hint", "exe", "pid", "path", "qtype", "detail", "verdict", "ts")


@pytest.mark.attack(172)
@pytest.mark.parametrize("path", ["/run/\x1b[2J", "/run/\u202e", "run", "@abstract"])
def test_172_a_path_that_could_write_to_the_terminal_is_no_advice(path: str) -> None:
    shown = lines({**DENIED, "event": "socket", "reason": "unix-socket", "path": path})
    assert all(line.isascii() and line.isprintable() for line in shown)
    assert not any(line.startswith(("to allow", "or write")) for line in shown)


@pytest.mark.attack(172)
@given(
    st.dictionaries(st.sampled_from(NAMES), VALUES),
    st.sampled_from(["egress", "dns", "udp", "socket", "seatbelt", "bind", "policy"]),
    st.sampled_from(sorted(reasons.ALL)),
)
def test_172_no_log_can_write_to_the_terminal_or_suggest_what_is_no_rule(
    fields: dict[str, object], event: str, reason: str
) -> None:
    past = explain_record({**DENIED, "event": event, "reason": reason, **fields}, Policy(["a.test"]))
    for line in denial_lines(past, FILE):
        assert line.isascii()
        assert line.isprintable()
    json.dumps(denial_json(past))
    if past.change is not None:
        option, value = past.change
        field = {"--allow-domain": "allow_domains", "--allow-address": "allow_addresses"}.get(option)
        if field is not None:
            Policy(**{field: [value]})  # type: ignore[arg-type]  # raises if it is no rule


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def session(folder: Path, host: str) -> str:
    name = new_session_id()
    while any(name < older for older in list_sessions()):  # those of one millisecond are in no order
        name = new_session_id()
    log = AuditLog.open(log_path(name), name)
    log.write("session.start", folder=str(folder))
    log.write("egress", verdict="deny", reason="not-allowed", host=host, port=443)
    log.write("session.end", status=0)
    log.close()
    return name


def test_by_default_it_is_the_newest_session_of_this_folder(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session(project, "old.test")
    session(project, "new.test")
    other = session(project.parent, "other.test")
    assert explain.main(["--last"]) == 1
    assert capsys.readouterr().out.startswith("denied    new.test:443\n")
    assert explain.main(["--last", other]) == 1
    assert capsys.readouterr().out.startswith("denied    other.test:443\n")
    assert explain.main(["--event", "2", "--json", other]) == 1
    assert json.loads(capsys.readouterr().out)["value"] == "other.test"


def test_a_newer_session_that_placed_its_log_is_found_by_its_note(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = session(project, "usual.test")
    log = tmp_path / "placed.jsonl"
    logs = [Path(log_path(session(project, host))) for host in ("first.test", "second.test")]
    log.write_bytes(b"".join(each.read_bytes() for each in logs))
    newest = list_sessions()[0]
    for name in list_sessions():
        if name != usual:
            shutil.rmtree(Path(log_path(name)).parent)
    placed_log.note(newest, str(log))
    assert explain.main(["--last"]) == 1
    assert capsys.readouterr().out.startswith("denied    second.test:443\n")
    assert explain.main(["--event", "2"]) == 1
    assert capsys.readouterr().out.startswith("denied    second.test:443\n")
    for unfit in (tmp_path / "absent", tmp_path):
        placed_log.note(newest, str(unfit))
        assert explain.main(["--last"]) == 1
        assert capsys.readouterr().out.startswith("denied    usual.test:443\n")
    monkeypatch.chdir(tmp_path)
    placed_log.note(newest, str(log))
    with pytest.raises(NetsandboxError, match="no session of this folder"):
        explain.main(["--last"])


def test_what_cannot_be_found_is_said_with_what_to_do(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NetsandboxError, match=r"no session of this folder has left a log; go to the folder"):
        explain.main(["--last"])
    session(project, "a.test")
    with pytest.raises(NetsandboxError, match=r"no session is called 'nosuch'; .*`netsandbox explain --last PATH`"):
        explain.main(["--last", "nosuch"])
    with pytest.raises(NetsandboxError, match="has no record 99"):
        explain.main(["--event", "99"])
    with pytest.raises(UsageError, match=r"is of the kind session\.start"):
        explain.main(["--event", "1"])
    with pytest.raises(UsageError, match="not the number of a record"):
        explain.main(["--event", "x"])


def test_a_session_without_denials_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = new_session_id()
    log = AuditLog.open(log_path(name), name)
    log.write("session.start", folder=str(project))
    log.close()
    assert explain.main(["--last"]) == 0
    assert capsys.readouterr().out.startswith("nothing was denied in the session of ")


def test_a_refused_file_has_the_option_and_its_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    entry = {**ENVELOPE, "event": "file", "verdict": "deny", "reason": "not-shown", "operation": "read"}
    told = lines({**entry, "path": f"{tmp_path}/Documents/plan.md", "exe": "/bin/cat"})
    assert told[0] == "denied    reading ~/Documents/plan.md, by /bin/cat"
    assert told[3] == "to allow  netsandbox run --allow-read ~/Documents/plan.md"
    table = f'allow_read = ["~/Documents/plan.md"] below [filesystem] in {FILE}'
    assert told[4] == f"or write  {table}, then `netsandbox trust`"
    written = explain_record({**entry, "operation": "make", "path": f"{tmp_path}/Documents/x"}, Policy())
    assert denial_json(written)["key"] == "filesystem.allow_write"


@pytest.mark.parametrize("path", ["relative", "/a\x1bb", "/" + "x" * 501, None])
def test_a_path_that_cannot_be_an_option_has_none(path: str | None) -> None:
    entry = {**ENVELOPE, "event": "file", "verdict": "deny", "reason": "not-shown", "operation": "read", "path": path}
    assert explain_record(entry, Policy()).change is None


def test_nothing_is_advised_for_a_part_of_netsandbox() -> None:
    entry = {**ENVELOPE, "event": "file", "verdict": "deny", "reason": "read-only", "operation": "change"}
    explained = explain_record({**entry, "path": f"{os.path.realpath(PACKAGE)}/api.py"}, Policy())
    assert (explained.change, explained.advice) == (None, "no option allows it, because it belongs to netsandbox")


def test_a_start_up_file_does_not_hide_another_denial(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    quiet = {**ENVELOPE, "event": "file", "verdict": "deny", "path": f"{tmp_path}/.bashrc"}
    assert last_denial([DENIED, quiet]) == DENIED
    assert last_denial([quiet]) == quiet


def test_a_file_that_a_rule_denies_names_the_rule_and_its_removal() -> None:
    entry = {**ENVELOPE, "event": "file", "verdict": "deny", "reason": "deny-rule", "operation": "change"}
    explained = explain_record({**entry, "path": "/srv/a/b", "rule": "--deny-write /srv/a"}, Policy())
    lines = denial_lines(explained, FILE)
    assert "rule      --deny-write /srv/a" in lines
    assert lines[-1] == "to do     leave out --deny-write /srv/a"
    without = denial_lines(explain_record({**entry, "path": "/srv/a/b"}, Policy()), FILE)
    assert not any("--allow-" in line for line in without)


def test_a_budget_is_named_with_what_was_used() -> None:
    entry = {**DENIED, "reason": "budget", "rule": "a.test=1kB", "detail": "1 kB up and 0 B down"}
    policy = Policy(["a.test"], budgets=parse_budgets([("a.test=1kB", "--budget")]))
    assert lines(entry, policy)[2:] == [
        "why       budget: a budget for this host, or for the session, is used up",
        "detail    1 kB up and 0 B down",
        "rule      a.test=1kB (--budget, in the policy as it is now)",
        "to do     start the session with a larger budget than --budget a.test=1kB",
    ]


REQUEST = {
    **{**DENIED, "event": "http", "reason": "request-not-allowed", "scheme": "https", "method": "POST"},
    "path": "/v1/it's",
}


def test_a_refused_request_is_explained_with_its_rule() -> None:
    policy = Policy(inspection=inspection([("GET https://a.test/v1/**", "here:3")]))
    written = """allow_http = ["POST https://a.test/v1/it's"]"""
    assert lines({**REQUEST, "exe": "/bin/curl"}, policy) == [
        "denied    POST https://a.test/v1/it's, by /bin/curl",
        WHEN,
        "why       request-not-allowed: rules allow some requests to this host, but not this one",
        """to allow  netsandbox run --allow-http 'POST https://a.test/v1/it'"'"'s'""",
        f"or write  {written} below [network] in {FILE}, then `netsandbox trust`",
        "now       denied by the policy as it is now: rules allow some requests to this host, but not this one",
    ]
    allowed = Policy(inspection=inspection([("https://a.test/v1/**", "here:3")]))
    assert lines(REQUEST, allowed)[-1].startswith("now       allowed by the policy as it is now: ")
    assert denial_json(explain_record(REQUEST, policy))["value"] == "POST https://a.test/v1/it's"


def test_a_request_that_a_rule_denies_is_explained_by_the_rule() -> None:
    rule = "POST https://a.test/**"
    policy = Policy(inspection=inspection([("https://a.test/**", "here:3")], [(rule, "here:4")]))
    assert lines({**REQUEST, "reason": "request-denied", "rule": rule}, policy)[2:] == [
        "why       request-denied: a rule for requests denies it",
        f"rule      {rule} (here:4, in the policy as it is now)",
        f"to do     remove {rule} from the deny rules (here:4)",
        f"now       denied by the policy as it is now: a rule for requests denies it: {rule} (here:4)",
    ]
    unclear = lines({**REQUEST, "reason": "request-unclear", "path": "/a//b"}, policy)
    assert unclear[3].startswith("to do     send the path without ")


@given(
    st.dictionaries(st.sampled_from(["scheme", "method", "path", "host", "port", "rule"]), st.text() | st.integers())
)
def test_whatever_a_record_of_a_request_has(fields: dict[str, Any]) -> None:
    policy = Policy(inspection=inspection([("GET https://a.test/v1/**", "here:3")]))
    shown = lines({**REQUEST, **fields}, policy)
    assert all(line.isprintable() and line.isascii() for line in shown)
