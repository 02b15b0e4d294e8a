"""A leak is called a leak: whatever the client believed, and never by default."""

from __future__ import annotations

import pytest

from netsandbox.doctor.judgement import (
    FAILED,
    LEAK,
    OK,
    Answer,
    arrival,
    denial,
    own_server,
    refusal,
    silence,
    spared,
    untouched,
)

PREVENTED = Answer(succeeded=False, detail="ECONNREFUSED")
ACHIEVED = Answer(succeeded=True, detail="answered")


@pytest.mark.parametrize("answer", [PREVENTED, ACHIEVED, None])
def test_one_thing_heard_is_a_leak_whatever_the_client_says(answer):
    assert silence(answer, 1).status == LEAK


def test_an_own_server_must_be_reached_from_inside_and_only_from_there():
    assert own_server(ACHIEVED, 0).status == OK
    assert own_server(ACHIEVED, 1).status == LEAK
    assert own_server(PREVENTED, 1).status == LEAK
    assert [own_server(*each).status for each in ((PREVENTED, 0), (None, 0), (ACHIEVED, None))] == [FAILED] * 3


def test_silence_holds_only_if_someone_tried():
    assert silence(PREVENTED, 0).status == OK
    assert silence(None, 0).status == FAILED
    assert silence(PREVENTED, None).status == FAILED


@pytest.mark.parametrize("answer", [PREVENTED, ACHIEVED, None])
def test_a_process_that_was_ended_is_a_leak_whatever_the_client_says(answer):
    assert spared(answer, ended=True).status == LEAK


def test_a_process_that_was_signalled_and_has_not_ended_yet_is_a_leak_too():
    assert spared(ACHIEVED, ended=False).status == LEAK
    assert spared(PREVENTED, ended=False).status == OK
    assert spared(None, ended=False).status == FAILED


def test_what_must_fail_and_worked_is_a_leak():
    assert refusal(ACHIEVED).status == LEAK
    assert refusal(PREVENTED).status == OK
    assert refusal(None).status == FAILED


@pytest.mark.parametrize(("answer", "heard"), [(PREVENTED, 0), (PREVENTED, 1), (ACHIEVED, 0), (None, 1)])
def test_a_control_that_is_not_reached_on_both_sides_fails(answer, heard):
    assert arrival(answer, heard).status == FAILED


def test_a_control_that_was_reached_is_well():
    assert arrival(ACHIEVED, 1).status == OK


ADDRESS = "192.0.2.9"


@pytest.mark.parametrize(
    ("answer", "verdicts", "status"),
    [
        (PREVENTED, ["deny"], OK),
        (PREVENTED, ["deny", "allow"], LEAK),
        (PREVENTED, [None], LEAK),
        (ACHIEVED, ["deny"], LEAK),
        (PREVENTED, [], FAILED),
        (None, ["deny"], FAILED),
    ],
)
def test_where_no_canary_can_stand_the_log_must_show_the_refusal(answer, verdicts, status):
    records = [{"address": ADDRESS, "verdict": verdict, "reason": "address-literal"} for verdict in verdicts]
    others = [{"address": "192.0.2.10", "verdict": "allow"}, {"event": "session.start"}]
    assert denial(answer, records + others, ADDRESS).status == status


@pytest.mark.parametrize("answer", [PREVENTED, ACHIEVED, None])
def test_a_changed_file_is_a_leak(answer):
    assert untouched(answer, changed=True).status == LEAK


def test_an_unchanged_file_holds_only_if_someone_tried():
    assert untouched(PREVENTED, changed=False).status == OK
    assert untouched(None, changed=False).status == FAILED
