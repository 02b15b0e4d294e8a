"""Section C of the catalogue: SOCKS5 at the mixed door gives nothing that HTTP would not give."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rig.inside import Attack, attack

pytestmark = [pytest.mark.open_files, pytest.mark.usefixtures("user_namespaces")]


@pytest.fixture
def tried(netsandbox: Any, canary: Any, authority: Any) -> Any:
    """tried(script) -> the attack, with an echoing origin `good` behind allowed.test and a silent `bad` beside it."""
    good, bad = canary.tcp(echo=True), canary.tcp()
    authority.answer("*.test", "127.0.0.1")
    options = ["--allow-domain", f"allowed.test:{good.port}", "--upstream-dns", authority.address]
    options += ["--allow-address", f"127.0.0.1:{good.port}"]

    def run(script: str) -> Attack:
        done = attack(netsandbox, options, script, arguments={"good": good.port, "bad": bad.port})
        assert bad.accepts == 0
        return done

    return run


REQUEST = r"""
def request(host, port, kind=3, command=1):
    where = bytes([len(host)]) + host if kind == 3 else host
    return bytes([5, command, 0, kind]) + where + struct.pack("!H", port)

def session(*pieces, pause=0.0):
    # Everything the door says to these pieces.
    with dial() as sock:
        for piece in pieces:
            try:
                sock.sendall(piece)
            except OSError:
                break
            time.sleep(pause)
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return rest(sock)
"""


@pytest.mark.attack(45)
@pytest.mark.attack(53)
def test_45_53_a_greeting_without_an_acceptable_method_is_turned_down(tried: Any) -> None:
    script = """
out["none"] = session(b"\\x05\\x00")
out["unknown"] = [session(b"\\x05" + bytes([len(methods)]) + methods + request(b"denied.test", bad))
    for methods in (b"\\x01", b"\\x03\\x80", b"\\xff", b"\\x09" * 255)]
def login(user):
    return b"\\x01" + bytes([len(user)]) + user + b"\\x04pass" + request(b"denied.test", bad)
users = (b"x", b"other-session", b"\\xff" * 255, b"")
out["names"] = [session(b"\\x05\\x01\\x02", login(user), pause=0.05) for user in users]
out["twin"] = session(b"\\x05\\x01\\x00" + request(b"allowed.test", good) + b"\\x01payload")
"""
    out = tried(REQUEST + script).out
    assert out["none"] in ("", "\x05\xff")
    assert set(out["unknown"]) <= {"", "\x05\xff"}
    assert set(out["names"]) <= {"", "\x05\xff"}  # whoever he says he is, nobody listens
    assert out["twin"].endswith("\x01payload")


@pytest.mark.attack(47)
def test_47_an_address_is_judged_as_an_address_whatever_name_leads_there(tried: Any) -> None:
    script = """
out["four"] = socks(socket.inet_aton("192.0.2.1"), good, kind=1)
out["other_port"] = socks(socket.inet_aton("127.0.0.1"), bad, kind=1)
out["six"] = socks(socket.inet_pton(socket.AF_INET6, "2001:db8::1"), good, kind=4)
out["mapped"] = socks(socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"), bad, kind=4)
out["as_text"] = [socks(text, bad) for text in (b"127.0.0.1", b"127.1", b"[::1]", b"::1", b"2130706433", b"0x7f.1")]
out["twins"] = [socks(socket.inet_aton("127.0.0.1"), good, kind=1), socks(b"127.0.0.1", good),
    socks(socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"), good, kind=4)]
"""
    done = tried(REQUEST + script)
    assert done.out["twins"] == [0, 0, 0]
    denied = [done.out[name] for name in ("four", "other_port", "six", "mapped")] + done.out["as_text"]
    assert all(code not in (0, -1) for code in denied), denied
    assert len(done.denied(door="socks5")) == len(denied)


@pytest.mark.attack(48)
@pytest.mark.attack(49)
def test_48_49_only_connect_and_only_version_5(tried: Any) -> None:
    script = """
out["commands"] = [socks(b"allowed.test", good, command=command) for command in (2, 3, 0, 9, 255)]
where = socket.inet_aton("127.0.0.1")
out["four"] = [session(data) for data in (
    b"\\x04\\x01" + struct.pack("!H", good) + where + b"user\\0",
    b"\\x04\\x01" + struct.pack("!H", good) + b"\\0\\0\\0\\x01user\\0allowed.test\\0",
    b"\\x04\\x01" + struct.pack("!H", bad) + b"\\0\\0\\0\\x01\\0denied.test\\0allowed.test\\0",
)]
rest_of_it = b"\\x0callowed.test" + struct.pack("!H", good)
out["kinds"] = [session(b"\\x05\\x01\\x00", b"\\x05\\x01\\x00" + bytes([kind]) + rest_of_it) for kind in (0, 2, 5, 255)]
out["reserved"] = session(b"\\x05\\x01\\x00", b"\\x05\\x01\\x07\\x03\\x0cdenied.test." + struct.pack("!H", bad))
out["twin"] = socks(b"allowed.test", good)
"""
    out = tried(REQUEST + script).out
    assert all(code in (1, 7) for code in out["commands"]), out["commands"]
    assert out["four"] == ["", "", ""]
    assert all(not reply[2:].startswith("\x05\x00") for reply in (*out["kinds"], out["reserved"]))
    assert out["twin"] == 0


@pytest.mark.attack(2)
@pytest.mark.attack(50)
def test_50_a_handshake_in_any_pieces_is_the_same_handshake(tried: Any) -> None:
    script = """
good_one = b"\\x05\\x01\\x00" + request(b"allowed.test", good)
bad_one = b"\\x05\\x01\\x00" + request(b"denied.test", bad)
out["bytewise"] = session(*[bytes([byte]) for byte in good_one + b"\\x01hello"], pause=0.001)
out["bytewise_denied"] = session(*[bytes([byte]) for byte in bad_one + b"secret"], pause=0.001)
out["at_once"] = session(good_one + b"\\x01hello")
out["at_once_denied"] = session(bad_one + b"secret")
out["greeted_twice"] = session(b"\\x05\\x01\\x00\\x05\\x01\\x00" + request(b"allowed.test", good))
out["cut"] = [session(good_one[:cut]) for cut in range(1, len(good_one))]
out["nul"] = session(b"\\x05\\x01\\x00" + request(b"denied.test\\0.allowed.test", good))
out["empty"] = session(b"\\x05\\x01\\x00" + request(b"", good))
out["two"] = session(good_one + b"\\x01" + bad_one)
"""
    done = tried(REQUEST + script)
    out = done.out
    assert out["bytewise"].endswith("\x01hello")
    assert out["at_once"].endswith("\x01hello")
    refusals = [out[name] for name in ("bytewise_denied", "at_once_denied", "greeted_twice", "nul", "empty")]
    assert all(not reply[2:].startswith("\x05\x00") for reply in refusals)
    assert all(len(reply) <= 2 for reply in out["cut"])
    assert "\x05\x01\x00\x05\x01" in out["two"]  # the second handshake was payload, and came back as an echo
    assert {record["host"] for record in done.denied(reason="not-allowed")} == {"denied.test"}
