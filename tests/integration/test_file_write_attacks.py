"""Once writing is confined, nothing outside of its places is changed by any call, and inside each call works."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.rig.inside import attack

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

KEPT = "kept-3c9d"
# Each call is tried on the folder `place`, which holds the file `kept`, the folder `sub` and the file `own`.
CALLS = """
import ctypes, mmap, stat
def write(path, flags):
    descriptor = os.open(path, flags, 0o600)
    try:
        os.write(descriptor, b"x")
    finally:
        os.close(descriptor)

def mapped(path):
    descriptor = os.open(path, os.O_RDWR)
    try:
        with mmap.mmap(descriptor, 1) as memory:
            memory[0] = 120
    finally:
        os.close(descriptor)

def reopened(path, how):
    descriptor = os.open(path, how)
    try:
        write(f"/proc/self/fd/{descriptor}", os.O_WRONLY)
    finally:
        os.close(descriptor)

def through_link(path):
    link = os.path.join(work, "link-" + str(abs(hash(path))))
    os.symlink(path, link)
    try:
        write(link, os.O_WRONLY)
    finally:
        os.unlink(link)

def exchange(path):
    # renameat2 with RENAME_EXCHANGE
    other = os.path.join(place, "own")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, path.encode(), -100, other.encode(), 2):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

