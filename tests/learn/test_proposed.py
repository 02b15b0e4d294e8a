"""What is proposed, once allowed, lets through what was used; and nothing is proposed twice."""

from __future__ import annotations

import pytest

from netsandbox.learn.proposed import (
    DENIED,
    LEFT,
    MAX_PATHS,
    MAX_RULES,
    MORE,
    SECRETS,
    STARTS,
    UNREAD,
    PresentFiles,
    Proposed,
    ProposedPaths,
    proposed,
    proposed_paths,
    rule_lists,
)
from netsandbox.learn.request_folding import LearntRequest
from netsandbox.learn.usage import Usage
from netsandbox.policy.file_denials import KEYS_STAY, MACHINE_STAYS
from netsandbox.policy.file_rules import CHANGE, FOLDER, MAKE
from netsandbox.policy.inspection import inspection
from netsandbox.policy.names import canonical
from netsandbox.policy.path_folding import EntryLimits
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import TCP, Request


def filtered(*allow: str, deny: tuple[str, ...] = (), addresses: tuple[str, ...] = ()) -> Policy:
    return Policy(allow, deny, addresses, mode="filtered")


def test_what_is_allowed_already_is_not_proposed() -> None:
    used = Usage(names=(("a.test", 443), ("b.test", 443), ("c.test", 8443)))
    found = proposed(used, filtered("a.test", "c.test"))
    assert [each.rule for each in found.domains] == ["b.test", "c.test:8443"]
    assert proposed(used, filtered("a.test", "b.test", "c.test:8443")).empty


def test_addresses_are_proposed_where_a_name_does_not_do() -> None:
    used = Usage(
        names=(("a.test", 443), ("db.test", 5432)),
        literals=(("192.0.2.7", 22),),
        addresses=(("203.0.113.7", 443), ("10.0.0.5", 5432), ("192.0.2.7", 22), ("fd00::1", 443)),
    )
    found = proposed(used, filtered())
    assert found.addresses == ("192.0.2.7:22", "10.0.0.5:5432", "[fd00::1]:443")
    policy = filtered(*(each.rule for each in found.domains), addresses=found.addresses)
    assert policy.decide(Request(canonical("192.0.2.7"), 22, TCP)).allowed
    assert proposed(used, policy).empty


def test_behind_a_proxy_the_address_is_not_the_names() -> None:
    used = Usage(names=(("a.test", 443),), addresses=(("10.0.0.5", 443),))
    assert proposed(used, filtered(), dialled=False).addresses == ()


def test_a_name_that_the_user_denies_is_never_proposed() -> None:
    used = Usage(names=(("bad.test", 443),))
    assert proposed(used, filtered(deny=("bad.test",))).empty
    folded = Usage(names=tuple((f"n{number}.example.com", 443) for number in range(5)))
    assert all(not each.folded for each in proposed(folded, filtered(deny=("*.example.com:25",))).domains)
    assert proposed(folded, filtered()).domains[0].folded


def test_what_is_left_to_the_user_is_said() -> None:
    used = Usage(
        looked_up=("c.test",),
        unreached=("d.test:443 (lookup-failed)",),
        denied_names=("bad.test",),
        host_ports=(5432,),
        unix_sockets=("/run/\x1b[2Jd.sock",),
        refused=("10.0.0.1:443 (address-guard)",),
    )
    assert proposed(used, filtered()).remarks == (
        "only looked up, never connected to, so not proposed:",
        "  c.test",
        "let through, but not reached, so not proposed:",
        "  d.test:443 (lookup-failed)",
        "refused by your own deny rules:",
        "  bad.test",
        "refused: ports of this machine's localhost; if it needs one, add to [localhost]:",
        "  connect_host = [5432]",
        "refused: sockets of this machine; if it needs one, add to allow_unix_sockets:",
        "  /run/\\x1b[2Jd.sock",
        "refused while learning, as it always is without a rule:",
        "  10.0.0.1:443 (address-guard)",
    )


def test_long_lists_are_cut_and_said_to_be() -> None:
    used = Usage(names=tuple((f"n.d{number}.test", 443) for number in range(MAX_RULES + 1)))
    found = proposed(used, filtered())
    assert len(found.domains) == MAX_RULES
    assert "more hosts or requests than are listed" in found.remarks[0]
    looked = proposed(Usage(looked_up=tuple(f"n{number}.test" for number in range(25))), filtered())
    assert looked.remarks[-1] == "  and 5 more"


