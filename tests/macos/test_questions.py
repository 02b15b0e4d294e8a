"""What is marked as unknown about macOS, measured on a Mac: each test prints its answer and judges none of them.

A test fails only if its measurement says nothing. With NETSANDBOX_ANSWERS=FILE each answer is added to that file as one
JSON object a line. `pytest -s tests/macos/test_questions.py` shows them. Traffic stays on this machine.

The questions are tests/rig/mac_questions.py. On any system it is shown that each is well put: its profile can be read,
and the models of Seatbelt disagree about it in just the way that the answer would settle.
"""

from __future__ import annotations

import json
import os
import platform
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netsandbox.seatbelt import violations
from netsandbox.seatbelt.evaluator import evaluate
from netsandbox.seatbelt.models import all_models
from netsandbox.seatbelt.operations import KNOWN
from netsandbox.seatbelt.profile import load
from netsandbox.seatbelt.profile_settings import DOORS, NetworkSettings, ProfileSettings, resolve
from netsandbox.seatbelt.session_profile import session_profile
from netsandbox.seatbelt.switch_words import SWITCHES
from netsandbox.seatbelt.tag import new_tag, tagged
from tests.rig.mac_questions import (
    ALLOWED,
    BASE,
    BIND,
    BY_KEY,
    CREATE,
    DENIED,
    FOLDER,
    INBOUND,
    LINK,
    LOOKUP,
    NETWORK_FRAMEWORK,
    OPEN,
    OTHERS,
    PROGRAMS,
    QUESTIONS,
    READ,
    SHUT,
    SIGNAL,
    TYPE,
    Question,
    left_by,
)

ROOT = Path(__file__).resolve().parents[2]
SANDBOX_EXEC = "/usr/bin/sandbox-exec"
SECONDS = 30
on_a_mac = [
    pytest.mark.macos,
    pytest.mark.skipif(sys.platform != "darwin", reason="asks Seatbelt, which only a Mac has"),
]
Answer = Callable[[str, str], None]
ANSWERS: dict[str, str] = {}


def mac(test: Callable[..., None]) -> Callable[..., None]:
    for mark in on_a_mac:
        test = mark(test)
    return test


@pytest.fixture
def answer() -> Answer:
    """Tell what was measured: on the terminal, and in the file of answers."""

    def tell(key: str, said: str) -> None:
        ANSWERS[key] = said
        asks = BY_KEY[key].asks if key in BY_KEY else OTHERS.get(key, key)
        version = platform.mac_ver()[0]
        print(f"\nANSWER {key}: {said}\n       {asks} (macOS {version}, {platform.machine()})")
        if place := os.environ.get("NETSANDBOX_ANSWERS"):
            record = {"key": key, "asks": asks, "answer": said, "macos": version, "machine": platform.machine()}
            with Path(place).open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    return tell


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the files of the questions are, by the name that the profiles have."""
    place = Path(FOLDER)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    for name in ("near", "linked", "secret", "caf\u00e9"):
        (place / name).write_text("text")
    yield place.resolve()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def listeners() -> Iterator[None]:
    """Somebody answers on every address and both ports, so that a refusal is the kernel's."""
    opened = []
    for port in (OPEN, SHUT):
        sock = socket.socket(socket.AF_INET6)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(("::", port))
        sock.listen()
        opened.append(sock)
    yield
    for sock in opened:
        sock.close()


def confined(profile: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SANDBOX_EXEC, "-p", profile, *command], capture_output=True, text=True, timeout=SECONDS, check=False
    )


def probe(profile: str, code: str, *arguments: str) -> str:
    """What *code* answers under *profile*: a word, the name of an errno, or why there is no answer."""
    done = confined(profile, sys.executable, "-I", "-c", code, *arguments)
    found = re.search(r"^answer: (.+)$", done.stdout, re.MULTILINE)
    return found.group(1) if found else f"no answer, status {done.returncode}: {done.stderr.strip()[-300:]}"


def verdict(said: str) -> str:
    """Seatbelt refuses with EPERM, for files sometimes EACCES; any other outcome came after it had let the act pass."""
    if said.startswith("no answer"):
        return said
    return DENIED if said in ("EPERM", "EACCES") else ALLOWED


