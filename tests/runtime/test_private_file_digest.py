"""The chain's hash is SHA-256, whichever module computes it."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.record_line import GENESIS
from netsandbox.runtime.private_file import digest


@given(st.binary(max_size=300))
def test_the_digest_is_sha256(data: bytes) -> None:
    assert digest(data) == hashlib.sha256(data).hexdigest()
    assert len(GENESIS) == len(digest(data))
