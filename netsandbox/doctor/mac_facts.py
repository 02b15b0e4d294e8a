"""What the programs of a Mac say about it, read (pure: text in, values out). What is not understood is None."""

from __future__ import annotations

LOOPBACK = "127.0.0.1"


def product_version(sw_vers: str) -> tuple[int, ...] | None:
    """`ProductVersion:  14.6.1` of `sw_vers`."""
    for line in sw_vers.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "ProductVersion":
            parts = value.strip().split(".")
            if all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
                return tuple(int(part) for part in parts)
    return None


def protection(csrutil: str) -> bool | None:
    """Whether System Integrity Protection is on, by `csrutil status`; one that is on in part is not on."""
    first, colon, rest = csrutil.partition("status:")
    if "System Integrity Protection" not in first or not colon:
        return None
    word = rest.strip().partition(".")[0].partition(" ")[0].lower()
    return {"enabled": True, "disabled": False, "unknown": False}.get(word)


def loopback_aliases(ifconfig: str) -> tuple[str, ...]:
    """The addresses of `ifconfig lo0` beside the one that every Mac has."""
    found = []
    for line in ifconfig.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "inet" and words[1].startswith("127.") and words[1] != LOOPBACK:
            found.append(words[1])
    return tuple(found)


def name_servers(resolv_conf: str) -> tuple[str, ...]:
    lines = (line.split() for line in resolv_conf.splitlines())
    return tuple(words[1] for words in lines if len(words) > 1 and words[0] == "nameserver")