def tries(place):
    kept, sub = place + "/kept", place + "/sub"
    return {
        "append": lambda: write(kept, os.O_WRONLY | os.O_APPEND),
        "create": lambda: write(place + "/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL),
        "unnamed": lambda: write(place, os.O_WRONLY | os.O_TMPFILE),
        "open to truncate": lambda: write(kept, os.O_WRONLY | os.O_TRUNC),
        "mapped": lambda: mapped(kept),
        "reopened": lambda: reopened(kept, os.O_RDONLY),
        "reopened path": lambda: reopened(kept, os.O_PATH),
        "by root": lambda: write("/proc/self/root" + kept, os.O_WRONLY),
        "by link": lambda: through_link(kept),
        "by the folder": lambda: os.close(os.open("kept", os.O_WRONLY, dir_fd=os.open(place, os.O_RDONLY))),
        "truncate": lambda: os.truncate(kept, 0),
        "chmod": lambda: os.chmod(kept, 0o640),
        "chmod of the folder": lambda: os.chmod(place, 0o700),
        "chown": lambda: os.chown(kept, os.getuid(), os.getgid()),
        "utime": lambda: os.utime(kept, (1, 1)),
        "setxattr": lambda: os.setxattr(kept, "user.test", b"x"),
        "exchange": lambda: exchange(kept),
        "rename over": lambda: os.rename(place + "/own", kept),
        "rename": lambda: os.rename(kept, place + "/moved"),
        "rename back": lambda: os.rename(place + "/moved", kept),
        "link": lambda: os.link(kept, place + "/second"),
        "unlink": lambda: os.unlink(kept),
        "symlink": lambda: os.symlink("/etc", place + "/symlink"),
        "mkdir": lambda: os.mkdir(place + "/made"),
        "rmdir": lambda: os.rmdir(sub),
        "fifo": lambda: os.mkfifo(place + "/fifo"),
        "mknod": lambda: os.mknod(place + "/node", 0o600 | stat.S_IFREG),
    }

def outcome(place):
    return {name: refused(call) for name, call in tries(place).items()}
"""


def owned(home: Any, path: Path) -> Path:
    os.chown(path, home.identity.uid, home.identity.gid)
    return path


def filled(home: Any, place: Path) -> Path:
    place.mkdir(exist_ok=True)
    (place / "sub").mkdir()
    for name in ("kept", "own"):
        (place / name).write_text(KEPT)
        owned(home, place / name)
    owned(home, place / "sub")
    return owned(home, place)


def state(place: Path) -> list[tuple[str, int, int, int, bytes]]:
    found = []
    for top, folders, files in os.walk(place):
        for name in (*folders, *files):
            path = Path(top, name)
            seen = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found.append((str(path), seen.st_mode, seen.st_uid, seen.st_mtime_ns, content))
    return sorted(found)


@pytest.mark.attack(140)
@pytest.mark.attack(146)
@pytest.mark.attack(147)
@pytest.mark.attack(152)
@pytest.mark.attack(155)
def test_140_146_147_152_155_nothing_outside_is_changed_and_inside_every_call_works(
    netsandbox: Any, outside: Path
) -> None:
    home = netsandbox.home()
    forbidden, allowed = filled(home, outside / "forbidden"), filled(home, outside / "allowed")
    beside = filled(home, outside / "allowed-not")
    before = state(forbidden), state(beside)
    script = (
        CALLS
        + """
out["forbidden"], out["beside"] = {}, {}
for kind, folder in (("forbidden", forbidden), ("beside", beside), ("allowed", allowed), ("working", work)):
    place = folder
    out[kind] = outcome(folder)
out["across"] = [refused(os.rename, work + "/own2", forbidden + "/kept")]
out["across"].append(refused(os.link, forbidden + "/own", work + "/link"))
out["above"] = [refused(os.rename, folder, folder + "2") for folder in (allowed, top)] + [refused(os.rmdir, allowed)]
"""
    )
    working = filled(home, home.work / "here")
    (working / "own2").write_text("own2")
    arguments = {
        "forbidden": str(forbidden),
        "beside": str(beside),
        "allowed": str(allowed),
        "work": str(working),
        "top": str(outside),
    }
    tried = attack(netsandbox, ["--allow-write", str(allowed)], script, arguments=arguments)
    for kind in ("forbidden", "beside"):
        assert [name for name, error in tried.out[kind].items() if error is None] == [], kind
    for kind in ("allowed", "working"):
        refusals = {name: error for name, error in tried.out[kind].items() if error not in (None, "EOPNOTSUPP")}
        assert refusals == {}, kind
    assert None not in tried.out["across"]
    assert None not in tried.out["above"]
    assert (state(forbidden), state(beside)) == before
    assert sorted(name.name for name in allowed.iterdir()) == sorted(
        name.name for name in working.iterdir() if name.name != "own2"
    )


@pytest.mark.open_files
def test_without_a_word_about_writing_it_stays_open(netsandbox: Any, outside: Path) -> None:
    """The twin of the above, and what the page says."""
    place = filled(netsandbox.home(), outside / "place")
    tried = attack(netsandbox, [], CALLS + 'out["all"] = outcome(place)', arguments={"place": str(place), "work": "."})
    assert set(tried.out["all"].values()) <= {None, "EOPNOTSUPP"}


@pytest.mark.attack(145)
@pytest.mark.attack(151)
def test_145_151_what_a_session_needs_is_written_and_nothing_else(netsandbox: Any, outside: Path) -> None:
    script = """
def made(folder):
    path = folder + "/nsb-made-%d" % os.getpid()
    error = refused(open, path, "w")
    if error is None:
        os.unlink(path)
    return error
out["temporary"] = [made(folder) for folder in ("/tmp", "/var/tmp", os.environ["TMPDIR"], "/dev/shm", os.getcwd())]
out["devices"] = [refused(open, path, "w") for path in ("/dev/null", "/proc/self/oom_score_adj", "/proc/self/comm")]
first, second = os.openpty()
out["terminal"] = refused(os.write, second, b"x")
out["system"] = [made(folder) for folder in ("/", "/usr", "/etc", "/var", outside, "/sys", "/proc/sys/kernel")]
out["switches"] = refused(open, "/proc/sys/kernel/core_pattern", "w")
out["escapes"] = [refused(os.unshare, 0x10000000) if hasattr(os, "unshare") else "EPERM"]
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    return ctypes.get_errno() if libc.syscall(*arguments) < 0 else 0
MS_REMOUNT_BIND = 32 | 4096
out["mounts"] = [
    call(165, None, b"/", None, MS_REMOUNT_BIND, None), call(166, outside.encode(), 2), call(442, -100, b"/", 0, 0, 0),
    call(165, b"/dev", outside.encode(), None, 4096, None), call(428, -100, b"/", 1), call(272, 0x10000000),
    call(56, 0x10000000 | 17, 0, 0, 0, 0), call(429, -100, b"/tmp", -100, outside.encode(), 0),
]
"""
    tried = attack(netsandbox, ["--allow-write", "."], script, arguments={"outside": str(outside)})
    assert tried.out["temporary"] == [None] * 5
    assert tried.out["devices"] == [None, "EROFS", "EROFS"]
    assert tried.out["terminal"] is None
    assert None not in tried.out["system"]
    assert tried.out["switches"] is not None
    if os.uname().machine == "x86_64":
        assert set(tried.out["mounts"]) == {1}  # EPERM, each


@pytest.mark.open_files
def test_what_is_hidden_or_ours_stays_so_within_what_is_writable(netsandbox: Any) -> None:
    """INV-8: the state folder, the log and a secret lie in the working folder."""
    home = netsandbox.home()
    (home.path / ".netrc").write_text(KEPT)
    owned(home, home.path / ".netrc")
    script = """
out["read"] = [refused(open, home + "/.netrc"), os.listdir(home + "/state/netsandbox")]
out["write"] = [refused(open, path, "w") for path in (home + "/.netrc", log, home + "/config/netsandbox/x")]
out["moved"] = [refused(os.rename, home + "/" + name, home + "/moved") for name in ("state", "config", ".netrc")]
out["twin"] = refused(open, home + "/file", "w")
"""
    log = home.work / "log.jsonl"
    options = ["--allow-write", str(home.path), "--audit-log", str(log)]
    tried = attack(netsandbox, options, script, arguments={"home": str(home.path), "log": str(log)})
    assert tried.out["read"] == ["EACCES", []]
    assert None not in tried.out["write"]
    assert None not in tried.out["moved"]
    assert tried.out["twin"] is None


def in_own_mounts(home: Any, folder: Path, mounts: str, command: str) -> list[str]:
    """The words that COMMAND prints in a session that may write FOLDER, after MOUNTS were made in a namespace of ours.

    For an ordinary user this is a namespace whose mounts are locked (mount_namespaces(7)).
    """
    new = ["unshare", "--mount"] if home.identity.uid == 0 else ["unshare", "--mount", "--map-root-user"]
    product = f'"{home.identity.python}" -m netsandbox run --no-config --files readable'
    run = home.plainly([*new, "sh", "-c", f"{mounts} && cd . && {product} -- sh -c '{command}'"], cwd=folder)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_a_mount_in_a_writable_folder_keeps_its_own_state(netsandbox: Any, outside: Path) -> None:
    """One that is read-only on the host is so inside; one that is writable is written, and only where it is allowed."""
    home = netsandbox.home()
    for name in ("closed", "open"):
        (outside / "project" / name).mkdir(parents=True)
        owned(home, outside / "project" / name)
    owned(home, outside / "project")
    mounts = "mount -t tmpfs none open && mount -t tmpfs none closed && mount -o remount,bind,ro closed"
    tries = "for each in closed/x open/x here ../x; do touch $each 2>/dev/null; echo $?; done"
    assert in_own_mounts(home, outside / "project", mounts, tries) == ["1", "0", "0", "1"]


def test_layers_over_one_another_are_confined_and_hidden_like_a_disk(netsandbox: Any, outside: Path) -> None:
    """overlayfs, as containers have it: the working folder, a folder beside it and a secret, all from a lower layer."""
    home = netsandbox.home()
    for name in ("lower/project", "lower/beside", "upper", "work", "seen"):
        (outside / name).mkdir(parents=True)
        owned(home, outside / name)
    owned(home, outside / "lower")
    (outside / "lower" / ".netrc").write_text(KEPT)
    layers = f"lowerdir={outside}/lower,upperdir={outside}/upper,workdir={outside}/work"
    mounts = f"mount -t overlay none -o {layers} seen && export HOME={outside}/seen && cd seen/project"
    tries = f"for each in here ../beside/x ../x {outside}/x; do touch $each 2>/dev/null; echo $?; done; ! cat ../.netrc"
    assert in_own_mounts(home, outside, mounts, tries) == ["0", "1", "1", "1"]
    made = {path.name for path in (outside / "upper").rglob("*") if path.is_file() and ".local" not in path.parts}
    assert made == {"here"}, "our own state is in ~/.local"


@pytest.mark.open_files
@pytest.mark.attack(146)
def test_146_a_link_in_the_project_does_not_widen_it(netsandbox: Any, outside: Path) -> None:
    """Where a path to write leads is settled before the command runs; a link made by it later is only a link."""
    home = netsandbox.home()
    forbidden = filled(home, outside / "forbidden")
    (home.work / "build").symlink_to(forbidden)
    script = 'out["first"] = refused(open, "build/new", "w"); out["swap"] = refused(os.rename, "build", "old")'
    tried = attack(netsandbox, ["--allow-write", "."], script)
    assert (tried.out["first"], tried.out["swap"]) == ("EROFS", None)
    assert not (forbidden / "new").exists()
    (home.work / "build").symlink_to(forbidden)
    run = netsandbox("run", "--allow-write", "build", "--", "touch", "build/new")
    assert run.returncode == 2, "an earlier command may have made the link"
    assert "which a command could have made" in run.stderr
    assert not (forbidden / "new").exists()
    assert attack(netsandbox, ["--allow-write", str(forbidden)], script).out["first"] is None  # the user's word


@pytest.mark.open_files
@pytest.mark.attack(146)
def test_146_a_link_that_a_session_left_in_one_project_widens_no_other(netsandbox: Any, outside: Path) -> None:
    """The second session may not write the first one's project, but for the folder that the link stands for."""
    home = netsandbox.home()
    forbidden, one, other = (filled(home, outside / name) for name in ("forbidden", "one", "other"))
    (one / "mine").symlink_to(other / "sub")  # the user's own, older than every session
    first = netsandbox("run", "--allow-write", ".", "--", "ln", "-s", forbidden, "out", cwd=one)
    assert first.returncode == 0, first.stderr
    second = netsandbox("run", "--allow-write", one / "out", "--", "touch", one / "out" / "new", cwd=other)
    assert second.returncode == 2
    assert f"by the link '{one}/out', which a command could have made; write '{forbidden}'" in second.stderr
    assert not (forbidden / "new").exists()
    for path in (forbidden, one / "mine"):  # the twins: written out, or linked before
        twin = netsandbox("run", "--allow-write", path, "--", "touch", path / "new", cwd=home.work)
        assert twin.returncode == 0, twin.stderr
        assert (path / "new").exists()


@pytest.mark.open_files
@pytest.mark.attack(151)
def test_151_writing_is_not_confined_to_the_whole_disk(netsandbox: Any, outside: Path) -> None:
    for options, cwd in ((["--allow-write", "/"], None), (["--allow-write", "/opt"], "/")):
        run = netsandbox("run", *options, "--", "touch", outside / "mark", cwd=cwd)
        assert run.returncode == 2
        assert "whole disk" in run.stderr
    assert not (outside / "mark").exists()
    assert netsandbox("run", "--", "touch", outside / "mark", cwd="/").returncode == 0
