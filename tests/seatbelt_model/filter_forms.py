"""How filters are written: the forms that make them, each checked as Seatbelt would. Pure.

An unknown form, a host that is neither `*` nor `localhost`, a port 0 or an expression in another dialect is an error:
Seatbelt would refuse the whole profile, and what is not understood must never pass for a filter that matches nothing.
Several values in one form are alternatives: `(subpath "/a" "/b")` is one path or the other, never `/a/b`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tests.seatbelt_model.expressions import checked_regex
from tests.seatbelt_model.filters import (
    ANCESTORS,
    ANY,
    LITERAL,
    LOCAL,
    LOCALHOST,
    PREFIX,
    REGEX,
    REMOTE,
    SUBPATH,
    All,
    End,
    Filter,
    Name,
    Not,
    Path,
    Some,
    UnixEnd,
)
from tests.seatbelt_model.values import ProfileError, Symbol, written

Builder = Callable[[Sequence[object], int], Filter]
PROTOCOLS = frozenset(protocol + family for protocol in ("ip", "tcp", "udp") for family in ("", "4", "6"))
UNIX = ("unix", "unix-socket")
MAX_FILTERS = 5000
MAX_FILTER_DEPTH = 40
_PATHS = {
    "literal": LITERAL,
    "path": LITERAL,
    "path-literal": LITERAL,
    "subpath": SUBPATH,
    "prefix": PREFIX,
    "path-prefix": PREFIX,
    "regex": REGEX,
    "path-regex": REGEX,
    "path-ancestors": ANCESTORS,
}
# Told apart by a string, or by the beginning of one (-prefix), or by an expression (-regex).
_STRINGS_WITH_ENDINGS = "control-name global-name ipc-posix-name local-name sysctl-name xpc-service-name"
_STRINGS = (
    "appleevent-destination entitlement-is-bool-true entitlement-is-present extension extension-class iokit-connection"
    " iokit-property iokit-registry-entry-class iokit-user-client-class kext-bundle-id notification-name"
    " preference-domain process-name process-path right-name signing-identifier storage-class"
)
# Told apart by a word that stands for itself, or by a number.
_WORDS = (
    "csr debug-mode device-conforms-to device-major device-minor file-attribute file-mode fsctl-command info-type"
    " ioctl-command kernel-mig-routine mach-derived-port-role machtrap-number notification-payload privilege-id"
    " process-attribute semaphore-owner signal-number socket-domain socket-option-level socket-option-name"
    " socket-protocol socket-type syscall-number system-attribute target vnode-type"
)


def _path(how: str) -> Builder:
    def build(values: Sequence[object], line: int) -> Filter:
        texts = _texts(values, how)
        if how == REGEX:
            return one_of([Path(how, checked_regex(text), line) for text in texts], line)
        return one_of([Path(how, text, line) for text in texts], line)

    return build


def _name(key: str, how: str, *, words: bool = False) -> Builder:
    def build(values: Sequence[object], line: int) -> Filter:
        if not values:
            return Name(key, how, None, line)
        texts = _texts([_word(value) for value in values] if words else values, key)
        return one_of([Name(key, how, checked_regex(text) if how == REGEX else text, line) for text in texts], line)

    return build


def _word(value: object) -> object:
    if isinstance(value, Symbol):
        return value.name
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _end(side: str) -> Builder:
    def build(values: Sequence[object], line: int) -> Filter:
        kind = values[0].name if values and isinstance(values[0], Symbol) else ""
        if kind in UNIX:
            paths = [value for value in values[1:] if isinstance(value, Filter)]
            if len(paths) != len(values) - 1:
                raise ProfileError(f"({side} {kind} …) takes path filters; write (literal …) or (subpath …)")
            return UnixEnd(side, (one_of(paths, line),) if paths else (), line)
        if kind not in PROTOCOLS:
            raise ProfileError(f"{side} needs a protocol; write ({side} tcp …), udp, ip or unix-socket")
        if len(values) == 1:
            return End(side, kind, line=line)
        return one_of([End(side, kind, *_address(text), line) for text in _texts(values[1:], side)], line)

    return build


def _address(text: str) -> tuple[str, int | None]:
    host, colon, port = text.rpartition(":")
    if not colon:
        raise ProfileError(f"{written(text)} has no port; write {LOCALHOST}:PORT")
    if host not in (ANY, LOCALHOST):
        raise ProfileError(
            f"{written(text)}: the host is neither * nor localhost, which voids the profile; use localhost"
        )
    if port == ANY:
        return host, None
    if not re.fullmatch(r"[1-9][0-9]{0,4}", port) or int(port) > 65535:
        raise ProfileError(f"{written(text)}: the port is not * or 1 to 65535, which voids the profile; name a port")
    return host, int(port)


def _all(values: Sequence[object], line: int) -> Filter:
    return All(_filters(values, "require-all"), line)


def _some(values: Sequence[object], line: int) -> Filter:
    return Some(_filters(values, "require-any"), line)


def _not(values: Sequence[object], line: int) -> Filter:
    parts = _filters(values, "require-not")
    return Not((one_of(parts, line),), line)


def _filters(values: Sequence[object], form: str) -> tuple[Filter, ...]:
    parts = tuple(value for value in values if isinstance(value, Filter))
    if not parts or len(parts) != len(values):
        raise ProfileError(f"{form} takes filters and at least one; write ({form} (literal …) …)")
    return parts


def _texts(values: Sequence[object], form: str) -> list[str]:
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) != len(values):
        wrong = next((written(value) for value in values if not isinstance(value, str)), "nothing")
        raise ProfileError(f"{form} takes strings, not {wrong}; give each parameter a value")
    return texts


def one_of(parts: Sequence[Filter], line: int) -> Filter:
    return parts[0] if len(parts) == 1 else Some(tuple(parts), line)


_BUILDERS: dict[str, Builder] = {
    **{form: _path(how) for form, how in _PATHS.items()},
    **{name: _name(name, LITERAL) for name in f"{_STRINGS_WITH_ENDINGS} {_STRINGS}".split()},
    **{name: _name(name, LITERAL, words=True) for name in _WORDS.split()},
    **{f"{name}-regex": _name(name, REGEX) for name in _STRINGS_WITH_ENDINGS.split()},
    **{f"{name}-prefix": _name(name, PREFIX) for name in _STRINGS_WITH_ENDINGS.split()},
    "local": _end(LOCAL),
    "remote": _end(REMOTE),
    "to": _end(REMOTE),
    "require-all": _all,
    "require-any": _some,
    "require-not": _not,
}


def build(form: str, values: Sequence[object], line: int) -> Filter:
    """The filter that *form* makes of *values*; bounded, since shared parts could double their way through all time."""
    made = _BUILDERS[form](values, line)
    depth, size = _measure(made)
    if depth > MAX_FILTER_DEPTH or size > MAX_FILTERS:
        raise ProfileError(f"filters nested {depth} deep with {size} parts are too many; make the rule simpler")
    return made


def is_filter(form: str) -> bool:
    return form in _BUILDERS


def _measure(filter_: Filter) -> tuple[int, int]:
    measured = [_measure(part) for part in filter_.parts]
    return 1 + max((depth for depth, _ in measured), default=0), 1 + sum(size for _, size in measured)
