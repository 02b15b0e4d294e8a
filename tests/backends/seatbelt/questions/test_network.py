"""What a Mac's network does under a profile: listening, Network.framework, names. Traffic stays on this machine."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig.mac_questions import (
    ALLOWED,
    BASE,
    BIND,
    BY_KEY,
    DENIED,
    INBOUND,
    LOOKUP,
    NETWORK_FRAMEWORK,
    OPEN,
    PROGRAMS,
    SHUT,
)
from tests.rig.seatbelt_trial import FREE, confined, is_answer, on_a_mac, probe, verdict

pytestmark = on_a_mac
Answer = Callable[[str, str], None]
NO_RESOLVER = f'{BASE}(deny mach-lookup (global-name "com.apple.dnssd.service"))\n'


def test_bind_elsewhere(answer: Answer) -> None:
    profile = f"{BASE}{BIND}\n{INBOUND}\n"
    places = (("127.0.0.1", SHUT), ("0.0.0.0", OPEN), ("::", OPEN), ("::1", OPEN), ("127.0.0.1", 0))
    said = {f"[{host}]:{port}": probe(profile, PROGRAMS["bind"], host, str(port)) for host, port in places}
    answer("bind-elsewhere", ", ".join(f"{place} {what}" for place, what in said.items()))
    assert is_answer(*said.values())


def test_listen_needs_inbound(answer: Answer) -> None:
    said = verdict(probe(f"{BASE}{BIND}\n", PROGRAMS["listen"], "127.0.0.1", str(OPEN), "listen"))
    answer("listen-needs-inbound", f"listen is {said} where only bind is allowed")
    assert said in (ALLOWED, DENIED)


@pytest.mark.usefixtures("listeners")
def test_network_framework(answer: Answer, tmp_path: Path) -> None:
    """The interposer never sees these connections, so the profile alone has to hold."""
    if shutil.which("xcrun") is None:
        answer("network-framework", "not measured: no compiler for Swift")
        pytest.skip("there is no compiler for Swift on this Mac")
    source, program = tmp_path / "main.swift", tmp_path / "probe"
    source.write_text(NETWORK_FRAMEWORK)
    subprocess.run(["xcrun", "swiftc", "-o", program, source], check=True, timeout=300, capture_output=True)
    free = confined(FREE, str(program), str(SHUT)).stdout.strip()
    shut = confined(BASE, str(program), str(SHUT)).stdout.strip()
    door = confined(BY_KEY["door"].profile, str(program), str(OPEN)).stdout.strip()
    answer("network-framework", f"without rules {free}; with the network denied {shut}; at a door {door}")
    assert "connected" in free, "the probe itself does not work, so it says nothing about Seatbelt"
    assert shut.startswith("answer:")


def test_resolver(answer: Answer) -> None:
    """`.invalid` has no addresses anywhere; that the question is not even asked shows in the error and the time."""
    started = time.monotonic()
    free = probe(FREE, LOOKUP, "name.invalid")
    between = time.monotonic()
    shut = probe(NO_RESOLVER, LOOKUP, "name.invalid")
    ended = time.monotonic()
    told = f"free {free} ({between - started:.2f} s), with the resolver closed {shut} ({ended - between:.2f} s)"
    answer("resolver", told)
    assert is_answer(free, shut)


def test_proxy_by_name(answer: Answer) -> None:
    """The proxy's URL says `localhost`, and the file of hosts is what is left to find it by."""
    said = probe(NO_RESOLVER, LOOKUP, "localhost")
    answer("proxy-by-name", f"localhost, with the resolver closed: {said}")
    assert is_answer(said)
