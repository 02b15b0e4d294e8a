"""From the URL of a registry to a rule (pure).

Rules kept: only http(s) becomes a rule, only for one name and one port, and never for an address or this machine: those
are doors of their own, which the user opens by an option. User names, passwords, paths and queries are dropped before
anything is stored or said. What is not plainly a URL becomes a note.
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.policy.address_guard import guarded
from netsandbox.policy.decision import is_loopback_name
from netsandbox.policy.names import BadName, canonical
from netsandbox.policy.rules import parse_domain, read_port
from netsandbox.text import join_host_port, quoted

_PORTS = {"http": "80", "https": "443"}
_WRAPPERS = ("sparse+", "registry+", "git+")
_LIMIT = 4096


class Skipped(ValueError):
    """No rule follows. The message is one quoted line without secrets; empty where nothing needs to be said."""


def pattern_of(text: str) -> str:
    """`NAME:PORT` of an http(s) URL; `Skipped` for everything else."""
    scheme, authority = _divide(text)
    host, port = _host_and_port(authority, _PORTS[scheme])
    shown = "its host" if "@" in text else f"the host {quoted(host)}"  # misread, a host may be half a password
    try:
        name = canonical(host)
    except BadName:
        raise Skipped(f"{shown} is no host name; correct the URL") from None
    if name.address is not None:
        if guarded(name.address) == "loopback":
            raise Skipped(_own_machine(port))
        raise Skipped(
            f"{name.bracketed} is an address; if it is wanted, use --allow-address {join_host_port(name.text, port)}"
        )
    if is_loopback_name(name.text):
        raise Skipped(_own_machine(port))
    rule = f"{name.text}:{port}"
    try:
        parse_domain(rule, "registry")
    except UsageError:
        raise Skipped(f"{shown} cannot be a rule; correct the URL") from None
    return rule


def _divide(text: str) -> tuple[str, str]:
    """The scheme of a URL and the authority without its user."""
    for wrapper in _WRAPPERS:
        text = text.removeprefix(wrapper)
    if len(text) > _LIMIT:
        raise Skipped(f"a URL of {len(text)} characters is no registry's; correct it")
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if scheme == "file" or (not separator and text[:1] in ("/", ".", "~")) or text[:5].lower() == "file:":
        raise Skipped("")  # on this machine's disk: no network is needed
    if not separator or not scheme.isascii() or not scheme.isalpha():
        raise Skipped("the value is no URL; write https:// and a host")
    if scheme not in _PORTS:
        raise Skipped(f"{quoted(scheme[:20])} is not http or https; allow its host and port with --allow-domain")
    if "\\" in text or not text.isprintable() or " " in text:
        raise Skipped("the URL has characters that no URL has; correct it")
    return scheme, rest[: _authority_end(rest)].rpartition("@")[2]


def _authority_end(rest: str) -> int:
    return min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))


def _host_and_port(authority: str, default: str) -> tuple[str, str]:
    if authority.startswith("["):
        host, bracket, port = authority.partition("]")
        host += bracket
        colon, port = port[:1], port[1:]
    else:
        host, colon, port = authority.partition(":")
    if colon not in ("", ":") or (port and read_port(port) is None):
        raise Skipped("the port of the URL is no port; correct it")
    return host, port or default


def _own_machine(port: str) -> str:
    return f"the registry is on this machine; if it is wanted, use --connect-host {port}"
