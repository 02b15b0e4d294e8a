"""Turns the URL of a registry into a rule, expands `${VARIABLE}` in it, and finds URLs in pages of an index (pure).

Rules kept:
1. Only http(s) becomes a rule, only for one name and one port, and never for an address or this machine: the user opens
   those by an option. Anything that is not clearly a URL becomes a note.
2. User names, passwords, paths and queries are dropped before anything is stored or shown.
3. In a project's file a variable may only be the beginning of a URL. Elsewhere it would let a stranger's file put a
   secret of the user into a host name, which is shown, asked about and looked up.
4. A page comes from a server: only http(s) links with a host are used, and only a few.
"""

from __future__ import annotations

from collections.abc import Callable

from netsandbox.errors import UsageError
from netsandbox.policy.address_guard import guarded
from netsandbox.policy.decision import is_loopback_name
from netsandbox.policy.names import BadName, canonical
from netsandbox.policy.rules import parse_domain, read_port
from netsandbox.text import join_host_port, quoted

_PORTS = {"http": "80", "https": "443"}
_WRAPPERS = ("sparse+", "registry+", "git+")
MAX_LENGTH = 4096
MAX_HOSTS = 8


class NoRule(ValueError):
    """The URL gives no rule. The message is one quoted line without secrets; empty if no note is needed."""


def pattern_of(text: str) -> str:
    """`NAME:PORT` of an http(s) URL; `NoRule` for everything else."""
    scheme, authority = _divide(text)
    host, port = _host_and_port(authority, _PORTS[scheme])
    shown = "its host" if "@" in text else f"the host {quoted(host)}"  # a misread host may be part of a password
    try:
        name = canonical(host)
    except BadName:
        raise NoRule(f"{shown} is not a host name; correct the URL") from None
    if name.address is not None:
        if guarded(name.address) == "loopback":
            raise NoRule(_own_machine(port))
        raise NoRule(
            f"{name.bracketed} is an address; if it is wanted, use --allow-address {join_host_port(name.text, port)}"
        )
    if is_loopback_name(name.text):
        raise NoRule(_own_machine(port))
    rule = f"{name.text}:{port}"
    try:
        parse_domain(rule, "registry")
    except UsageError:
        raise NoRule(f"{shown} cannot be a rule; correct the URL") from None
    return rule


def _divide(text: str) -> tuple[str, str]:
    """The scheme of a URL and the authority without its user."""
    for wrapper in _WRAPPERS:
        text = text.removeprefix(wrapper)
    if len(text) > MAX_LENGTH:
        raise NoRule(f"a URL of {len(text)} characters is too long for a registry; correct it")
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if scheme == "file" or (not separator and text[:1] in ("/", ".", "~")) or text[:5].lower() == "file:":
        raise NoRule("")  # on this machine's disk: no network is needed
    if not separator or not scheme.isascii() or not scheme.isalpha():
        raise NoRule("the value is not a URL; write https:// and a host")
    if scheme not in _PORTS:
        raise NoRule(f"{quoted(scheme[:20])} is not http or https; allow its host and port with --allow-domain")
    if "\\" in text or not text.isprintable() or " " in text:
        raise NoRule("the URL has characters that no URL has; correct it")
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
        raise NoRule("the port of the URL is not a port; correct it")
    return host, port or default


def _own_machine(port: str) -> str:
    return f"the registry is on this machine; if it is wanted, use --connect-host {port}"


class NotExpanded(ValueError):
    """A variable that is not set, or must not be used here. The message names it."""


def expand(text: str, value_of: Callable[[str], str | None], *, project: bool) -> str:
    """*text* with its variables; a name may carry `?`, `-DEFAULT` or `:-DEFAULT`."""
    expanded, rest = "", text
    while True:
        before, start, inside = rest.partition("${")
        name, end, after = inside.partition("}")
        if not start or not end:
            return expanded + rest
        value = _value(name, value_of)
        if project and (expanded or before or not value.startswith(("http://", "https://"))):
            raise NotExpanded(f"a project's file may use {_shown(name)} only as the whole beginning of a URL")
        expanded, rest = expanded + before + value, after
        if len(expanded) > MAX_LENGTH:
            raise NotExpanded(f"the value of {_shown(name)} is too long")


def _value(name: str, value_of: Callable[[str], str | None]) -> str:
    """The variable's value, or its default where it is not set."""
    plain, dash, default = name.partition("-")
    if dash:
        bare = plain.removesuffix(":")
        value = value_of(bare)
        return default if value is None or (value == "" and bare != plain) else value
    value = value_of(name.removesuffix("?"))
    if value is None and not name.endswith("?"):
        raise NotExpanded(f"the variable {_shown(name)} is not set")
    return value or ""


def _shown(name: str) -> str:
    return ascii(name[:60])


def index_links(kind: str, page: bytes, address: str) -> list[str]:
    """Scheme and authority of each link in a page of a Python index, HTML or JSON, that came from *address*."""
    urls = _json_urls(page) if kind.endswith("json") else _html_urls(page)
    return _hosts(urls, address)


def cargo_links(page: bytes) -> list[str]:
    """The same for `config.json` of a Cargo index: where crates and their search are."""
    document = _json(page)
    values = [document.get(key) for key in ("dl", "api")] if isinstance(document, dict) else []
    return _hosts([value for value in values if isinstance(value, str)], "")


def _hosts(urls: list[str], address: str) -> list[str]:
    from urllib.parse import urljoin, urlsplit

    found: dict[str, None] = {}
    for url in urls:
        try:
            parts = urlsplit(urljoin(address, url))
        except ValueError:
            continue
        if parts.scheme in ("http", "https") and parts.netloc:
            found[f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"] = None
        if len(found) >= MAX_HOSTS:
            break
    return list(found)


def _json_urls(page: bytes) -> list[str]:
    document = _json(page)
    files = document.get("files") if isinstance(document, dict) else None
    urls = [each.get("url") for each in files if isinstance(each, dict)] if isinstance(files, list) else []
    return [url for url in urls if isinstance(url, str)]


def _json(page: bytes) -> object:
    import json

    try:
        return json.loads(page)
    except (ValueError, RecursionError):
        return None


def _html_urls(page: bytes) -> list[str]:
    """The values of `href=` in anchors; an index's pages are plain (PEP 503)."""
    from html import unescape

    urls = []
    for piece in page.decode("utf-8", "replace").split("<a ")[1:]:
        tag = piece.partition(">")[0]
        quoted = tag.partition("href=")[2]
        if quoted[:1] in ('"', "'") and quoted.find(quoted[0], 1) > 0:
            urls.append(unescape(quoted[1 : quoted.index(quoted[0], 1)]))
    return urls
