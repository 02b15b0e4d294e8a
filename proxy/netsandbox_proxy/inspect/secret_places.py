"""Secrets in the head of a request: each placeholder in its place becomes the value, and is refused elsewhere (pure).

Placeholders are worthless to anybody, so a search that a program could evade does no harm: what is refused are
mistakes, and programs that send on all they find. A placeholder is found as it is, percent-encoded in a target, and in
the credentials of `Authorization: Basic`.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64

from netsandbox_proxy.inspect.request_check import Refused
from netsandbox_proxy.inspect.stream_replace import StreamReplace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Fields = Sequence[tuple[bytes, bytes]]

MISPLACED, UNMASKABLE = "secret-misplaced", "secret-answer"
AUTHORIZATION = b"authorization"
BASIC = b"basic "
# What these ask for cannot be searched: compression, also of single messages. gRPC has `te: trailers`.
COMPRESSING = (b"accept-encoding", b"te", b"grpc-accept-encoding", b"connect-accept-encoding")
ENCODED = (b"content-encoding", b"grpc-encoding", b"connect-content-encoding")
PARTIAL = (b"range", b"if-range", b"a-im")  # of an answer in parts, or of differences, no mask could find a value
UNRESERVED = frozenset(b"-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


class Placeholders:
    """All placeholders of a session, by the names of their variables."""

    __slots__ = ("_names",)

    def __init__(self, placeholders: Mapping[str, str]) -> None:
        self._names = {text.encode("ascii"): name for name, text in placeholders.items()}

    def misplaced(self, target: bytes, fields: Fields) -> str | None:
        """Where a placeholder is in this head, which has none of its places; None: nowhere."""
        parts: list[tuple[str, tuple[bytes, ...]]] = [("the target", (target, unquoted(target)))]
        parts += [("the header " + _text(name), (name, value, credentials(name, value))) for name, value in fields]
        for where, texts in parts:
            for placeholder, name in self._names.items():
                if any(placeholder in text for text in texts):
                    return f"{where} has the placeholder of {name}, which does not belong there"
        return None

    def body_search(self, passing: Iterable[str] = ()) -> BodySearch | None:
        """*passing*: names whose placeholders bodies may have."""
        names = {text: name for text, name in self._names.items() if name not in passing}
        return BodySearch(names) if names else None


class BodySearch:
    """Searches the parts of a body."""

    __slots__ = ("_names", "_search")

    def __init__(self, names: Mapping[bytes, str]) -> None:
        self._names = names
        self._search = StreamReplace({text: text for text in names})

    def feed(self, data: bytes) -> str | None:
        """What is wrong, from the end of a placeholder on; None so far."""
        self._search.feed(data)
        found = self._search.found
        return None if found is None else f"a body has the placeholder of {self._names[found]}"


class Secret:
    """One secret of a host. Its representation has no value."""

    __slots__ = ("name", "passes_in_body", "placeholder", "places", "value")

    def __init__(self, name: str, texts: tuple[str, str], places: Sequence[Sequence[str]], *, passes_in_body: bool):
        self.name = name
        self.placeholder, self.value = (text.encode("ascii") for text in texts)
        self.places = frozenset((kind, key.encode("ascii")) for kind, key in places)
        self.passes_in_body = passes_in_body


class PlacedHead:
    """A head with the values in it; `names` of their variables, and `pairs` of what an answer must not show and the
    text instead."""

    __slots__ = ("fields", "names", "pairs", "target")

    def __init__(self, pairs: dict[bytes, bytes]) -> None:
        self.target = b""
        self.fields: list[tuple[bytes, bytes]] = []
        self.names: list[str] = []
        self.pairs = pairs

    def used(self, name: str) -> None:
        if name not in self.names:
            self.names.append(name)


class HostSecrets:
    """The secrets of one host, and all placeholders. Without a secret of this host it only searches."""

    def __init__(self, placeholders: Placeholders, secrets: Sequence[Secret]) -> None:
        self._placeholders = placeholders
        self._secrets = secrets
        self._pairs: dict[bytes, bytes] = {}
        for each in secrets:
            self._pairs |= forms(each.value, each.placeholder)

    def placed(self, target: bytes, fields: Fields) -> PlacedHead:
        """The head with the values; `Refused` for a placeholder anywhere else. Answers of a host that has secrets are
        wanted uncompressed and whole, since only those can be masked."""
        made = PlacedHead(dict(self._pairs))
        rest: list[tuple[bytes, bytes]] = []
        for name, value in fields:
            new = self._header(name.lower(), value, made)
            made.fields.append((name, value if new is None else new))
            if new is None:
                rest.append((name, value))
        made.target, remaining = self._target(target, made)
        self._check(remaining, rest)
        if self._secrets:
            unwanted = (*COMPRESSING, *(PARTIAL if made.names else ()))
            made.fields = [
                field
                for field in made.fields
                if field[0].lower() not in unwanted or (field[0].lower(), field[1]) == (b"te", b"trailers")
            ]
            made.fields.append((b"accept-encoding", b"identity"))
        if made.names and any(name.lower() == b"upgrade" for name, _ in fields):
            raise Refused(403, MISPLACED, f"a WebSocket cannot be masked, so it gets no value of {made.names[0]}")
        return made

    def check_trailers(self, fields: Fields) -> None:
        """`Refused` for a placeholder: no secret belongs there."""
        self._check(b"", fields)

    def body_search(self) -> BodySearch | None:
        return self._placeholders.body_search([each.name for each in self._secrets if each.passes_in_body])

    def _check(self, target: bytes, fields: Fields) -> None:
        fault = self._placeholders.misplaced(target, fields)
        if fault is not None:
            raise Refused(403, MISPLACED, fault)

    def _header(self, name: bytes, value: bytes, made: PlacedHead) -> bytes | None:
        """The value with the secret in it, if this is its place: the text alone, or behind a scheme."""
        own = {each.placeholder: each for each in self._secrets if ("header", name) in each.places}
        if own and name == AUTHORIZATION and value[: len(BASIC)].lower() == BASIC:
            return _basic(value, own, made)
        scheme, space, text = value.rpartition(b" ")
        found = own.get(text)
        if found is None or scheme.strip().isalnum() != bool(space):
            return None
        made.used(found.name)
        return scheme + space + found.value

    def _target(self, target: bytes, made: PlacedHead) -> tuple[bytes, bytes]:
        """The target with the values in its query, and the same without these parameters."""
        path, mark, query = target.partition(b"?")
        new: list[bytes] = []
        rest: list[bytes] = []
        for parameter in query.split(b"&") if mark else ():
            key, equals, text = parameter.partition(b"=")
            found = next((each for each in self._secrets if _is_parameter(each, key, text)), None)
            if found is None:
                rest.append(parameter)
                new.append(parameter)
            else:
                made.used(found.name)
                new.append(key + equals + quoted(found.value))
        return path + mark + b"&".join(new), path + mark + b"&".join(rest)


def unmaskable(status: int, fields: Fields) -> str | None:
    """Why the answer to a request with a secret cannot be masked; None if it can."""
    if status in (101, 206, 226):
        return f"the answer {status} cannot be searched for the value of a secret"
    for name, value in fields:
        coding = value.strip().lower()
        if (name.lower() in ENCODED and coding not in (b"", b"identity")) or (
            name.lower() == b"transfer-encoding" and coding != b"chunked"
        ):
            return "the answer is compressed although that was not asked for, so it cannot be searched for a secret"
    return None


def masked_fields(fields: Fields, pairs: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return [(masked(name, pairs), masked(value, pairs)) for name, value in fields]


def masked(text: bytes, pairs: Mapping[bytes, bytes]) -> bytes:
    """The whole *text* without a value."""
    search = StreamReplace(pairs)
    return search.feed(text) + search.end()


def credentials(name: bytes, value: bytes) -> bytes:
    """User and password of an `Authorization: Basic`; empty for another header."""
    if name.lower() != AUTHORIZATION or value[: len(BASIC)].lower() != BASIC:
        return b""
    try:
        return a2b_base64(value[len(BASIC) :])
    except Error:
        return b""


def unquoted(text: bytes) -> bytes:
    """Without percent-encoding; a percent sign without two hexadecimal digits stays."""
    first, *rest = text.split(b"%")
    parts = [first]
    for part in rest:
        try:
            parts.append(bytes((int(part[:2], 16),)) + part[2:])
        except ValueError:
            parts.append(b"%" + part)
    return b"".join(parts)


def quoted(text: bytes) -> bytes:
    """Percent-encoded, as the value of a parameter."""
    return b"".join(bytes((each,)) if each in UNRESERVED else b"%%%02X" % each for each in text)


def quoted_low(text: bytes) -> bytes:
    """Percent-encoded with small letters, as some servers write it."""
    return b"".join(bytes((each,)) if each in UNRESERVED else b"%%%02x" % each for each in text)


def escaped(text: bytes) -> bytes:
    """As some servers write it in JSON."""
    return text.replace(b"\\", b"\\\\").replace(b"/", b"\\/").replace(b'"', b'\\"')


def forms(text: bytes, other: bytes) -> dict[bytes, bytes]:
    """*text* as servers write it, each time with *other* in the same form."""
    return {form(text): form(other) for form in (bytes, quoted, quoted_low, escaped)}


def _text(name: bytes) -> str:
    return name.decode("ascii", "replace")


def _is_parameter(secret: Secret, key: bytes, text: bytes) -> bool:
    return ("query", unquoted(key)) in secret.places and unquoted(text) == secret.placeholder


def _basic(value: bytes, own: Mapping[bytes, Secret], made: PlacedHead) -> bytes | None:
    """User, password or both are placeholders. Besides the whole, the characters that stand for nothing but a value are
    masked alone: the session chooses the rest, and with it characters that a server may write in another way."""
    old = credentials(AUTHORIZATION, value)
    user, colon, password = old.partition(b":")
    if user not in own and password not in own:
        return None
    new = colon.join(own[each].value if each in own else each for each in (user, password))
    sent, shown = b2a_base64(new, newline=False), b2a_base64(old, newline=False)
    made.pairs[sent.rstrip(b"=")] = shown.rstrip(b"=")  # a server may show it without its padding
    for start, each in ((0, user), (len(user) + 1, password)):
        if each in own:
            made.used(own[each].name)
            inner = slice(-(-start * 8 // 6), (start + len(each)) * 8 // 6)
            made.pairs |= forms(sent[inner], shown[inner])
    return value[: len(BASIC)] + sent