def test_only_lists_with_something_in_them_are_written() -> None:
    assert rule_lists(Proposed()) == []
    assert rule_lists(Proposed(addresses=("192.0.2.7:22",))) == [("network", "allow_addresses", [("192.0.2.7:22", "")])]
    both = Proposed(writable=(("/srv/a", ""),), readable=(("~/data", ""),))
    assert rule_lists(both) == [
        ("filesystem", "allow_read", [("~/data", "")]),
        ("filesystem", "allow_write", [("/srv/a", "")]),
    ]


HOME = "/home/me"
LIMITS = EntryLimits(HOME, (f"{HOME}/.ssh",))
OPEN = PresentFiles(LIMITS, "/www")
USED = Usage(written=((f"{HOME}/.cache/x/y", MAKE), ("/srv/data/db", CHANGE), ("/www/sub/f", MAKE)))


def confined(*allowed: str) -> PresentFiles:
    return PresentFiles(LIMITS, "/www", allowed)


def test_what_was_written_is_proposed_as_it_would_be_written_by_hand() -> None:
    assert proposed_paths(USED, OPEN).writable == (("~/.cache/x/", ""), ("/srv/data/db", ""), ("sub/", ""))


def test_nothing_written_is_nothing_to_propose() -> None:
    assert proposed_paths(Usage(), OPEN) == proposed_paths(Usage(), confined()) == ProposedPaths()


def test_what_is_allowed_already_is_no_new_entry() -> None:
    assert proposed_paths(USED, confined(f"{HOME}/.cache/x", "/srv")).writable == (("sub/", ""),)
    assert proposed_paths(USED, confined(f"{HOME}/.cache", "/srv/data/db", "/www")).writable == ()
    replaced = Usage(written=(("/srv/data/db", MAKE),))
    assert proposed_paths(replaced, confined("/srv/data/db")).writable == (("/srv/data/", ""),)


def test_a_secret_is_remarked_and_not_proposed() -> None:
    found = proposed_paths(Usage(secrets=(f"{HOME}/.aws", "/run/secrets")), OPEN)
    assert found.writable == ()
    assert found.remarks == ((SECRETS, ('allow_read = ["~/.aws"]', 'allow_read = ["/run/secrets"]')),)


def test_no_rule_for_a_private_key_or_its_folder_is_proposed() -> None:
    """E9: neither as a line to copy nor beside what is proposed."""
    keys = (f"{HOME}/.ssh", f"{HOME}/.gnupg", f"{HOME}/.ssh/known_hosts", "/srv/keys/id_rsa")
    read = (*keys[2:], *(f"/srv/{folder}/{name}" for folder in ("keys", "plain") for name in "abcd"))
    used = Usage(secrets=(*keys[:2], "/etc/shadow"), read=read, written=((f"{HOME}/.ssh/known_hosts", MAKE),))
    found = proposed_paths(used, OPEN)
    assert found.writable == ()
    assert [path for path, _ in found.readable] == ["/srv/plain"]
    assert found.remarks == (
        (f"refused: {KEYS_STAY}", keys),
        (f"refused: {MACHINE_STAYS}", ("/etc/shadow",)),
        (UNREAD, ("/srv/keys",)),
    )


def test_what_the_user_hides_is_not_spoken_of_as_if_a_rule_could_show_it() -> None:
    found = proposed_paths(Usage(secrets=(f"{HOME}/.aws", "/srv/mine")), PresentFiles(LIMITS, "/www", (), ("/srv",)))
    assert found.remarks == ((SECRETS, ('allow_read = ["~/.aws"]',)), (DENIED, ("/srv/mine",)))


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
    present = PresentFiles(LIMITS, "/www", exists=lambda path: path == f"{HOME}/.rc")
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


def test_what_was_watched_of_many_paths_is_proposed() -> None:
    assert proposed_paths(Usage(more_paths=True), OPEN).writable == ()
    assert proposed_paths(Usage(more_paths=True, written=(("/srv/a/b", MAKE),)), OPEN).writable == (("/srv/a/", ""),)


def test_a_comment_cannot_end_its_line() -> None:
    used = Usage(written=tuple((f"/srv/a/{name}\n/f", MAKE) for name in "abcd"))
    ((text, comment),) = proposed_paths(used, OPEN).writable or ()
    assert text == "/srv/a/"
    assert "\n" not in comment
    assert "paths in it: a\\n, b\\n" in comment


