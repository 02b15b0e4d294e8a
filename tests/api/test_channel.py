"""Request and report: everything that a sandbox was given arrives at its supervisor, and errors arrive here."""

from __future__ import annotations

import gc
import marshal
import os
import pickle
from typing import Any

import pytest

from netsandbox import Denial, FileDenial, LocalhostSettings, Policy, RunSettings, file_rules
from netsandbox.api.channel import Channel
from netsandbox.errors import CommandError, HostError, NetsandboxError, UsageError
from netsandbox.policy.names import canonical
from netsandbox.policy.variables import Layer
from netsandbox.policy.verdict import Request

POLICY = Policy(["*.example.com:8443", "example.org"], ["bad.example.com"], ["192.0.2.0/24:*"], default_ports=[443])
SETTINGS = RunSettings(
    files=file_rules("readable", allow_read=["~/x*"], deny_write=["y/"]),
    variables=(Layer(passed=("A",)),),
    localhost=LocalhostSettings(strategy="fail", count=3),
    limits=(("memory", 1),),
)


def request_of(channel: Channel) -> Any:
    file = channel.descriptors[0]
    return pickle.loads(os.pread(file, os.fstat(file).st_size, 0))


def report(channel: Channel, value: Any) -> None:
    os.ftruncate(channel.descriptors[0], 0)
    os.pwrite(channel.descriptors[0], marshal.dumps(value), 0)


@pytest.mark.parametrize("in_memory", [True, False])
def test_policy_and_settings_arrive_as_they_are(in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:  # as on a Mac
        monkeypatch.delattr(os, "memfd_create", raising=False)
    channel = Channel(POLICY, SETTINGS, ["sh", "-c", "é\udcff"], {"A": "b\udcff"})
    session, policy, settings, words, environment = request_of(channel)
    assert (session, settings, words) == (channel.session, SETTINGS, ["sh", "-c", "é\udcff"])
    assert environment == {b"A": b"b\xff"}
    assert repr(policy.allow_domains) == repr(POLICY.allow_domains)
    assert (policy.mode, policy.default_ports) == (POLICY.mode, (443,))
    for host, port in ((b"a.example.com", 8443), (b"bad.example.com", 8443), (b"example.org", 80), (b"192.0.2.7", 9)):
        asked = Request(canonical(host), port, "tcp")
        assert policy.decide(asked) == POLICY.decide(asked)
    assert request_of(Channel(POLICY, SETTINGS, ["sh"], None))[4] is None  # after a decision too


def test_a_report_becomes_an_outcome() -> None:
    channel = Channel(POLICY, SETTINGS, ["sh"], None)
    denied, file = ("example.net", 443, "not-allowed", None, 2), ("/x", "read", 1, "hidden", None)
    report(channel, (3, [denied], [file], ("/kept",)))
    outcome = channel.outcome(3)
    assert (outcome.returncode, outcome.denied, outcome.kept) == (3, (Denial(*denied),), ("/kept",))
    assert outcome.denied_files == (FileDenial(*file),)


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (("CommandError", "x", 127), FileNotFoundError),
        (("CommandError", "x", 126), PermissionError),
        (("CommandError", "x", 125), CommandError),
        (("UsageError", "x", 2), UsageError),
        (("HostError", "x", 1), HostError),
        (("Unheard", "x", 1), HostError),
    ],
)
def test_errors_arrive_with_their_kind_and_text(told: Any, kind: type[Exception]) -> None:
    channel = Channel(POLICY, SETTINGS, ["sh"], None)
    report(channel, told)
    with pytest.raises(kind, match=r"^x$") as caught:
        channel.outcome(told[2])
    assert isinstance(caught.value, NetsandboxError)
    assert caught.value.status == told[2]


@pytest.mark.parametrize("size", [0, 1, 9])
def test_a_report_that_is_missing_or_cut_short_counts_as_none(size: int) -> None:
    channel = Channel(POLICY, SETTINGS, ["sh"], None)
    report(channel, (0, [], [], ()))
    os.ftruncate(channel.descriptors[0], size)
    with pytest.raises(HostError, match="status 0 and without a report"):
        channel.outcome(0)
    assert channel.outcome(-9).returncode == -9


def test_nothing_stays_open() -> None:
    gc.collect()  # channels of other tests
    before = os.listdir("/dev/fd")
    channel = Channel(POLICY, SETTINGS, ["sh"], None)
    channel.started()
    channel.cut()  # nobody reads it any more
    channel.close()
    channel.cut()
    with pytest.raises(TypeError):
        Channel(POLICY, SETTINGS, [object()], None)  # type: ignore[list-item]
    assert os.listdir("/dev/fd") == before
