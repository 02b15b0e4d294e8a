"""The usage of a run, from the records of its log. Pure.

Only allowed destinations become a proposal. Refused ones, and names that were only looked up, are reported to the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from netsandbox.audit.record_line import ALLOW, DENY, MAX_TEXT
from netsandbox.audit.requests import HTTP, request_text
from netsandbox.frozen import frozen
from netsandbox.learn.request_folding import SAFE_METHODS, LearntRequest
from netsandbox.policy import reasons
from netsandbox.policy.address_guard import LOOPBACK, guarded
from netsandbox.policy.decision import is_loopback_name
from netsandbox.policy.file_rules import CHANGE, FOLDER, MAKE, READING
from netsandbox.policy.http_paths import canonical_path
from netsandbox.policy.http_rules import PORTS, is_token
from netsandbox.policy.ip import parse
from netsandbox.policy.names import BadName, canonical
from netsandbox.policy.path_folding import MANY
from netsandbox.text import printable_place

UNREACHED = (reasons.LOOKUP_FAILED, reasons.UNREACHABLE)
MAX_ENTRIES = 2000  # destinations that are kept; a command with more needs online mode


@frozen
class Usage:
    """Each list is without repeats, in the order of time; names are canonical."""

    names: tuple[tuple[str, int], ...] = ()  # connected to, by name
    addresses: tuple[tuple[str, int], ...] = ()  # dialled, whether by name or not
    literals: tuple[tuple[str, int], ...] = ()  # connected to without a name
    requests: tuple[LearntRequest, ...] = ()  # of inspected connections
    unlearnt: tuple[str, ...] = ()  # requests that no rule can name, in words
    looked_up: tuple[str, ...] = ()  # and never connected to
    denied_names: tuple[str, ...] = ()  # by the user's deny rules
    host_ports: tuple[int, ...] = ()  # ports of the host's loopback, refused
    unix_sockets: tuple[str, ...] = ()  # sockets of the host, refused
    unreached: tuple[str, ...] = ()  # allowed, but not found or not answering
    refused: tuple[str, ...] = ()  # other refusals, in words
    written: tuple[tuple[str, str], ...] = ()  # paths, each with the operation, as far as the user may do it
    read: tuple[str, ...] = ()  # paths that exist, and that the session does not see
    secrets: tuple[str, ...] = ()  # hidden paths that it tried to open
    more: bool = False  # there were more destinations than are kept
    more_paths: bool = False  # there were more written paths than are kept


def usage(records: Iterable[Mapping[str, object]]) -> Usage:
    """From the records of one session."""
    found = _Found()
    for entry in records:
        found.take(entry)
    return found.usage()


class _Found:
    def __init__(self) -> None:
        self._lists: dict[str, dict[object, None]] = {name: {} for name, value in vars(Usage()).items() if value == ()}
        self._unreached: set[str] = set()
        self._more = self._more_paths = False

    def take(self, entry: Mapping[str, object]) -> None:
        event, verdict = entry.get("event"), entry.get("verdict")
        if verdict == ALLOW and event == "egress":
            self._connected(entry)
        elif verdict == ALLOW and event == HTTP:
            self._requested(entry)
        elif verdict == ALLOW and event == "dns":
            name = _name(entry.get("host"))
            if name is not None and not is_loopback_name(name):
                self._add("looked_up", name)
        elif event in ("file", "exec"):
            self._file(entry)
        elif verdict == DENY:
            self._refused(entry)

    def usage(self) -> Usage:
        connected = {name for name, _ in self._lists["names"]}  # type: ignore[misc, has-type]
        looked_up = [name for name in self._lists["looked_up"] if name not in connected | self._unreached]
        lists = {name: tuple(found) for name, found in self._lists.items()}
        return Usage(
            **{**lists, "looked_up": tuple(looked_up)},  # type: ignore[arg-type]
            more=self._more,
            more_paths=self._more_paths,
        )

    def _add(self, name: str, item: object) -> None:
        found = self._lists[name]
        if len(found) < MAX_ENTRIES:
            found[item] = None
        elif item not in found:
            self._more = True

    def _connected(self, entry: Mapping[str, object]) -> None:
        port, address = entry.get("port"), entry.get("address")
        if type(port) is not int:
            return
        name = _name(entry.get("host"))
        if name is not None:
            self._add("names", (name, port))
        elif isinstance(entry.get("host"), str) and parse(str(entry["host"])) is not None:
            self._add("literals", (str(entry["host"]), port))
        if isinstance(address, str) and parse(address) is not None:
            self._add("addresses", (address, port))

    def _requested(self, entry: Mapping[str, object]) -> None:
        name, port = _name(entry.get("host")), entry.get("port")
        scheme, method, path = (str(entry.get(each, "")) for each in ("scheme", "method", "path"))
        plain = canonical_path(path)
        shown = path if plain is None and method in SAFE_METHODS and path.startswith("/") else plain
        is_known = name is not None and type(port) is int and scheme in PORTS and is_token(method)
        if is_known and shown is not None and "*" not in shown + method and method == method.upper():
            self._add("requests", LearntRequest(scheme, str(name), int(str(port)), method, shown))
        else:
            self._add("unlearnt", request_text(entry))

    def _file(self, entry: Mapping[str, object]) -> None:
        path, done, place = entry.get("path"), entry.get("operation"), entry.get("place")
        if isinstance(place, str) and place.startswith("/"):
            self._add("secrets", place)
        elif not isinstance(path, str) or not path.startswith("/"):
            self._more_paths = True
        elif done in READING or entry.get("reason") == reasons.DENY_RULE:
            is_missed = entry.get("verdict") == DENY and entry.get("reason") != reasons.MADE_LATER
            if is_missed and len(path) <= MAX_TEXT:
                self._add("read", path)
        elif len(path) > MAX_TEXT:  # the log has shortened it
            self._add("written", (path[:MAX_TEXT].rpartition("/")[0] or "/", MANY))
        elif done in (CHANGE, MAKE, FOLDER, MANY):
            self._add("written", (path, done))

    def _refused(self, entry: Mapping[str, object]) -> None:
        reason, port, path = entry.get("reason"), entry.get("port"), entry.get("path")
        name = _name(entry.get("host"))
        if reason == reasons.UNIX_SOCKET:
            if isinstance(path, str) and path.startswith("/"):
                self._add("unix_sockets", path)
        elif reason == reasons.DENY_RULE and name is not None:
            self._add("denied_names", name)
        elif type(port) is int and _is_loopback(entry):
            self._add("host_ports", port)
        elif entry.get("event") == HTTP:
            self._add("refused", f"{request_text(entry)} ({reason})")
        elif entry.get("event") in ("egress", "dns", "udp"):
            what = printable_place(entry.get("host") or entry.get("address"), port)
            self._add("unreached" if reason in UNREACHED else "refused", f"{what} ({reason})")
            if reason in UNREACHED and name is not None:
                self._unreached.add(name)


def _name(host: object) -> str | None:
    """*host* if it is a name."""
    if not isinstance(host, str):
        return None
    try:
        read = canonical(host)
    except BadName:
        return None
    return read.text if read.address is None else None


def _is_loopback(entry: Mapping[str, object]) -> bool:
    if entry.get("event") == "egress" and entry.get("reason") == reasons.OWN_LOCALHOST:
        return True
    if entry.get("event") != "egress" or entry.get("reason") != reasons.ADDRESS_GUARD:
        return False
    address = parse(str(entry.get("address")))
    return address is not None and guarded(address) == LOOPBACK