def test_where_no_files_were_watched_nothing_is_said_about_them() -> None:
    assert proposed(USED, Policy(())).empty
    assert not proposed(USED, Policy(()), files=OPEN).empty
    assert proposed(Usage(), Policy(()), files=OPEN).empty


def test_files_that_were_not_shown_are_proposed_for_reading() -> None:
    used = Usage(read=(f"{HOME}/Documents/plan.md", *(f"/srv/data/{name}" for name in "abcd")))
    found = proposed_paths(used, OPEN)
    assert found.readable == (
        ("~/Documents/plan.md", ""),
        ("/srv/data", "4 paths in it: a, b, c, and 1 more"),
    )
    assert (found.writable, found.remarks) == ((), ())


def test_what_is_gone_or_will_be_writable_is_not_proposed_for_reading() -> None:
    used = Usage(read=("/srv/data/x", "/srv/gone"), written=(("/srv/data/y", MAKE),))
    present = PresentFiles(LIMITS, "/www", exists=lambda path: "gone" not in path)
    found = proposed_paths(used, present)
    assert (found.readable, found.writable) == ((), (("/srv/data/", ""),))


def test_a_secret_that_was_not_shown_is_remarked_and_start_up_files_are_not_even_that() -> None:
    found = proposed_paths(Usage(read=(f"{HOME}/.aws/config", f"{HOME}/.bashrc", f"{HOME}/.profile")), OPEN)
    assert found == ProposedPaths((), (), ((SECRETS, ('allow_read = ["~/.aws/config"]',)),))


def test_what_the_user_hides_is_not_proposed_for_reading() -> None:
    found = proposed_paths(Usage(read=("/srv/mine/x",)), PresentFiles(LIMITS, "/www", (), ("/srv/mine",)))
    assert found == ProposedPaths((), (), ((DENIED, ("/srv/mine/x",)),))


def test_reading_too_much_is_left_to_the_user() -> None:
    found = proposed_paths(Usage(read=("/srv", HOME)), OPEN)
    assert found == ProposedPaths((), (), ((UNREAD, (HOME, "/srv")),))


@pytest.mark.parametrize("name", [".bashrc", ".zshenv", ".local/bin/x", ".config/systemd/user/x", ".gitconfig"])
def test_what_the_host_runs_is_never_proposed_for_writing(name: str) -> None:
    for done in (CHANGE, MAKE, FOLDER):
        found = proposed_paths(Usage(written=((f"{HOME}/{name}", done),)), OPEN)
        assert found == ProposedPaths((), (), ((STARTS, (f"{HOME}/{name}",)),))


def test_cache_internals_are_proposed_as_the_cache() -> None:
    used = Usage(written=((f"{HOME}/.npm/_cacache/index-v5/98/20/x", MAKE), (f"{HOME}/go/pkg/mod/cache/lock", MAKE)))
    assert proposed_paths(used, OPEN).writable == (("~/.npm/", ""), ("~/go/pkg/", ""))


def test_what_the_user_may_not_write_is_not_proposed() -> None:
    present = PresentFiles(LIMITS, "/www", may_write=lambda path: not path.startswith("/usr"))
    used = Usage(written=(("/usr/share/x", MAKE), ("/srv/a/b", MAKE)))
    assert proposed_paths(used, present).writable == (("/srv/a/", ""),)


def test_a_host_whose_requests_are_known_gets_rules_for_them_alone() -> None:
    used = Usage(
        names=(("a.test", 443), ("b.test", 443)),
        requests=(
            LearntRequest("https", "a.test", 443, "GET", "/x"),
            LearntRequest("https", "a.test", 443, "GET", "/y"),
        ),
        unlearnt=("POST https://a.test/a//b",),
    )
    found = proposed(used, filtered())
    assert [each.rule for each in found.domains] == ["b.test"]
    assert rule_lists(found)[1][:2] == ("network", "allow_http")
    assert [each.rule for each in found.requests] == ["GET https://a.test/x", "GET https://a.test/y"]
    assert "  POST https://a.test/a//b" in found.remarks
    rules = inspection([("GET https://a.test/x", "here")])
    present = Policy(("b.test",), mode="filtered", inspection=rules)
    assert [each.rule for each in proposed(used, present).requests] == ["GET https://a.test/y"]
    by_name = proposed(used, filtered("a.test", "b.test"))  # the name alone is no rule for requests
    assert len(by_name.requests) == 2
    assert by_name.online
