"""A parser's error carries what the door must answer and what the record must say."""

from __future__ import annotations

from netsandbox.policy import reasons
from netsandbox.runtime.http.errors import ProtocolError, malformed


def test_an_error_says_reason_detail_and_status() -> None:
    error = ProtocolError("limit", "too long", 431)
    assert (error.reason, error.detail, error.status, str(error)) == ("limit", "too long", 431, "limit: too long")


def test_malformed_is_a_400_of_the_closed_list() -> None:
    error = malformed("odd")
    assert (error.reason, error.status) == (reasons.MALFORMED, 400)
