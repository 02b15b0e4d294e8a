"""What was written becomes the smallest list; a secret becomes a remark and never a change."""

from __future__ import annotations

import pytest

from netsandbox.learn.path_folding import CHANGE, FOLDER, MAKE, Ground
from netsandbox.learn.proposed import proposed
from netsandbox.learn.proposed_paths import (
    DENIED,
    LEFT,
    MAX_PATHS,
    MORE,
    SECRETS,
    PresentFiles,
    proposed_paths,
)
from netsandbox.learn.usage import Usage
from netsandbox.policy.policy import Policy

HOME = "/home/me"
GROUND = Ground(HOME, (f"{HOME}/.ssh",))
OPEN = PresentFiles(GROUND, "/www")
USED = Usage(written=((f"{HOME}/.cache/x/y", MAKE), ("/srv/data/db", CHANGE), ("/www/sub/f", MAKE)))


def confined(*allowed: str) -> PresentFiles:
    return PresentFiles(GROUND, "/www", allowed)


def test_what_was_written_is_proposed_as_it_would_be_written_by_hand() -> None:
    assert proposed_paths(USED, OPEN).writable == (("~/.cache/x/", ""), ("/srv/data/db", ""), ("sub/", ""))


def test_nothing_written_is_an_empty_list_where_writing_was_open() -> None:
    assert proposed_paths(Usage(), OPEN).writable == ()
    assert proposed_paths(Usage(), confined()).writable is None


def test_what_is_allowed_already_is_not_proposed() -> None:
    assert proposed_paths(USED, confined(f"{HOME}/.cache/x", "/srv")).writable == (("sub/", ""),)
    assert proposed_paths(USED, confined(f"{HOME}/.cache", "/srv/data/db", "/www")).writable is None
    replaced = Usage(written=(("/srv/data/db", MAKE),))
    assert proposed_paths(replaced, confined("/srv/data/db")).writable == (("/srv/data/", ""),)


def test_a_secret_is_remarked_and_not_proposed() -> None:
    found = proposed_paths(Usage(secrets=(f"{HOME}/.ssh", "/run/secrets")), OPEN)
    assert found.writable == ()
    assert found.remarks == ((SECRETS, ('allow_read = ["~/.ssh"]', 'allow_read = ["/run/secrets"]')),)


def test_what_the_user_hides_is_not_spoken_of_as_if_a_rule_could_show_it() -> None:
    found = proposed_paths(Usage(secrets=(f"{HOME}/.ssh", "/srv/mine")), PresentFiles(GROUND, "/www", (), ("/srv",)))
    assert found.remarks == ((SECRETS, ('allow_read = ["~/.ssh"]',)), (DENIED, ("/srv/mine",)))


def test_what_no_rule_may_cover_or_no_file_can_hold_is_left_to_the_user() -> None:
    odd = "/srv/\udcff/x"
    found = proposed_paths(Usage(written=((odd, CHANGE), ("/top", FOLDER))), OPEN)
    assert found.writable == ()
    assert found.remarks == ((LEFT, ("/top", odd)),)
    (line,) = [
        line for line in proposed(Usage(written=((odd, CHANGE),)), Policy(()), files=OPEN).remarks if "srv" in line
    ]
    assert line == "  /srv/\\udcff/x"


def test_a_lock_that_is_gone_is_left_to_the_user_and_a_file_that_stays_is_proposed() -> None:
    used = Usage(written=((f"{HOME}/.rc", MAKE), (f"{HOME}/.rc.lock", MAKE), (f"{HOME}/.tool/lock", MAKE)))
    present = PresentFiles(GROUND, "/www", exists=lambda path: path == f"{HOME}/.rc")
    found = proposed_paths(used, present)
    assert [text for text, _ in found.writable or ()] == ["~/.rc", "~/.tool/"]
    assert found.remarks == ((LEFT, (f"{HOME}/.rc.lock",)),)


@pytest.mark.parametrize(
    "used",
    [Usage(more_paths=True), Usage(written=tuple((f"{HOME}/.f{number}", CHANGE) for number in range(MAX_PATHS + 1)))],
)
def test_that_there_was_more_is_said(used: Usage) -> None:
    found = proposed_paths(used, OPEN)
    assert [title for title, _ in found.remarks] == [MORE]
    assert len(found.writable or ()) <= MAX_PATHS


def test_a_command_that_could_not_be_watched_is_not_confined_to_nothing() -> None:
    assert proposed_paths(Usage(more_paths=True), OPEN).writable is None
    assert proposed_paths(Usage(more_paths=True, written=(("/srv/a/b", MAKE),)), OPEN).writable == (("/srv/a/", ""),)


def test_a_comment_cannot_end_its_line() -> None:
    used = Usage(written=tuple((f"/srv/a/{name}\n/f", MAKE) for name in "abcd"))
    ((text, comment),) = proposed_paths(used, OPEN).writable or ()
    assert text == "/srv/a/"
    assert "\n" not in comment
    assert "written: a\\n, b\\n" in comment


def test_where_no_files_were_watched_nothing_is_said_about_them() -> None:
    assert proposed(USED, Policy(())).writable is None
    assert proposed(USED, Policy(()), files=OPEN).opens
    confining = proposed(Usage(), Policy(()), files=OPEN)
    assert (confining.opens, confining.online, confining.empty) == (False, False, False)
