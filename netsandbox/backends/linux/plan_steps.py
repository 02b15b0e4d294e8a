"""The bytes of a plan for a native helper (pure): a list of steps, each an operation and its payload. The plan.h of a
backend lists its operations."""

from __future__ import annotations

import sys


def texts(*values: str) -> bytes:
    return b"".join(value.encode("utf-8", "surrogateescape") + b"\0" for value in values)


def step(operation: bytes, payload: bytes) -> bytes:
    return operation + len(payload).to_bytes(4, sys.byteorder) + payload


def numbers(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, sys.byteorder) for value in values)
