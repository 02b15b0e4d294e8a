"""The filters that raw rules may use, and the regular expressions in them. Pure.

Seatbelt rejects a whole profile for one unknown filter. Its dialect of regular expressions is not documented, so only
the syntax that all dialects share is accepted.
"""

from __future__ import annotations

import re

from netsandbox.backends.seatbelt.profile.raw_forms import RawRuleError

JOINED_FILTERS = ("require-all", "require-any", "require-not")
PATH_FILTERS = frozenset(
    ("literal", "path", "path-literal", "subpath", "prefix", "path-prefix", "regex", "path-regex", "path-ancestors")
)
_NAMES = ("control-name", "global-name", "ipc-posix-name", "local-name", "sysctl-name", "xpc-service-name")
NAME_FILTERS = {  # their values are strings
    *(f"{name}{kind}" for name in _NAMES for kind in ("", "-prefix", "-regex")),
    *("extension", "extension-class", "iokit-connection", "iokit-property", "iokit-registry-entry-class"),
    *("iokit-user-client-class", "kext-bundle-id", "notification-name", "preference-domain", "process-name"),
    *("process-path", "entitlement-is-bool-true", "entitlement-is-present", "right-name", "signing-identifier"),
    "storage-class",
}
WORD_FILTERS = {  # their values are words, numbers or strings
    *("csr", "debug-mode", "device-conforms-to", "device-major", "device-minor", "file-attribute", "file-mode"),
    *("fsctl-command", "info-type", "ioctl-command", "machtrap-number", "notification-payload", "privilege-id"),
    *("process-attribute", "semaphore-owner", "signal-number", "syscall-number", "system-attribute", "target"),
    "vnode-type",
}
MAX_REGEX = 1000
MAX_REPETITIONS = 6
_ATOM = r"(?:\\[^A-Za-z0-9]|\[\^?(?:[A-Za-z0-9_./ ]|-(?!-))+\]|[^\\\[\](){}*+?|^$\n])"
_PIECE = rf"(?:{_ATOM}[*+?]?)"
_GROUP = rf"\({_PIECE}*(?:\|{_PIECE}*)*\)\??"
_REGEX = re.compile(rf"\^?(?:{_PIECE}|{_GROUP})*\$?")


def check_regex(text: str, line: int) -> None:
    """An error unless the expression means the same to Seatbelt's matcher and to Python's."""
    repetitions = sum(text.count(sign) for sign in "*+")
    if len(text) > MAX_REGEX or repetitions > MAX_REPETITIONS or not _REGEX.fullmatch(text):
        raise RawRuleError(
            f"the expression {text[:80]!a} is not understood; use ^ $ . * + ? | ( ) and [ ] plainly", line
        )
    try:
        re.compile(text)
    except re.error as error:
        raise RawRuleError(f"the expression {text[:80]!a} is wrong ({error}); correct it", line) from None
