"""Seatbelt, the kernel's sandbox of macOS: profiles written, read and judged, without a Mac.

Nobody outside Apple knows for certain how Seatbelt matches and orders rules, so a verdict is always given under a model
that says what it assumes (`models`); `evaluator.denied_under_all` and `allowed_under_all` ask every one. See
docs/seatbelt-profile.md. Nothing is imported here: what writes a profile is on the path to exec, what judges one is not.
"""