def own_address() -> str:
    """Chosen by the kernel for a way out; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this Mac has no network, and so no address but loopback")
        return str(sock.getsockname()[0])


@mac
@pytest.mark.parametrize("key", [key for key in BY_KEY if "bind" not in key and "listen" not in key])
@pytest.mark.usefixtures("listeners", "folder")
def test_a_question_of_the_models(answer: Answer, key: str) -> None:
    name, *arguments = BY_KEY[key].act
    given = [own_address() if each == "own" else each for each in arguments]
    said = verdict(probe(BY_KEY[key].profile, PROGRAMS[name], *given))
    answer(key, said)
    assert said in (ALLOWED, DENIED)


@mac
@pytest.mark.parametrize("key", [key for key in BY_KEY if "bind" in key or "listen" in key])
def test_a_question_of_the_models_about_listening(answer: Answer, key: str) -> None:
    name, *arguments = BY_KEY[key].act
    said = verdict(probe(BY_KEY[key].profile, PROGRAMS[name], *arguments))
    answer(key, said)
    assert said in (ALLOWED, DENIED)


@mac
def test_bind_elsewhere(answer: Answer) -> None:
    profile = f"{BASE}{BIND}\n{INBOUND}\n"
    places = (("127.0.0.1", SHUT), ("0.0.0.0", OPEN), ("::", OPEN), ("::1", OPEN), ("127.0.0.1", 0))
    said = {f"[{host}]:{port}": probe(profile, PROGRAMS["bind"], host, str(port)) for host, port in places}
    answer("bind-elsewhere", ", ".join(f"{place} {what}" for place, what in said.items()))
    assert not any(what.startswith("no answer") for what in said.values())


@mac
def test_listen_needs_inbound(answer: Answer) -> None:
    said = verdict(probe(f"{BASE}{BIND}\n", PROGRAMS["listen"], "127.0.0.1", str(OPEN), "listen"))
    answer("listen-needs-inbound", f"listen is {said} where only bind is allowed")
    assert said in (ALLOWED, DENIED)


@mac
@pytest.mark.usefixtures("listeners")
def test_network_framework(answer: Answer, tmp_path: Path) -> None:
    """The interposer never sees these connections, so the profile alone has to hold."""
    if shutil.which("xcrun") is None:
        answer("network-framework", "not measured: no compiler for Swift")
        pytest.skip("there is no compiler for Swift on this Mac")
    source, program = tmp_path / "main.swift", tmp_path / "probe"
    source.write_text(NETWORK_FRAMEWORK)
    subprocess.run(["xcrun", "swiftc", "-o", program, source], check=True, timeout=300, capture_output=True)
    free = confined("(version 1)\n(allow default)\n", str(program), str(SHUT)).stdout.strip()
    shut = confined(BASE, str(program), str(SHUT)).stdout.strip()
    door = confined(BY_KEY["door"].profile, str(program), str(OPEN)).stdout.strip()
    answer("network-framework", f"without rules {free}; with the network denied {shut}; at a door {door}")
    assert "connected" in free, "the probe itself does not work, so it says nothing about Seatbelt"
    assert shut.startswith("answer:")


@mac
def test_same_sandbox(answer: Answer) -> None:
    rules = "(deny signal)\n(allow signal (target self) (target same-sandbox))\n"
    profile = f"(version 1)\n(allow default)\n{rules}"
    other = subprocess.Popen([SANDBOX_EXEC, "-p", profile, "/bin/sleep", "60"])
    free = subprocess.Popen(["/bin/sleep", "60"])
    try:
        time.sleep(1)
        equal = probe(profile, SIGNAL, str(other.pid))
        different = probe(f"{profile}; another text\n", SIGNAL, str(other.pid))
        outside = probe(profile, SIGNAL, str(free.pid))
    finally:
        for child in (other, free):
            child.send_signal(signal.SIGKILL)
            child.wait()
    told = f"to a process under an equal profile {equal}, under another text {different}, under none {outside}"
    answer("same-sandbox", told)
    assert not any(said.startswith("no answer") for said in (equal, different, outside))


@mac
def test_hard_link(answer: Answer, folder: Path) -> None:
    closed = f'(deny file-read* file-write* (literal "{folder}/secret"))'
    first = probe(f"(version 1)\n(allow default)\n{closed}\n", LINK, f"{folder}/secret", f"{folder}/second")
    no_link = f"(version 1)\n(allow default)\n(deny file-link)\n{closed}\n"
    second = probe(no_link, LINK, f"{folder}/secret", f"{folder}/third")
    answer("hard-link", f"with the file closed {first}; with file-link denied too {second}")
    assert not first.startswith("no answer")


@mac
def test_case(answer: Answer, folder: Path) -> None:
    profile = f'(version 1)\n(allow default)\n(deny file-write* (literal "{folder}/.vscode"))\n'
    plain = probe(profile, CREATE, f"{folder}/.vscode")
    said = probe(profile, CREATE, f"{folder}/.VSCODE")
    ignores = (folder / "NEAR").exists()
    answer("case", f"in its own letters {plain}, in capitals {said}; the disk {'ignores' if ignores else 'minds'} case")
    assert not said.startswith("no answer")


@mac
def test_utf_8(answer: Answer, folder: Path) -> None:
    profile = f'(version 1)\n(allow default)\n(deny file-read-data (literal "{folder}/caf\u00e9"))\n'
    said = probe(profile, READ, f"{folder}/caf\u00e9")
    answer("utf-8", f"a closed name with a letter beyond ASCII: {said}")
    assert not said.startswith("no answer")


@mac
def test_tiocsti(answer: Answer) -> None:
    free = probe("(version 1)\n(allow default)\n", TYPE)
    shut = probe("(version 1)\n(allow default)\n(deny file-ioctl)\n", TYPE)
    answer("tiocsti", f"without a rule {free}, with file-ioctl denied {shut}")
    assert not free.startswith("no answer")


@mac
def test_operations(answer: Answer) -> None:
    unknown = []
    for name in sorted(KNOWN - {"default"}):
        done = confined(f"(version 1)\n(allow default)\n(allow {name})\n", "/usr/bin/true")
        if done.returncode:
            unknown.append(name)
    answer("operations", f"not known: {', '.join(unknown) or 'none'}")
    assert confined("(version 1)\n(allow default)\n(allow no-such-operation)\n", "/usr/bin/true").returncode


def session(folder: Path, switches: tuple[str, ...]) -> str:
    network = NetworkSettings(DOORS, OPEN, OPEN + 10, OPEN + 20, base=OPEN + 30, count=3, connect_host=(5432,))
    planned = ProfileSettings(
        str(folder),
        str(Path.home()),
        temporary=("/tmp",),
        executables=(sys.prefix,),
        network=network,
        switches=switches,
    )
    return tagged(session_profile(resolve(planned, os.path.realpath, os.path.isdir)), new_tag())


@mac
def test_session_profile(answer: Answer, tmp_path: Path) -> None:
    said = {}
    for switches in ((), *((each,) for each in SWITCHES), SWITCHES):
        done = confined(session(tmp_path, switches), "/usr/bin/true")
        said["+".join(switches) or "none"] = "taken" if done.returncode == 0 else done.stderr.strip()[-300:]
    answer("session-profile", "; ".join(f"switches {name}: {what}" for name, what in said.items()))
    assert set(said.values()) == {"taken"}


@mac
def test_resolver(answer: Answer) -> None:
    """`.invalid` has no addresses anywhere; that the question is not even asked shows in the error and the time."""
    closed = '(deny mach-lookup (global-name "com.apple.dnssd.service"))\n'
    started = time.monotonic()
    free = probe("(version 1)\n(allow default)\n", LOOKUP)
    between = time.monotonic()
    shut = probe(f"{BASE}{closed}", LOOKUP)
    ended = time.monotonic()
    told = f"free {free} ({between - started:.2f} s), with the resolver closed {shut} ({ended - between:.2f} s)"
    answer("resolver", told)
    assert not shut.startswith("no answer")


def lines_of_log(act: Callable[[], None]) -> bytes:
    """What `log stream` tells while *act* is done, for ten seconds at most."""
    watcher = subprocess.Popen(violations.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert watcher.stdout is not None
    text, ends, acted = b"", time.monotonic() + 10, False
    try:
        while time.monotonic() < ends and len(text) < 1 << 20:
            ready, _, _ = select.select([watcher.stdout], [], [], 0.5)
            if ready:
                text += os.read(watcher.stdout.fileno(), 65536)
            if not acted and (ready or time.monotonic() > ends - 7):
                acted = True
                act()
    finally:
        watcher.kill()
        watcher.wait()
        watcher.stdout.close()
    return text


@mac
def test_violations(answer: Answer, folder: Path) -> None:
    """By programs of the system and by our Python: the kernel is reported to leave out those of the latter."""
    profile = f'{BASE}(deny file-read-data (literal "{folder}/secret"))\n'

    def act() -> None:
        confined(profile, "/bin/cat", f"{folder}/secret")
        probe(profile, READ, f"{folder}/secret")
        probe(profile, PROGRAMS["connect"], "127.0.0.1", str(SHUT))
        confined(profile, "/usr/bin/nc", "-z", "-w", "1", "127.0.0.1", str(SHUT))

    text = lines_of_log(act)
    reader = violations.Reader()
    found = [each.fields() for each in reader.feed(text + b"\n")]
    for line in text.splitlines()[:8]:
        print(f"\nLINE {line[:2000]!r}")
    ours = [each for each in found if f"{folder}/secret" in str(each) or str(SHUT) in str(each)]
    answer("violations", f"{len(found)} read, {len(ours)} of them ours, {reader.dropped} not understood: {ours[:6]}")
    assert ours
    assert reader.dropped == 0


@mac
def test_violation_tag(answer: Answer, folder: Path) -> None:
    """By what a shell starts, after a long path, and often enough to be counted as repeats."""
    tag = new_tag()
    profile = tagged(f'{BASE}(deny file-read-data\n  (subpath "{folder}"))\n', tag)
    long = folder / "/".join(["n" * 200] * 4)
    long.parent.mkdir(parents=True)
    long.write_text("text")

    def act() -> None:
        confined(profile, "/bin/sh", "-c", f"for n in 1 2 3 4 5 6; do /bin/cat {folder}/secret; done")
        confined(profile, "/usr/bin/nc", "-z", "-w", "1", "127.0.0.1", str(SHUT))
        confined(profile, "/bin/cat", str(long))

    text = lines_of_log(act)
    everybody, own = violations.Reader(), violations.Reader(tag)
    ours = [each for each in everybody.feed(text + b"\n") if f"{folder}" in each.target or str(SHUT) in each.target]
    found = own.feed(text + b"\n")
    counted = sum(each.count > 1 for each in found)
    kept = any("n" * 200 in each.target for each in found)
    answer("violation-tag", f"{len(found)} of {len(ours)} have it, {counted} of them counts; after a long path: {kept}")
    assert found


@mac
def test_which_models_are_left(answer: Answer) -> None:
    """Last: what the answers above leave of the 256 models. If nothing is left, something is in no model."""
    if not set(BY_KEY) <= set(ANSWERS):
        pytest.skip("run the whole file: the answers of the other tests are needed")
    left = left_by(ANSWERS)
    told = " | ".join(model.name for model in left[:8])
    answer("models", f"{len(left)} of {len(list(all_models()))} models are left: {told}")
    assert left


@pytest.mark.parametrize("question", QUESTIONS, ids=BY_KEY)
def test_a_question_is_well_put(question: Question) -> None:
    """Its profile can be read, and its answer settles just what it says."""
    profile = load(question.profile)
    assert profile.faults == ()
    for model in all_models():
        assert evaluate(profile, question.request, model).allowed == question.allows(model), model.name


def test_every_disputed_answer_is_asked_for() -> None:
    """Each measured, the answers leave models that differ only in what a request does not say."""
    for wanted in all_models():
        answers = {question.key: ALLOWED if question.allows(wanted) else DENIED for question in QUESTIONS}
        assert wanted in left_by(answers)
        assert len({model.assumptions[:-1] for model in left_by(answers)}) == 1


def test_the_page_on_macos_names_every_question_and_no_other() -> None:
    page = (ROOT / "docs/platform-macos.md").read_text("utf-8")
    table = page.partition("| question | key |")[2].partition("\n\n")[0]
    assert set(re.findall(r"\| `([a-z0-9-]+)` \|", table)) == set(BY_KEY) | set(OTHERS)
    tests = {name.removeprefix("test_").replace("_", "-") for name in globals() if name.startswith("test_")}
    assert set(OTHERS) <= tests
