"""The secrets of a session, with their values. They exist in this process, and in the engine's worker while it has a
connection to one of their hosts; nothing here is ever printed, recorded or stored.

The command gets the placeholders in its variables. This process cannot be read by others, and leaves no core file.
"""

from __future__ import annotations

import os

from netsandbox.errors import UsageError
from netsandbox.policy.placeholders import placeholder
from netsandbox.policy.secret_rules import HTTPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from netsandbox.policy.policy import DomainRule
    from netsandbox.policy.secret_rules import SecretRule

MAX_TOTAL = 32 * 1024  # of all values, since one message to the engine must hold those of a host


class SessionSecrets:
    """*found* are values, each with the rules of its variable."""

    def __init__(self, found: Iterable[tuple[str, Sequence[SecretRule]]]) -> None:
        self._values: dict[str, str] = {}
        self.placeholders: dict[str, str] = {}  # by the name of the variable
        self.rules: tuple[SecretRule, ...] = ()
        for value, rules in found:
            name = rules[0].name
            self._values[name] = value
            self.placeholders[name] = placeholder(value, os.urandom)
            self.rules += tuple(rules)
        if sum(map(len, self._values.values())) > MAX_TOTAL:
            raise UsageError(f"the values of all secrets are longer than {MAX_TOTAL} bytes; leave some out")

    def __repr__(self) -> str:
        return f"SessionSecrets({', '.join(self.placeholders)})"

    @property
    def variables(self) -> dict[bytes, bytes]:
        """The variables of the command that have placeholders."""
        return {name.encode("ascii"): text.encode("ascii") for name, text in self.placeholders.items()}

    @property
    def hosts(self) -> list[tuple[str, str]]:
        """The hosts that get a value, and are inspected for it, each with its origin."""
        return inspected_hosts(self.rules)

    def masked(self, text: bytes) -> bytes:
        """*text* with placeholders instead of values: another variable, or a word of the command, may have one too."""
        for name, value in sorted(self._values.items(), key=lambda pair: -len(pair[1])):  # one may have another in it
            text = text.replace(value.encode("ascii"), self.placeholders[name].encode("ascii"))
        return text

    def masked_words(self, words: Iterable[str]) -> list[str]:
        return [os.fsdecode(self.masked(os.fsencode(word))) for word in words]

    def environment(self, given: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """The variables of the command, with the placeholders, and with settings by which git uses them."""
        made = {**{name: self.masked(value) for name, value in given.items()}, **self.variables}
        settings = [setting for rule in self.rules if rule.git for setting in git_settings(rule)]
        return with_git_settings(made, settings) if settings else made

    def messages(self, host: str, port: int) -> list[dict[str, object]]:
        """The secrets of this host, for the engine."""
        found: dict[str, list[SecretRule]] = {}
        for rule in self.rules:
            if rule.covers(host, port):
                found.setdefault(rule.name, []).append(rule)
        return [
            {
                "name": name,
                "value": self._values[name],
                "places": [place for rule in rules for place in rule.places],
                "body": all("body" in rule.flags for rule in rules),
            }
            for name, rules in found.items()
        ]


def inspected_hosts(rules: Iterable[SecretRule]) -> list[tuple[str, str]]:
    """The hosts of *rules*, each with its origin, as in `--inspect`."""
    return [(_place(host), rule.origin) for rule in rules for host in rule.hosts]


def git_settings(rule: SecretRule) -> list[tuple[str, str]]:
    """Instead of other helpers, one for each host that tells the user's name and the variable's value."""
    helper = f'!f() {{ if test "$1" = get; then echo username={rule.git}; echo "password=${rule.name}"; fi; }}; f'
    keys = [f"credential.https://{_place(host).removesuffix(f':{HTTPS}')}.helper" for host in rule.hosts]
    return [(key, value) for key in keys for value in ("", helper)]


def _place(host: DomainRule) -> str:
    """The pattern with its port, which is `*` for every port."""
    wildcard = "" if not host.below else "**." if host.apex else "*."
    ports = (HTTPS,) if host.ports is None else host.ports
    return f"{wildcard}{host.name}:{ports[0] if ports else '*'}"


def with_git_settings(given: Mapping[bytes, bytes], settings: Sequence[tuple[str, str]]) -> dict[bytes, bytes]:
    """*settings* behind those that variables hold already (git-config, ENVIRONMENT)."""
    counted = given.get(b"GIT_CONFIG_COUNT", b"0")
    count = int(counted) if counted.isdigit() else 0
    made = {**given, b"GIT_CONFIG_COUNT": b"%d" % (count + len(settings))}
    for number, (key, value) in enumerate(settings, count):
        made[b"GIT_CONFIG_KEY_%d" % number] = key.encode("ascii")
        made[b"GIT_CONFIG_VALUE_%d" % number] = value.encode("ascii")
    return made
