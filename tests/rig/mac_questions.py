"""What nobody outside Apple knows for certain about Seatbelt, as profiles and probes that a Mac answers by itself.

Each question is a few rules and one act. Where the models of `seatbelt.model.models` disagree about it, `request`
is the same act for the evaluator, and `allowed_under` names the assumptions under which it is allowed: so a measured
answer says which models are left. Nothing here runs anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.seatbelt_model.models import Model, all_models
from tests.seatbelt_model.request import Request, bind, connect, file, listen

ALLOWED, DENIED = "allowed", "denied"
OPEN, SHUT = 24001, 24002  # ports that the rules name, and do not name
FOLDER = "/private/tmp/netsandbox-questions"
LINKED = "/tmp/netsandbox-questions"  # the same, by the link that every Mac has
BASE = "(version 1)\n(allow default)\n(deny network*)\n"  # on which all models agree
DOOR = f'(allow network-outbound (remote tcp "localhost:{OPEN}"))'
BIND = f'(allow network-bind (local ip "localhost:{OPEN}"))'
INBOUND = f'(allow network-inbound (local ip "localhost:{OPEN}"))'


@dataclass(frozen=True)
class Question:
    """`act` is a program of `PROGRAMS` with its arguments. `allowed_under` empty: all models allow it."""

    key: str
    asks: str
    rules: str
    act: tuple[str, ...]
    request: Request
    allowed_under: frozenset[str] = frozenset()

    @property
    def profile(self) -> str:
        return f"{BASE}{self.rules}\n"

    def allows(self, model: Model) -> bool:
        return not self.allowed_under or any(each.name in self.allowed_under for each in model.assumptions)


def left_by(answers: dict[str, str]) -> list[Model]:
    """The models that agree with every answer that was measured."""
    asked = [question for question in QUESTIONS if answers.get(question.key) in (ALLOWED, DENIED)]
    return [
        model
        for model in all_models()
        if all(question.allows(model) == (answers[question.key] == ALLOWED) for question in asked)
    ]


QUESTIONS = (
    Question(
        "door",
        "Is a port of localhost reached that a rule names?",
        DOOR,
        ("connect", "127.0.0.1", f"{OPEN}"),
        connect("127.0.0.1", OPEN),
    ),
    Question("door-ipv6", "Is it reached by ::1?", DOOR, ("connect", "::1", f"{OPEN}"), connect("::1", OPEN)),
    Question(
        "localhost-net",
        "Does localhost match 127.0.0.2?",
        DOOR,
        ("connect", "127.0.0.2", f"{OPEN}"),
        connect("127.0.0.2", OPEN),
        frozenset({"localhost-net", "localhost-own"}),
    ),
    Question(
        "localhost-mapped",
        "Does localhost match ::ffff:127.0.0.1?",
        DOOR,
        ("connect", "::ffff:127.0.0.1", f"{OPEN}"),
        connect("::ffff:127.0.0.1", OPEN),
        frozenset({"localhost-mapped", "localhost-own"}),
    ),
    Question(
        "localhost-own",
        "Does localhost match another address of this machine?",
        DOOR,
        ("connect", "own", f"{OPEN}"),
        connect("192.0.2.9", OPEN, own=True),
        frozenset({"localhost-own"}),
    ),
    Question(
        "bind-port",
        "Can bind be allowed for one port of localhost?",
        f"{BIND}\n{INBOUND}",
        ("bind", "127.0.0.1", f"{OPEN}"),
        bind("127.0.0.1", OPEN),
    ),
    Question(
        "listen-port",
        "Can listen be allowed for one port of localhost?",
        f"{BIND}\n{INBOUND}",
        ("listen", "127.0.0.1", f"{OPEN}", "listen"),
        listen("127.0.0.1", OPEN),
    ),
    Question(
        "bind-under-inbound",
        "Is bind allowed by a rule on network-inbound?",
        INBOUND,
        ("bind", "127.0.0.1", f"{OPEN}"),
        bind("127.0.0.1", OPEN),
        frozenset({"bind-under-inbound"}),
    ),
    Question(
        "local-outbound",
        "Does `local` on an outbound rule open every connection?",
        f'(allow network-outbound (local tcp "localhost:{OPEN}"))',
        ("connect", "127.0.0.1", f"{SHUT}"),
        connect("127.0.0.1", SHUT),
        frozenset({"local-opens-all"}),
    ),
    Question(
        "filtered-first",
        "Does an earlier rule with a filter beat a later one without?",
        f"{DOOR}\n(deny network-outbound)",
        ("connect", "127.0.0.1", f"{OPEN}"),
        connect("127.0.0.1", OPEN),
        frozenset({"filtered-first", "nearest-filtered"}),
    ),
    Question(
        "nearest-operation",
        "Does an earlier rule on the operation beat a later one on its parent?",
        f'(allow file-read-data (literal "{FOLDER}/near"))\n(deny file-read* (literal "{FOLDER}/near"))',
        ("read", f"{FOLDER}/near"),
        file("file-read-data", f"{FOLDER}/near"),
        frozenset({"nearest-operation", "nearest-filtered"}),
    ),
    Question(
        "paths-as-written",
        "Does a rule on /tmp, which is a link, match nothing?",
        f'(deny file-read-data (literal "{LINKED}/linked"))',
        ("read", f"{FOLDER}/linked"),
        file("file-read-data", f"{FOLDER}/linked"),
        frozenset({"paths-as-written"}),
    ),
)
BY_KEY = {question.key: question for question in QUESTIONS}

# What is measured in a way of its own, or is no matter of the models; by the name of its test.
OTHERS = {
    "bind-elsewhere": "Is bind refused on a port that no rule names, on all addresses, and on port 0?",
    "listen-needs-inbound": "Is listen refused where only bind is allowed?",
    "network-framework": "Are connections of Network.framework refused as others are?",
    "same-sandbox": "Is `same-sandbox` one session, or every process under an equal profile?",
    "hard-link": "Can a closed file be read under a second name?",
    "case": "Is a closed name closed in capitals too, where the disk ignores case?",
    "any-case": "Is a name closed in any case by the second rule for the working folder, and no longer name with it?",
    "true-path": "Does F_GETPATH tell a path as Seatbelt compares it, on disks that ignore case?",
    "utf-8": "Are letters beyond ASCII read as UTF-8 in literals?",
    "tiocsti": "Is typing into the terminal refused by a deny of file-ioctl?",
    "operations": "Which operations of netsandbox/backends/seatbelt/profile/operations.py does this macOS not know?",
    "session-profile": "Does Seatbelt take the profile of a session, with every switch?",
    "profile-length": "How long a profile does Seatbelt take?",
    "resolver": "Does getaddrinfo fail where the resolver is closed?",
    "proxy-by-name": "Is `localhost` in the proxy's URL found where the resolver is closed?",
    "ended-before": "Does kqueue tell of a process that ended before it was asked?",
    "foreign-signature": "Does the helper run as it was installed, and what does codesign say of it?",
    "library-programs": "Which programs does dyld load the library into, and do they survive it?",
    "shell-bridge": "Does a variable that /bin/sh or env sets reach what they start, and does /bin/ls survive it?",
    "violations": "Are refusals in the log in the form that violations.py reads?",
    "violation-tag": "Is the text of `(with message …)` the last line of each message about a refusal?",
    "log-delay": "Does `log stream` listen when it prints its first line, and how soon is a refusal told?",
}

CONNECT = """
import errno, socket, sys
host, port = sys.argv[1], int(sys.argv[2])
sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
sock.settimeout(5)
try:
    sock.connect((host, port))
    print("answer: connected")
