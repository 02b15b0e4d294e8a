"""Mutated paths: the spelling that rules are compared with means the same, and a denied path has no other spelling."""

from __future__ import annotations

from random import Random
from urllib.parse import unquote_to_bytes

from netsandbox.policy.http_paths import canonical_path
from netsandbox.policy.inspection import HttpRequest, inspection
from tests.rig.fuzzing import FUZZ, fuzz

SEEDS = [
    b"/",
    b"/v1/users/1",
    b"/upload/a.txt?x=/v2",
    b"/v1/%7euser/%C3%A9/",
    b"/v1/./a/../b",
    b"/v1//a;x=y",
    b"/upload",
]
TOKENS = [
    b"%2f", b"%2F", b"%5c", b"\\", b"%2e", b"..", b".", b"//", b"/", b";", b"?", b"#", b"%25", b"%00", b"%", b"%zz",
    b"%C3%A9", b"%e2%82%ac", b"upload", b"%75pload", b"UPLOAD", b"v1", b"*", b"**", b"%20", b" ", b"@", b":", b"~",
    b"%c0%af", b"\xff",
]  # fmt: skip
RULES = inspection(
    allow=[("GET,POST https://example.com/v1/**", "test"), ("* https://example.com/*.txt", "test")],
    deny=[("POST https://example.com/**/upload/**", "test"), ("DELETE https://example.com/**", "test")],
)


@FUZZ
def test_paths_and_decisions() -> None:
    def check(data: bytes, random: Random) -> None:
        target = data.decode("latin-1")
        path = canonical_path(target)
        method = random.choice(("GET", "POST", "post", "DELETE", "PATCH"))
        assert RULES is not None
        decided = RULES.decide("example.com", 443, HttpRequest("https", method, target))
        if path is not None:
            assert canonical_path(path) == path
            assert unquote_to_bytes(path) == unquote_to_bytes(target.partition("?")[0])
            assert not {".", ".."} & set(path.split("/"))
            assert "//" not in path
        if decided.allowed:
            assert path is not None
            assert method.upper() != "DELETE"
            assert not (method.upper() == "POST" and b"upload" in unquote_to_bytes(path).split(b"/"))
            assert f"{path}/".startswith("/v1/") or path.endswith(".txt")

    fuzz(25, SEEDS, TOKENS, check)
