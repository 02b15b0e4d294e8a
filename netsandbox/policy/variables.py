"""Which variables of the user's environment the command gets. Pure.

Secrets are withheld: the command could send them to an allowed host. A secret is known by its variable's name, or by a
URL with a password in its value. Variables of the dynamic loader are withheld too, since they are meant for programs of
the host. Patterns are names in which `*` stands for anything, in any case.
The highest layer with a rule for a name decides; within it a name written out beats a pattern, and a deny beats a pass
of the same kind.
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.text import has_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SECRETS = (
    *("*_KEY", "*_KEY_ID", "*_TOKEN", "*_TOKEN_*", "*_SECRET*", "*_PASSWORD*", "*_PASSWD", "*_PASSPHRASE", "*_PASS"),
    *("*_PAT", "*_CREDENTIAL*", "*_CREDS", "*_AUTH", "*_COOKIE", "*_DSN", "*_WEBHOOK*", "*APIKEY*", "TOKEN", "SECRET"),
    *("PASSWORD", "AWS_*", "AZURE_*", "PGPASSWORD", "MYSQL_PWD", "*DATABASE_URL", "*_CONNECTION_STRING", "REDIS_URL"),
    *("MONGODB_URI", "VAULT_*"),
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "KUBECONFIG", "DOCKER_AUTH_CONFIG"),
)
LOADERS = ("LD_*", "DYLD_*")
BASICS = (
    *("HOME", "USER", "LOGNAME", "SHELL", "PATH", "PWD", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_*"),
    *("TERM", "COLORTERM", "NO_COLOR", "EDITOR", "VISUAL", "PAGER"),
)
SECRET_PARAMETERS = (b"password", b"passwd", b"pwd", b"token", b"access_token", b"auth_token", b"secret", b"api_key")


class Patterns:
    """Patterns, sorted by kind so that a name is matched quickly."""

    __slots__ = ("_infixes", "_names", "_others", "_prefixes", "_suffixes")

    def __init__(self, patterns: Iterable[str]) -> None:
        names: list[bytes] = []
        prefixes: list[bytes] = []
        suffixes: list[bytes] = []
        infixes: list[bytes] = []
        others: list[list[bytes]] = []
        for pattern in patterns:
            written = pattern.upper().encode("ascii")
            plain = written.strip(b"*")
            if b"*" in plain:
                others.append(written.split(b"*"))
            elif plain == written:
                names.append(plain)
            elif written.startswith(b"*"):
                (infixes if written.endswith(b"*") else suffixes).append(plain)
            else:
                prefixes.append(plain)
        self._names = frozenset(names)
        self._prefixes, self._suffixes, self._infixes = tuple(prefixes), tuple(suffixes), tuple(infixes)
        self._others = tuple(others)

    def names(self, name: bytes) -> bool:
        return name in self._names

    def fits(self, name: bytes) -> bool:
        if name.startswith(self._prefixes) or name.endswith(self._suffixes):
            return True
        for part in self._infixes:
            if part in name:
                return True
        return any(has_pieces(parts, name) for parts in self._others) if self._others else False

    def matches(self, name: bytes) -> bool:
        return self.names(name) or self.fits(name)


@frozen
class Layer:
    """The rules of one source: a file, a profile, the command line."""

    passed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


DEFAULTS = Layer(denied=(*SECRETS, *LOADERS))
CLEAN = (Layer(denied=("*",)), Layer(passed=BASICS))  # below all others: only the basics pass, and what others name


class VariableRules:
    """*layers* from the lowest to the highest, above the defaults."""

    __slots__ = ("_tests",)

    def __init__(self, layers: Iterable[Layer] = ()) -> None:
        self._tests: list[tuple[Callable[[bytes], bool], bool]] = []
        for layer in reversed((DEFAULTS, *layers)):
            rules = [
                (Patterns(patterns), passes)
                for patterns, passes in ((layer.denied, False), (layer.passed, True))
                if patterns
            ]
            self._tests += [(patterns.names, passes) for patterns, passes in rules]
            self._tests += [(patterns.fits, passes) for patterns, passes in rules]

    def passes(self, name: bytes, value: bytes = b"") -> bool:
        name = name.upper()
        for applies, passes in self._tests:
            if applies(name):
                return passes
        return not carries_credentials(value)

    def split(self, outer: Mapping[bytes, bytes]) -> tuple[dict[bytes, bytes], list[bytes]]:
        """The variables that the command gets, and the names of the others."""
        inner = {name: value for name, value in outer.items() if self.passes(name, value)}
        return inner, sorted(name for name in outer if name not in inner)


def carries_credentials(value: bytes) -> bool:
    """Whether *value* has a URL with a password. In an http URL a user name alone may be a token; ssh://git@host has
    none."""
    at = value.find(b"://")
    while at >= 0:
        is_http = value[max(0, at - 5) : at].lower().endswith((b"http", b"https"))
        if _has_secret(value[at + 3 :], is_http=is_http):
            return True
        at = value.find(b"://", at + 3)
    return False


def _has_secret(rest: bytes, *, is_http: bool) -> bool:
    """*rest* is what follows `://` of a URL, to the end of the value."""
    url = rest.split(None, 1)[0] if rest[:1].strip() else b""
    whole, _, query = url.partition(b"#")[0].partition(b"?")
    authority = whole.partition(b"/")[0]
    user, at, _ = authority.rpartition(b"@")
    name, _, password = user.partition(b":")
    if at and (password or (is_http and name)):
        return True
    port = b"" if authority.endswith(b"]") else authority.rpartition(b":")[2] if b":" in authority else b""
    if not at and port and not port.isdigit() and b"@" in rest:  # a password with a character that ends the authority
        return True
    pairs = [pair.partition(b"=") for pair in query.replace(b";", b"&").split(b"&")]
    return any(text and key.lower() in SECRET_PARAMETERS for key, _, text in pairs)


def check_name(text: str, origin: str) -> str:
    """*text* if it can be the name of a variable."""
    if not text.isascii() or not text.isidentifier():
        raise UsageError(f"{origin}: {text!a} is not the name of a variable; write one such as NODE_ENV")
    return text


def check_pattern(text: str, origin: str) -> str:
    """*text* if it can be the name of a variable, or a pattern that does not match every name."""
    if not text.isascii() or not text.replace("*", "A").isidentifier() or not text.strip("*"):
        raise UsageError(f"{origin}: {text!a} is not the name of a variable; write GITHUB_TOKEN, or AWS_* for many")
    return text