except OSError as error:
    print("answer:", errno.errorcode.get(error.errno, type(error).__name__))
"""
BOUND = """
import errno, socket, sys
host, port = sys.argv[1], int(sys.argv[2])
sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    sock.bind((host, port))
    if sys.argv[3:] == ["listen"]:
        sock.listen()
    print("answer: done")
except OSError as error:
    print("answer:", errno.errorcode.get(error.errno, type(error).__name__))
"""
READ = """
import errno, sys
try:
    open(sys.argv[1], "rb").read()
    print("answer: read")
except OSError as error:
    print("answer:", errno.errorcode.get(error.errno, type(error).__name__))
"""
NETWORK_FRAMEWORK = """
import Foundation
import Network
let port = NWEndpoint.Port(rawValue: UInt16(CommandLine.arguments[1])!)!
let connection = NWConnection(host: "127.0.0.1", port: port, using: .tcp)
func leave(_ text: String) { print("answer: \\(text)"); fflush(stdout); exit(0) }
connection.stateUpdateHandler = { state in
    switch state {
    case .ready: leave("connected")
    case .waiting(let error): leave("waiting, \\(error)")
    case .failed(let error): leave("failed, \\(error)")
    default: break
    }
}
connection.start(queue: .global())
Thread.sleep(forTimeInterval: 10)
leave("nothing within ten seconds")
"""
SIGNAL = """
import errno, os, signal, sys
try:
    os.kill(int(sys.argv[1]), signal.SIGCONT)
    print("answer: sent")
except OSError as error:
    print("answer:", errno.errorcode.get(error.errno))
"""
LINK = """
import errno, os, sys
try:
    os.link(sys.argv[1], sys.argv[2])
    print("answer: linked and", "read" if open(sys.argv[2]).read() else "empty")
except OSError as error:
    print("answer:", errno.errorcode.get(error.errno))
"""
CREATE = """
import errno, sys
try:
    open(sys.argv[1], "w").close()
    print("answer: made")
except OSError as error:
    print("answer:", errno.errorcode.get(error.errno))
"""
TYPE = """
import errno, fcntl, os, pty, termios
pid, master = pty.fork()
if pid == 0:
    try:
        fcntl.ioctl(0, termios.TIOCSTI, b"x")
        said = "typed"
    except OSError as error:
        said = errno.errorcode.get(error.errno)
    os.write(1, f"<{said}>".encode())
    os._exit(0)
text = b""
try:
    while chunk := os.read(master, 100):
        text += chunk
except OSError:
    pass
os.waitpid(pid, 0)
print("answer:", text.decode().partition("<")[2].partition(">")[0])
"""
LOOKUP = """
import socket, sys
try:
    socket.getaddrinfo(sys.argv[1], 80)
    print("answer: an address")
except OSError as error:
    print("answer:", type(error).__name__, error.args[0])
"""
PROGRAMS = {"connect": CONNECT, "bind": BOUND, "listen": BOUND, "read": READ}
