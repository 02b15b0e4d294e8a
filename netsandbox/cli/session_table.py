"""Live sessions and their ports, for people and for programs. Pure: text and values out.

Names, commands and addresses come from sessions: everything is shown as printable ASCII (attack 172).
"""

from __future__ import annotations

from netsandbox.paths import short
from netsandbox.session.session_status import Status
from netsandbox.text import join_host_port, printable, shell_quoted

PS_TITLES = ("NAME", "AGE", "POLICY", "ALLOWED", "DENIED", "MEMORY", "PORTS", "COMMAND")
PORTS_TITLES = ("NAME", "INSIDE", "HOST ADDRESS", "URL", "PID", "PROGRAM")
PENDING_TITLES = ("ID", "ASKS FOR", "PROGRAM", "LEFT", "NAME", "SESSION")
# Which columns give way on a narrow terminal, first to last, and to what width: at 0 they go, since a stub of an id or
# an address is of no use. What is copied from the table stays whole the longest.
PS_YIELDING = ((7, 12), (2, 0), (7, 8), (5, 0), (3, 0), (4, 0), (1, 0), (7, 0), (0, 8), (6, 8))
PORTS_YIELDING = ((5, 0), (4, 0), (0, 8), (2, 0), (3, 8))
PENDING_YIELDING = ((5, 0), (4, 8), (2, 8), (4, 0), (2, 0), (3, 0))
SHOWN_PORTS = 4
TIME_PART = 18  # of a session id; more is shown where that is not unique
MAX_COMMAND = 500
NOTHING = "-"

Row = tuple[str, ...]


def ps_rows(sessions: list[Status], now: float) -> list[Row]:
    return [
        (
            printable(status["name"]),
            age(now - status["started"]),
            _policy(status),
            _shown(status["allowed"]),
            _shown(status["denied"]),
            memory_text(status.get("memory_bytes")),  # a watched list in a pipe has no figures
            _ports_text(status["ports"]),
            printable(" ".join(map(shell_quoted, status["command"]))[:MAX_COMMAND]),
        )
        for status in sessions
    ]


def _policy(status: Status) -> str:
    """The mode, and how many questions wait for the user."""
    waiting = len(status["pending"])
    return f"{_shown(status['mode'])}, {waiting} waiting" if waiting else _shown(status["mode"])


def port_entries(sessions: list[Status]) -> list[Status]:
    """Each published port with the session that it belongs to: what `ports --json` prints."""
    return [
        _entry(status, port) for status in sessions for port in sorted(status["ports"], key=lambda port: port["port"])
    ]


def unpublished(sessions: list[Status]) -> str | None:
    """Why no server of *sessions* is ever published; None if one can be. Older versions do not report it."""
    if not sessions or any(status.get("publishes") is not False for status in sessions):
        return None
    name = printable(sessions[0]["name"])
    if len(sessions) > 1:
        return "these sessions were started with --no-publish, so no port is published; start one without it"
    return f"session {name} was started with --no-publish, so no port is published; start it again without that option"


def first_entries(sessions: list[Status]) -> list[Status]:
    """Of each session the port that NAME.localhost leads to: a session lists the one that was published first first."""
    return [_entry(status, status["ports"][0]) for status in sessions if status["ports"]]


def _entry(status: Status, port: Status) -> Status:
    return {"session": status["session"], "name": status["name"], **port}


def port_rows(entries: list[Status]) -> list[Row]:
    return [
        (
            printable(entry["name"]),
            str(entry["port"]) if entry["address"] is None else address_text(entry["address"], entry["port"]),
            address_text(entry["host_address"], entry["host_port"]),
            _shown(entry["url"]),
            _shown(entry["pid"]),
            _program(entry["exe"]),
        )
        for entry in entries
    ]


def pending_entries(sessions: list[Status]) -> list[Status]:
    """Each pending approval with its session, as `pending --json` prints it. The first to expire comes first."""
    entries = [
        {"session": status["session"], "name": status["name"], "folder": status["folder"], **question}
        for status in sessions
        for question in status["pending"]
    ]
    return sorted(entries, key=lambda entry: (entry["until"], entry["id"]))


def pending_rows(entries: list[Status], now: float) -> list[Row]:
    short = short_ids(list({entry["session"] for entry in entries}))
    return [
        (
            str(entry["id"]),
            target_text(entry),
            _program(entry["exe"]),
            f"{max(0, int(entry['until'] - now))}s",
            printable(entry["name"]),
            printable(short[entry["session"]]),
        )
        for entry in entries
    ]


def target_text(entry: Status) -> str:
    """What is asked about."""
    if "path" in entry:
        return f"{entry['operation']} {printable(short(entry['path']))}{' (secret)' if entry['secret'] else ''}"
    return address_text(entry["host"], entry["port"])


def _program(exe: str | None) -> str:
    return _shown(exe and (exe.rstrip("/").rpartition("/")[2] or exe))


def short_ids(sessions: list[str]) -> dict[str, str]:
    """Each id shortened to a unique beginning, which `stop` and `ports` take."""
    length = TIME_PART
    longest = max(map(len, sessions), default=0)
    while length < longest and len({session[:length] for session in sessions}) < len(sessions):
        length += 1
    return {session: session[:length] for session in sessions}


def age(seconds: float) -> str:
    whole = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def memory_text(count: int | None) -> str:
    """In three digits or fewer, as `ls -h` writes it."""
    if count is None:
        return NOTHING
    amount, unit = count / 1024, "K"
    for larger in "MGT":
        if amount < 999.5:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f}{unit}" if amount < 9.95 and unit != "K" else f"{amount:.0f}{unit}"


def address_text(address: str, port: int) -> str:
    return printable(join_host_port(address, port))


def _shown(value: object) -> str:
    return NOTHING if value is None else printable(value)


def _ports_text(ports: list[Status]) -> str:
    """The link of the first port, which the session's name leads to, and the numbers of the others."""
    if not ports:
        return NOTHING
    first = f"{ports[0]['port']} {_shown(ports[0]['url'])}"
    others = [str(port["port"]) for port in ports[1:SHOWN_PORTS]]
    more = [f"+{len(ports) - SHOWN_PORTS}"] if len(ports) > SHOWN_PORTS else []
    return ", ".join([first, *others, *more])
