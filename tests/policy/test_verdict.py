"""The fast way to make a verdict gives what the constructor gives."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy import reasons
from netsandbox.policy.verdict import Verdict, verdict

OPTIONAL = ("rule", "origin", "wildcard", "address", "guard")


@given(
    st.sampled_from(sorted(reasons.ALL)),
    st.integers(0, 65535),
    st.booleans(),
    st.dictionaries(st.sampled_from(OPTIONAL), st.text(max_size=5)),
)
def test_a_verdict_made_in_one_step_is_the_constructors(
    reason: str, port: int, allowed: bool, given_fields: dict[str, Any]
) -> None:
    made = verdict(reason, "a.test", port, allowed=allowed, **given_fields)
    fields = {"rule": None, "origin": None, **given_fields}
    expected = Verdict(allowed=allowed, reason=reason, host="a.test", port=port, **fields)
    assert made == expected
    assert hash(made) == hash(expected)
    assert vars(made).keys() == vars(expected).keys()


def test_a_verdict_denies_unless_it_is_told_to_allow() -> None:
    assert not verdict(reasons.RULE, "a.test", 443).allowed
