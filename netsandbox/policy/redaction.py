"""Credentials in the heads of requests: which headers and parameters have them, and what a file shows instead. Pure.

A header or parameter counts by its name, and a header's value also by its form. The rule is generous: a value too many
that is left out can be looked up, a credential that was written to a file cannot be taken back.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

REDACTED = "redacted"
MAX_PARAMETERS = 200
MAX_FLAG = 24  # a parameter without a value that is longer may be a credential itself
# Anywhere in a name, whose separators are taken out first.
_PARTS = (
    *("apikey", "accesskey", "assertion", "authent", "authoriz", "bearer", "cookie", "credential", "csrf", "jwt"),
    *("oauth", "passphrase", "passwd", "password", "privatekey", "secret", "session", "signature", "token", "xsrf"),
)
_WORDS = frozenset(("auth", "code", "key", "otp", "pass", "pat", "pin", "pwd", "sid", "sig", "ticket"))  # whole words
_HARMLESS = frozenset(("www-authenticate", "proxy-authenticate", "sec-websocket-key"))  # they hold no credential
_SCHEMES = ("bearer ", "basic ", "digest ", "negotiate ", "token ")  # how the value of a credential begins
_HEX = frozenset("0123456789abcdefABCDEF")
_URLS = frozenset(("content-location", "location", "referer", "refresh", "link"))  # headers whose value has a URL


def names_credential(name: str) -> bool:
    """Whether a header or parameter of this name holds a credential, as far as its name says."""
    spaced = "".join(char if char.isalnum() else " " for char in name)
    if not spaced.isupper():  # accessKey is two words
        spaced = "".join(f" {char}" if char.isupper() else char for char in spaced)
    words = spaced.lower().split()
    joined = "".join(words)
    return not _WORDS.isdisjoint(words) or any(part in joined for part in _PARTS) or joined in _WORDS


def shown_header(name: str, value: str, *, with_query: bool) -> str:
    """The value of a header as a file may hold it."""
    lower = name.lower()
    if lower in _HARMLESS:
        return value
    begin = value.lower()
    if names_credential(lower) or begin.startswith(_SCHEMES) or "bearer" in begin:
        return REDACTED
    return _shown_url(value, with_query=with_query) if lower in _URLS or "://" in value else value


def shown_target(target: str, *, with_query: bool) -> str:
    """A request target as a file may hold it: without its query, or with one whose credentials are left out."""
    path, _, query = target.partition("?")
    return f"{path}?{shown_query(query)}" if query and with_query else path


def shown_query(query: str) -> str:
    return "&".join(name if value is None else f"{name}={value}" for name, value in _shown(query))


def parameters(query: str) -> list[tuple[str, str]]:
    """Names and values of a query, still encoded."""
    return [(name, value or "") for name, value in _shown(query)]


def _shown(query: str) -> Iterator[tuple[str, str | None]]:
    for part in query.split("&")[:MAX_PARAMETERS]:
        name, equals, value = part.partition("=")
        if not equals:  # without a name it may be anything
            yield (name, None) if len(name) <= MAX_FLAG else (REDACTED, None)
        else:
            yield name, REDACTED if names_credential(_decoded(name)) else value


def _decoded(name: str) -> str:
    """The name without percent encoding, so that `%74oken` is known too."""
    first, *rest = name.split("%")
    return first + "".join(_character(part[:2]) + part[2:] for part in rest)


def _character(code: str) -> str:
    return chr(int(code, 16)) if len(code) == 2 and _HEX.issuperset(code) else code


def _shown_url(value: str, *, with_query: bool) -> str:
    """Without user name, query and fragment: credentials are in all of them."""
    if with_query:
        head, mark, query = value.partition("?")
        return _without_user(head) + (f"?{shown_query(query.partition('#')[0])}" if mark else "")
    end = min((at for at in (value.find("?"), value.find("#")) if at >= 0), default=len(value))
    return _without_user(value[:end])


def _without_user(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}" if separator else url
