"""Regular expressions that mean the same to Seatbelt's matcher and to Python's. Pure.

Which dialect Seatbelt takes is not documented, so only what all dialects share is judged. What could keep Python's
matcher busy for ever is refused too.
"""

from __future__ import annotations

import re
import warnings

from tests.seatbelt_model.values import ProfileError, written

MAX_REGEX = 2000
# Backreferences, look-around, classes by letter and by name, a backslash among brackets, an odd brace: matchers differ.
_PLAIN = r"(?<!\\)(?:\\\\)*"  # what follows is not escaped
_FOREIGN = re.compile(
    rf"{_PLAIN}\\[A-Za-z0-9]|{_PLAIN}\(\?|\[\[[:.=]|{_PLAIN}[*+?}}][+?]|{_PLAIN}\[\^?\]?[^\]]*\\"
    r"|(?<!\\)\{(?![0-9]{1,3}(?:,[0-9]{0,3})?\})"
)
# A repeated group, with a repetition or a choice that may be inside of it, can take Python's matcher exponential time.
_NESTED = re.compile(rf"[*+?}}|].*{_PLAIN}\)[*+{{]", re.DOTALL)
MAX_REPETITIONS = 6


def checked_regex(text: str) -> str:
    """An expression that means the same to Seatbelt's matcher and to ours."""
    repetitions = sum(text.count(sign) for sign in "*+{")
    if len(text) > MAX_REGEX or repetitions > MAX_REPETITIONS or _FOREIGN.search(text) or _NESTED.search(text):
        raise ProfileError(f"the expression {written(text)} is not judged here; use ^ $ . * + ? | ( ) and [ ] plainly")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # sets in sets: brackets that Python may read anew one day
            re.compile(text)
    except (re.error, OverflowError, FutureWarning) as error:
        raise ProfileError(f"the expression {written(text)} is wrong ({error}); mend it") from None
    return text
