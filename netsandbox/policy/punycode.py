"""Punycode (RFC 3492), both ways, for labels of host names (pure).

The interpreter has a codec for it, but in a file: while a session runs nothing is imported from files that the command
could have written. Labels are short, so this may be simple rather than fast.
"""

from __future__ import annotations

BASE, T_MIN, T_MAX, SKEW, DAMP, FIRST_BIAS, FIRST_CODE = 36, 1, 26, 38, 700, 72, 128
DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789"
LAST_CODE = 0x10FFFF


def decode(text: str) -> str | None:
    """What *text* (lower case, without `xn--`) stands for; None if it stands for nothing."""
    plain, _, coded = text.rpartition("-")
    found = list(plain)
    code, position, bias, at = FIRST_CODE, 0, FIRST_BIAS, 0
    while at < len(coded):
        before, weight, step = position, 1, BASE
        while True:
            digit = DIGITS.find(coded[at]) if at < len(coded) else -1
            if digit < 0:
                return None
            at += 1
            position += digit * weight
            threshold = _threshold(step, bias)
            if digit < threshold:
                break
            weight *= BASE - threshold
            step += BASE
        size = len(found) + 1
        bias = _adapt(position - before, size, first=before == 0)
        code += position // size
        position %= size
        if code > LAST_CODE:
            return None
        found.insert(position, chr(code))
        position += 1
    return "".join(found)


def encode(text: str) -> str:
    """The one spelling that stands for *text*."""
    plain = [char for char in text if char.isascii()]
    out = [*plain, "-"] if plain else []
    code, delta, bias, done = FIRST_CODE, 0, FIRST_BIAS, len(plain)
    while done < len(text):
        following = min(ord(char) for char in text if ord(char) >= code)
        delta += (following - code) * (done + 1)
        code = following
        for char in text:
            if ord(char) < code:
                delta += 1
            elif ord(char) == code:
                out += _number(delta, bias)
                bias = _adapt(delta, done + 1, first=done == len(plain))
                delta, done = 0, done + 1
        delta += 1
        code += 1
    return "".join(out)


def _number(value: int, bias: int) -> list[str]:
    digits: list[str] = []
    step = BASE
    while True:
        threshold = _threshold(step, bias)
        if value < threshold:
            return [*digits, DIGITS[value]]
        value -= threshold
        digits.append(DIGITS[threshold + value % (BASE - threshold)])
        value //= BASE - threshold
        step += BASE


def _threshold(step: int, bias: int) -> int:
    return min(max(step - bias, T_MIN), T_MAX)


def _adapt(delta: int, size: int, *, first: bool) -> int:
    delta = delta // DAMP if first else delta // 2
    delta += delta // size
    step = 0
    while delta > (BASE - T_MIN) * T_MAX // 2:
        delta //= BASE - T_MIN
        step += BASE
    return step + (BASE - T_MIN + 1) * delta // (delta + SKEW)
