"""Names of DNS record types, for the log and for `allow_query_types`."""

from __future__ import annotations

_NAMES = {
    1: "A",
    2: "NS",
    5: "CNAME",
    6: "SOA",
    10: "NULL",
    12: "PTR",
    13: "HINFO",
    15: "MX",
    16: "TXT",
    17: "RP",
    24: "SIG",
    28: "AAAA",
    29: "LOC",
    33: "SRV",
    35: "NAPTR",
    37: "CERT",
    39: "DNAME",
    43: "DS",
    44: "SSHFP",
    46: "RRSIG",
    47: "NSEC",
    48: "DNSKEY",
    50: "NSEC3",
    52: "TLSA",
    53: "SMIMEA",
    59: "CDS",
    60: "CDNSKEY",
    61: "OPENPGPKEY",
    64: "SVCB",
    65: "HTTPS",
    99: "SPF",
    252: "AXFR",
    255: "ANY",
    256: "URI",
    257: "CAA",
}


def type_name(number: int) -> str:
    """The name of a type, `TYPE1234` for one without (RFC 3597)."""
    return _NAMES.get(number) or f"TYPE{number}"


def canonical_type(text: str) -> str | None:
    """The one name of the type that *text* means (`txt` and `TYPE16` are `TXT`), or None."""
    name = text.upper() if text.isascii() else ""
    digits = name[4:]
    if name[:4] == "TYPE" and digits.isdigit() and len(digits) <= 5 and int(digits) < 65536:
        return type_name(int(digits))
    return name if name in _NAMES.values() else None
