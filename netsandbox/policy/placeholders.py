"""Placeholders of secrets: of the same length and shape as the value, so that programs accept them (pure).

A prefix by which programs know the kind of a token is kept, other letters and digits are replaced by random ones of
the same kind, and all other characters are kept. Each session has its own.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PREFIXES = (  # the longest of a kind first
    *("github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "npm_", "pypi-"),
    *("sk-ant-api03-", "sk-ant-oat01-", "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-or-v1-", "sk-", "AIza", "gsk_"),
    *("xai-", "hf_", "r8_", "xoxb-", "xoxp-", "xapp-", "dop_v1_", "lin_api_", "sk_live_", "sk_test_", "shpat_", "ntn_"),
)
MAX_LENGTH = 8192
MIN_RANDOM = 8  # letters and digits, so that no other text is taken for the placeholder
CLASSES = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789")
_VISIBLE = frozenset(range(0x21, 0x7F))


def fault_of(value: bytes) -> str | None:
    """Why *value* cannot be such a secret; None if it can."""
    if not value:
        return "is empty"
    if not _VISIBLE.issuperset(value):
        return "has spaces, line ends or other bytes that no header carries"
    if len(value) > MAX_LENGTH:
        return f"is longer than {MAX_LENGTH} bytes"
    if sum(chr(each).isalnum() for each in value) < MIN_RANDOM:
        return f"has fewer than {MIN_RANDOM} letters and digits"
    return None


def placeholder(value: str, random: Callable[[int], bytes]) -> str:
    """*random* gives this number of random bytes, such as `os.urandom`."""
    prefix = next((each for each in PREFIXES if value.startswith(each)), "")
    if sum(map(str.isalnum, value[len(prefix) :])) < MIN_RANDOM:
        prefix = ""
    while True:
        made = prefix + "".join(_like(each, random) for each in value[len(prefix) :])
        if made != value:
            return made


def _like(character: str, random: Callable[[int], bytes]) -> str:
    for letters in CLASSES:
        if character in letters:
            most = 256 - 256 % len(letters)  # bytes from there on would favour the first letters
            while (number := random(1)[0]) >= most:
                pass
            return letters[number % len(letters)]
    return character
