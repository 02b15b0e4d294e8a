"""The only module that makes a host canonical (INV-2).

Every spelling from a client or a rule goes through `canonical` once; the string that comes out is matched, dialled,
routed and logged. Rules kept:

1. A text that is not plainly a name or an address is `BadName`, never a near match: nothing is trimmed or guessed.
2. IPv4 is a canonical dotted quad or an error. `127.1`, `0x7f.1` and `2130706433` mean different things to different
   resolvers, so they mean nothing here.
3. Bytes from the wire are ASCII. Only text that a person wrote may hold other letters, and only such letters as every
   version of IDNA maps to the same A-label.
4. Work is linear: an over-long name is refused by its length, before anything looks at its content.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.policy.ip import Address, parse4, parse6, unmapped
from netsandbox.text import quoted

MAX_NAME = 253
MAX_LABEL = 63
_LETTERS = b"abcdefghijklmnopqrstuvwxyz0123456789-_."
# Each byte of a name in lower case, and 255 for any other byte. `translate` with bytes to delete would make a table in
# each call.
_LOWERED = bytes(byte if byte in _LETTERS else 255 for byte in bytes(range(256)).lower())
_HEX = "0123456789abcdef"


class BadName(ValueError):
    """Not a host. The message is one printable line."""


@frozen
class Host:
    """A canonical host: a name in ASCII lower case without trailing dot, or an address in its canonical spelling."""

    text: str
    address: Address | None

    @property
    def bracketed(self) -> str:
        """The host as it is written before `:PORT`: IPv6 in brackets, everything else as it is."""
        return f"[{self.text}]" if self.address is not None and self.address.version == 6 else self.text


def canonical(raw: bytes | str) -> Host:
    """The host that *raw* spells (IPv6 in brackets); `BadName` for any other text."""
    if len(raw) > MAX_NAME + 1:
        raise BadName(f"host of {len(raw)} bytes is longer than {MAX_NAME}")
    data = raw if type(raw) is bytes else _ascii(raw) if isinstance(raw, str) else bytes(raw)
    lowered = data.translate(_LOWERED)
    if b"\xff" in lowered:
        return _bracketed(data.lower(), raw)
    text = lowered.decode("ascii")
    dotted = text[-1:] == "."
    name = text[:-1] if dotted else text
    _check_labels(name, raw)
    last = name[name.rfind(".") + 1 :]
    if last[0] in "0123456789" and (last.isdigit() or (last[:2] == "0x" and not last[2:].strip(_HEX))):
        value = None if dotted else parse4(name)
        if value is None:
            raise BadName(f"host {quoted(raw)} is not a canonical IPv4 address")
        return Host(name, Address(4, value))
    # `Host(name, None)`, filled in one step: each query for a new name makes one.
    host = Host.__new__(Host)
    host.__dict__.update(text=name, address=None)
    return host


def is_plain(text: str) -> bool:
    """A fast check: True only if *text* is a name and canonical already. False means that `canonical` has to look."""
    return (
        len(text) <= MAX_LABEL
        and text.isascii()
        and (data := text.encode("ascii")).translate(_LOWERED) == data
        and text[-1:].isalpha()
        and text[0] != "."
        and ".." not in text
        and "xn--" not in text
        and text[text.rfind(".") + 1] not in "0123456789"
    )


def host_of(address: Address) -> Host:
    """The host that is just this address, as the kernel or SOCKS reported it."""
    plain = unmapped(address)
    return Host(plain.text, plain)


def _bracketed(data: bytes, raw: bytes | str) -> Host:
    if data[:1] == b"[" and data[-1:] == b"]" and data.isascii():
        value = parse6(data[1:-1].decode("ascii"))
        if value is not None:
            return host_of(Address(6, value))
    raise BadName(f"host {quoted(raw)} has characters that no name has")


def _check_labels(name: str, raw: bytes | str) -> None:
    if not name or name[0] == "." or name[-1] == "." or ".." in name:
        raise BadName(f"host {quoted(raw)} has an empty label")
    if len(name) > MAX_NAME:
        raise BadName(f"host of {len(name)} bytes is longer than {MAX_NAME}")
    if len(name) > MAX_LABEL and max(map(len, name.split("."))) > MAX_LABEL:
        raise BadName(f"host {quoted(raw)} has a label longer than {MAX_LABEL}")
    if "xn--" in name:
        from netsandbox.policy.idn import valid_alabel

        if not all(valid_alabel(label) for label in name.split(".") if label.startswith("xn--")):
            raise BadName(f"host {quoted(raw)} has a label with invalid punycode")


def _ascii(text: str) -> bytes:
    if text.isascii():
        return text.encode("ascii")
    from netsandbox.policy.idn import to_alabels

    mapped = to_alabels(text)
    if mapped is None:
        raise BadName(f"host {quoted(text)} has letters with no single ASCII form; write its xn-- form")
    return mapped.encode("ascii")
