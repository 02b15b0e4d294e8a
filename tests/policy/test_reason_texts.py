"""Every reason to say no is explained, by the policy's own words or by these."""

from __future__ import annotations

import pytest

from netsandbox.policy import reasons
from netsandbox.policy.explain import because
from netsandbox.policy.reason_texts import TEXTS
from netsandbox.policy.verdict import verdict


@pytest.mark.parametrize("reason", sorted(reasons.ALL - reasons.ALLOWING))
def test_every_denial_can_be_put_in_words(reason: str) -> None:
    why = TEXTS[reason][0] if reason in TEXTS else because(verdict(reason, "a.test", 443))
    assert why != reason
    assert not why.endswith(".")
