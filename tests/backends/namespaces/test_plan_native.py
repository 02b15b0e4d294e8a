"""A plan as the native helper carries it out: what cannot be carried out is an error that names the step."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from netsandbox.backends.namespaces import launch, plan
from netsandbox.errors import HostError
from netsandbox.policy.file_rules import MAX_WRITABLE
from tests.rig.planned import Start, planned, view

pytestmark = pytest.mark.usefixtures("user_namespaces")


def refused(helper: launch.Helper, data: bytes) -> str:
    helper.send_plan(data)
    with pytest.raises(HostError) as error:
        helper.doors(plan.doors())
    helper.close()
    return str(error.value)


@pytest.mark.parametrize(
    "data",
    [
        b"I",
        b"I\x08\x00",
        b"I" + struct.pack("=I", 8) + b"\x00" * 4,
        b"I" + struct.pack("=I", 0xFFFFFFFF) + b"\x00" * 8,
        b"?" + struct.pack("=I", 0),
        b"\x00" * 64,
        b"I" + struct.pack("=II", 4, 0),
        b"M" + struct.pack("=II", 8, 0) + b"proc",
        b"M" + struct.pack("=II", 8, 0) + b"a\0b\0",
        b"K" + struct.pack("=II", 4, 0),
        b"D" + struct.pack("=II", 4, 2),
    ],
    ids=["cut-1", "cut-2", "short", "huge", "unknown", "zeros", "no-gid", "no-end", "no-type", "no-acks", "no-door"],
)
def test_a_broken_plan_is_refused(start: Start, data: bytes) -> None:
    text = refused(start("sh", "-c", "exit 0"), data)
    assert "reading the plan" in text
    assert "doctor" in text


def test_a_plan_that_is_too_long_is_refused(start: Start) -> None:
    assert "Argument list too long" in refused(start(), planned() + b"\0" * (1 << 20))


def test_every_truncation_is_refused_or_lacks_its_doors(start: Start, tmp_path: Path) -> None:
    """Cut anywhere, the command never runs: either the helper complains or too few doors stand."""
    whole, mark = planned(), tmp_path / "ran"
    for length in (3, 20, 200, len(whole) // 3, len(whole) // 2, len(whole) * 3 // 4):
        refused(start("touch", str(mark)), whole[:length])
    assert not mark.exists()


@pytest.mark.parametrize("step", ["unknown mount", "bad netlink", "bad option", "missing read-only path"])
def test_a_step_that_fails_is_named(start: Start, step: str) -> None:
    identity = plan.step(b"I", plan.numbers(os.geteuid(), os.getegid()))
    broken = {
        "unknown mount": plan._mount(0, "none", "/proc", "no-such-file-system"),
        "bad netlink": plan.step(b"K", plan.numbers(0, 1) + struct.pack("=IHHII", 16, 0xFFF, 5, 1, 0)),
        "bad option": plan.step(b"D", plan.numbers(2, 1, 9, 0, 0)) + plan.step(b"O", plan.numbers(999, 999)),
        "missing read-only path": plan._mount(plan.BIND | plan.READ_ONLY, "/no/such/path", "/no/such/path"),
    }[step]
    named = {
        "unknown mount": "/proc",
        "bad netlink": "configuring loopback",
        "bad option": "option of a door",
        "missing read-only path": "/no/such/path",
    }[step]
    assert named in refused(start(), identity + broken)


def test_a_cover_hides_a_file_and_cannot_be_written_moved_or_removed(standing: Start, tmp_path: Path) -> None:
    """INV-8: the host's lock file, and the map of ports."""
    theirs, ours = tmp_path / "locks", tmp_path / "nothing"
    theirs.write_text("secret")
    ours.write_text("cover")
    script = (
        f'test "$(cat {theirs})" = cover || exit 11; (echo x > {theirs}) 2>/dev/null && exit 12;'
        f"mv {theirs} {theirs}.x 2>/dev/null && exit 13; rm -f {theirs} 2>/dev/null && exit 14; exit 0"
    )
    message = standing("sh", "-c", script, view=view(files=((str(ours), str(theirs)),))).receive()
    assert (message.kind, os.WEXITSTATUS(message.number)) == ("S", 0)
    assert theirs.read_text() == "secret"


def writable(*targets: Path) -> plan.View:
    return view(writable=("/dev", "/proc", *map(str, targets)))


def test_only_what_is_writable_is_written(standing: Start, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    script = f"touch {tmp_path}/open/x || exit 11; touch {tmp_path}/x 2>/dev/null && exit 12; exit 0"
    message = standing("sh", "-c", script, view=writable(tmp_path / "open")).receive()
    assert (message.kind, os.WEXITSTATUS(message.number)) == ("S", 0)
    assert [path.name for path in tmp_path.rglob("x")] == ["x"]


@pytest.mark.attack(146)
def test_146_a_link_that_was_put_on_the_way_is_not_followed(start: Start, tmp_path: Path) -> None:
    """Another session may write where this one's paths are; the supervisor has resolved them."""
    (tmp_path / "true" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "true")
    for path in (tmp_path / "link" / "sub", tmp_path / "link", tmp_path / "absent"):
        assert str(path) in refused(start("true"), planned(writable(path)))


def test_more_writable_paths_than_there_is_room_for_are_refused(start: Start, tmp_path: Path) -> None:
    many = []
    for number in range(MAX_WRITABLE + 1):
        many.append(tmp_path / str(number))
        many[-1].mkdir()
    assert "confining writing" in refused(start("true"), planned(writable(*many)))


def test_a_plan_whose_paths_do_not_end_is_refused(start: Start) -> None:
    identity = plan.step(b"I", plan.numbers(os.geteuid(), os.getegid()))
    assert "reading the plan" in refused(start("true"), identity + plan.step(b"W", b"/tmp"))


@pytest.mark.attack(146)
def test_146_an_overlay_does_not_follow_a_link_that_took_the_place_of_its_folder(
    standing: Start, tmp_path: Path
) -> None:
    """A cache shows its own changes alone then."""
    for name in ("host", "ours/data", "ours/work", "at"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "host" / "who").write_text("host")
    (tmp_path / "link").symlink_to(tmp_path / "host")
    options = f"lowerdir=.,upperdir={tmp_path}/ours/data,workdir={tmp_path}/ours/work,userxattr"
    for lower, seen in (("host", 0), ("link", 1)):
        cache = plan.texts(f"{tmp_path}/{lower}", options, f"{tmp_path}/ours/data", f"{tmp_path}/at")
        message = standing("test", "-e", f"{tmp_path}/at/who", more=plan.step(b"C", cache)).receive()
        assert (message.kind, os.WEXITSTATUS(message.number)) == ("S", seen), lower
