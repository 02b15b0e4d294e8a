"""Real sessions that ask about files: content of the host appears inside after a yes, and never otherwise."""

from __future__ import annotations

import json
import os
import signal
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.rig.asking import Inside

pytestmark = [pytest.mark.usefixtures("user_namespaces")]

CANARY, PLAIN = "canary-91d3", "plain-40ce"


@pytest.fixture
def files(netsandbox: Any) -> Path:
    """A folder of the home that no session sees."""
    home = netsandbox.home()
    folder = home.path / "docs"
    contents = {"docs/plan": CANARY, "docs/other": PLAIN, "docs/deep/more": PLAIN, ".aws/credentials": CANARY}
    for name, content in contents.items():
        path = home.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (folder / "tool").write_text(f"#!/bin/sh\necho {PLAIN}\n")
    (folder / "tool").chmod(0o755)
    for path in (folder, home.path / ".aws", *folder.rglob("*"), home.path / ".aws" / "credentials"):
        os.chown(path, home.identity.uid, home.identity.gid)
    return folder


@pytest.fixture
def inside(netsandbox: Any, files: Path) -> Inside:
    return Inside(netsandbox)


def outcomes(records: list[dict[str, Any]]) -> list[str]:
    return [record["outcome"] for record in records if record["event"] == "approval"]


def verdicts(records: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Of the files in the folder."""
    found = [r for r in records if r["event"] in ("file", "exec") and "/docs/" in r.get("path", "")]
    return [(record["verdict"], record["reason"]) for record in found]


@pytest.mark.ordinary_user
def test_a_yes_hands_over_the_file_for_reading_alone(inside: Inside, files: Path) -> None:
    path = files / "plan"
    number = inside.asked(path, f"fd = os.open({str(path)!r}, os.O_RDONLY); print(os.read(fd, 99).decode())")
    said = inside.answer("approve", number)
    assert said.endswith(": read ~/docs/plan is allowed until the session ends\n")
    assert inside.told() == CANARY
    assert inside.do("print(refused(os.open, f'/proc/self/fd/{fd}', os.O_RDWR))") == "EROFS"
    assert inside.do("print(refused(os.fchmod, fd, 0o777))") == "EROFS"
    assert inside.do("print(text('..', dir_fd=fd))") == "ENOTDIR"
    assert inside.read(path) == CANARY  # without a question
    records = inside.end()
    assert outcomes(records) == ["asked", "approved"]
    order = [(r["event"], r.get("outcome") or r.get("reason")) for r in records]
    assert order.index(("approval", "approved")) < order.index(("file", "approved"))
    assert path.read_text() == CANARY


@pytest.mark.ordinary_user
def test_a_no_is_remembered_and_silence_is_a_no(netsandbox: Any, inside: Inside, files: Path) -> None:
    inside.answer("deny", inside.asked(files / "plan"))
    assert inside.told() == "EACCES"
    assert inside.read(files / "plan") == "EACCES"
    records = inside.end()
    assert outcomes(records) == ["asked", "denied"]
    assert ("deny", "denied-by-user") in verdicts(records)
    line = inside.running.process.stderr.read().decode()
    assert "denied reading ~/docs/plan (denied-by-user); your answer held for this session\n" in line
    silent = Inside(netsandbox, "--ask-wait", "1")
    assert silent.read(files / "plan") == "ENOENT"
    records = silent.end()
    assert outcomes(records) == ["asked", "unanswered"]
    assert verdicts(records) == [("deny", "unanswered")]
    line = silent.running.process.stderr.read().decode()
    assert "denied reading ~/docs/plan; show it with --allow-read ~/docs/plan\n" in line


@pytest.mark.ordinary_user
def test_a_folder_opens_the_files_in_it_and_no_secret(netsandbox: Any, inside: Inside, files: Path) -> None:
    inside.asked(files / "plan")
    assert inside.answer("approve", files).endswith(": read ~/docs/ is allowed until the session ends\n")
    assert inside.told() == CANARY
    assert inside.read(files / "other") == PLAIN
    assert inside.read(files / "deep" / "more") == PLAIN
    names = f"fd = os.open({str(files)!r}, os.O_RDONLY); print(sorted(os.listdir(fd)))"
    assert inside.do(names) == "['deep', 'other', 'plan', 'tool']"
    assert inside.do("print(text('deep/more', dir_fd=fd))") == PLAIN
    line = "print(text('plan', os.O_RDWR, dir_fd=fd))"
    inside.answer("deny", inside.asked(files / "plan", line, operation="write"))
    assert inside.told() == "EACCES"
    inside.tell("print(text('../.aws/credentials', dir_fd=fd))")
    (question,) = inside.pending()
    assert question["secret"] is True
    inside.answer("deny", str(question["id"]))
    assert inside.told() == "EACCES"
    inside.end()
    assert "asks to read ~/.aws/credentials, a secret, and waits" in inside.running.process.stderr.read().decode()


@pytest.mark.ordinary_user(only=True)
def test_what_its_mode_closes_meanwhile_stays_closed_after_a_yes(inside: Inside, files: Path) -> None:
    for mode, seen in ((0o000, "EACCES"), (0o400, CANARY)):
        number = inside.asked(files / "plan")
        (files / "plan").chmod(mode)
        inside.answer("approve", number, "--for", "once")
        assert inside.told() == seen
        (files / "plan").chmod(0o600)
    inside.end()


LOOKS = {
    "ls": "deep\nother\nplan\ntool",
    "find . -name more": "./deep/more",
    "stat -c %F plan": "regular file",
    "cp plan /tmp/copy && cat /tmp/copy": CANARY,
    f"grep -rl {CANARY} .": "./plan",
    "tar cf - . | tar tf - | grep -c deep/more": "1",
    "test -f other && echo yes": "yes",
    "ls -d ../.aws ../state || echo no": "no",
    "chmod 777 plan || mv plan plan2 || echo no": "no",
    "mkdir deep/new || rm -rf plan || echo no": "no",
}


@pytest.mark.ordinary_user
@pytest.mark.attack(253)
def test_programs_that_look_before_they_open_find_an_approved_folder(netsandbox: Any, files: Path) -> None:
    """It is shown read-only. The folders above are the session's own, and where the session has files they stay."""
    inside = Inside(netsandbox, "--fresh-home")
    look = "print(subprocess.run({!r}, shell=True, cwd={!r}, capture_output=True, text=True).stdout.strip())"
    assert inside.do(f"print(refused(os.stat, {str(files)!r}))") == "ENOENT"
    inside.asked(files / "plan")
    inside.answer("approve", files)
    assert inside.told() == CANARY
    assert {words: inside.do(look.format(words, str(files))) for words in LOOKS} == LOOKS
    assert inside.do(f"print(refused(os.rename, {str(files)!r}, {str(files)!r} + '2'))") == "EBUSY"
    own = files.parent / "own"
    own.mkdir()
    (own / "host").write_text(CANARY)
    os.chown(own, netsandbox.home().identity.uid, netsandbox.home().identity.gid)
    inside.do(f"os.mkdir({str(own)!r}); open({str(own / 'mine')!r}, 'w').write({PLAIN!r})")
    inside.asked(own / "host")
    inside.answer("approve", own)
    assert inside.told() == CANARY
    assert inside.do(f"print(os.listdir({str(own)!r}))") == "['mine']"
    inside.end()
    assert sorted(path.name for path in files.iterdir()) == ["deep", "other", "plan", "tool"]


@pytest.mark.ordinary_user
def test_a_folder_around_secrets_is_approved_but_not_shown(netsandbox: Any, inside: Inside, files: Path) -> None:
    home = netsandbox.home().path
    inside.asked(files / "plan")
    inside.answer("approve", home)
    assert inside.told() == CANARY
    assert inside.read(files / "other") == PLAIN
    assert inside.do(f"print(refused(os.stat, {str(home / '.aws')!r}))") == "ENOENT"
    inside.end()


@pytest.mark.ordinary_user
def test_writing_and_making_a_file_are_asked_about_apart_from_reading(inside: Inside, files: Path) -> None:
    path, new = files / "other", files / "new"
    inside.answer("approve", inside.asked(path))
    assert inside.told() == PLAIN
    line = f"print(text({str(path)!r}, os.O_WRONLY | os.O_APPEND, b'!'))"
    inside.answer("approve", inside.asked(path, line, operation="write"))
    assert inside.told() == "1"
    assert path.read_text() == f"{PLAIN}!"
    line = f"os.umask(0o27); print(text({str(new)!r}, os.O_WRONLY | os.O_CREAT | os.O_EXCL, b'made'))"
    inside.answer("approve", inside.asked(new, line, operation="write"))
    assert inside.told() == "4"
    assert (new.read_text(), new.stat().st_mode & 0o777) == ("made", 0o640)
    assert inside.do(f"print(text({str(new)!r}, os.O_WRONLY | os.O_TRUNC, b'x'))") == "1"  # approved for the session
    assert new.read_text() == "x"
    assert inside.read(new) == "x"
    inside.answer(
        "deny", inside.asked(files / "plan", f"print(text({str(files / 'plan')!r}, os.O_RDWR))", operation="write")
    )
    assert inside.told() == "EACCES"
    assert (files / "plan").read_text() == CANARY
    inside.end()


@pytest.mark.ordinary_user
def test_a_program_runs_after_a_yes(netsandbox: Any, inside: Inside, files: Path) -> None:
    tool = files / "tool"
    inside.answer("deny", inside.asked(tool, f"print(ran({str(tool)!r}))", operation="execute"))
    assert inside.told() == "EACCES"
    inside.end()
    again = Inside(netsandbox)
    again.answer("approve", again.asked(tool, f"print(ran({str(tool)!r}))", operation="execute"))
    assert again.told() == PLAIN
    assert again.do(f"print(ran({str(tool)!r}))") == PLAIN
    assert again.read(tool).startswith("#!/bin/sh")
    assert again.do(f"print(refused(os.truncate, {str(tool)!r}, 0))") == "EROFS"
    records = again.end()
    assert ("allow", "approved") in verdicts(records)
    later = netsandbox("run", "--", netsandbox.python, "-c", f"import os; print(os.path.exists({str(tool)!r}))")
    assert later.stdout == "False\n"  # no mount point stays in the private home


# Races (attacks 115, 116 and 149)


@pytest.mark.attack(115)
def test_a_path_that_changes_in_memory_opens_what_was_asked_about(inside: Inside, files: Path) -> None:
    asked, other = str(files / "plan"), str(files / "none")
    inside.tell(
        f"libc = ctypes.CDLL(None); name = ctypes.create_string_buffer({asked.encode()!r}, 200); found = [];"
        " thread = threading.Thread(target=lambda: found.append(libc.open(name, 0))); thread.start(); time.sleep(0.5);"
        f" name.value = {(asked[:-4] + 'deep').encode()!r}; thread.join(); print(os.read(found[0], 99).decode())"
    )
    (question,) = inside.pending()
    assert question["path"] == asked
    time.sleep(0.7)
    inside.answer("approve", str(question["id"]), "--for", "once")
    assert inside.told() == CANARY
    assert inside.read(Path(other)) == "ENOENT"
    inside.end()


@pytest.mark.attack(149)
def test_a_link_in_the_place_of_what_was_asked_about_opens_nothing(inside: Inside, files: Path) -> None:
    number = inside.asked(files / "other")
    (files / "other").unlink()
    (files / "other").symlink_to(files / "plan")
    inside.answer("approve", number)
    assert inside.told() == "EACCES"
    number = inside.asked(files / "deep" / "more")
    (files / "deep").rename(files / "moved")
    (files / "deep").symlink_to(files / "moved")
    inside.answer("approve", number)
    assert inside.told() == "EACCES"
    records = inside.end()
    assert [r["detail"] for r in records if "detail" in r] == [
        "approved, but not opened: the path leads elsewhere now, or is gone"
    ] * 2


def test_the_question_names_where_a_link_leads(netsandbox: Any, inside: Inside, files: Path) -> None:
    link = netsandbox.home().work / "link"
    link.symlink_to(files / "plan")
    inside.answer("approve", inside.asked(files / "plan", f"print(text({str(link)!r}))"))
    assert inside.told() == CANARY
    assert inside.do(f"print(text({str(link)!r}, os.O_RDONLY | os.O_NOFOLLOW))") == "ELOOP"
    inside.end()


def test_a_file_that_is_gone_is_told_to_the_user(inside: Inside, files: Path) -> None:
    number = inside.asked(files / "plan")
    (files / "plan").unlink()
    done = inside.netsandbox("approve", number)
    assert (done.returncode, done.stdout) == (1, "")
    assert "read ~/docs/plan of work: the file is gone; nothing was approved" in done.stderr
    assert inside.told() == "ENOENT"
    assert outcomes(inside.end()) == ["asked", "unanswered"]


def test_a_caller_that_dies_while_it_waits_leaves_a_question_without_effect(inside: Inside, files: Path) -> None:
    inside.tell(f"child = subprocess.Popen(['cat', {str(files / 'plan')!r}]); print(child.pid)")
    inside.told()
    (question,) = inside.pending()
    inside.do("child.kill(); child.wait()")
    done = inside.netsandbox("approve", str(question["id"]), "--for", "once")
    assert "nobody waits for read ~/docs/plan" in done.stderr
    inside.answer("deny", str(question["id"]))
    assert inside.read(files / "plan") == "EACCES"
    assert CANARY not in json.dumps(inside.end())


# Scopes


def test_once_session_and_ttl(inside: Inside, files: Path) -> None:
    for _ in range(2):
        inside.answer("approve", inside.asked(files / "plan"), "--for", "once")
        assert inside.told() == CANARY
    inside.answer("approve", inside.asked(files / "plan"), "--ttl", "1s")
    assert inside.told() == CANARY
    time.sleep(1.1)
    inside.answer("approve", inside.asked(files / "plan"))
    assert inside.told() == CANARY
    assert inside.read(files / "plan") == CANARY
    assert outcomes(inside.end()) == ["asked", "approved"] * 4


def test_project_and_user_count_in_later_sessions_until_they_end(netsandbox: Any, inside: Inside, files: Path) -> None:
    inside.asked(files / "plan")
    inside.answer("approve", files, "--for", "project")
    assert inside.told() == CANARY
    line = f"print(text({str(files / 'other')!r}, os.O_WRONLY | os.O_TRUNC, b'x'))"
    inside.answer("approve", inside.asked(files / "other", line, operation="write"), "--for", "user", "--ttl", "3s")
    assert inside.told() == "1"
    inside.end()
    config = netsandbox.home().path / "config" / "netsandbox"
    (project,) = (config / "projects").glob("*.toml")
    assert tomllib.loads(project.read_text()) == {"filesystem": {"allow_read": [str(files)]}}
    user = tomllib.loads((config / "config.toml").read_text())
    assert user["filesystem"] == {"allow_write": [str(files / "other")]}
    (until,) = user["approvals"]["until"]
    assert until.endswith(f"Z {files / 'other'}")
    time.sleep(3)
    script = f"print(open({str(files / 'plan')!r}).read()); open({str(files / 'other')!r}, 'w')"
    later = netsandbox("run", "--", netsandbox.python, "-c", script)
    assert (later.stdout, later.returncode) == (f"{CANARY}\n", 1)
    assert "Read-only file system" in later.stderr


# What is not asked about


def test_what_no_yes_may_open_is_not_asked_about(netsandbox: Any, files: Path) -> None:
    home = netsandbox.home()
    (home.work / "environ").symlink_to(f"/proc/{os.getpid()}/environ")
    os.mkfifo(files / "pipe")
    own = [home.path / name / "netsandbox" / "x" for name in ("config", "state", ".config", ".local/state")]
    for path in (*own, home.path / ".bash_history"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CANARY)
    (files / "repo" / ".git").mkdir(parents=True)
    (files / "repo" / ".git" / "config").write_text(PLAIN)
    (files / ("n" * 200) / ("n" * 200)).mkdir(parents=True)
    (files / ("n" * 200) / ("n" * 200) / ("n" * 200)).write_text(CANARY)
    (files / "odd\nname").write_text(CANARY)
    inside = Inside(netsandbox, "--deny-read", str(files / "deep"))
    refused = [
        *(
            files / name
            for name in ("missing", "pipe", "deep/more", "odd\nname", f"{'n' * 200}/{'n' * 200}/{'n' * 200}")
        ),
        *(*own, home.path / ".config", home.path / "config", home.path / ".bash_history", home.work / "environ"),
    ]
    for path in refused:
        assert inside.read(path) in ("ENOENT", "EISDIR"), path
    hook = files / "repo" / ".git" / "config"
    assert inside.do(f"print(text({str(hook)!r}, os.O_WRONLY, b'x'))") == "ENOENT"
    assert outcomes(inside.end()) == []
    assert hook.read_text() == PLAIN


def test_questions_are_bounded(netsandbox: Any, files: Path) -> None:
    for number in range(80):
        (files / f"f{number}").write_text(CANARY)
    inside = Inside(netsandbox)
    inside.tell(
        f"found = []; names = [{str(files)!r} + f'/f{{n}}' for n in range(80)];"
        " threads = [threading.Thread(target=lambda name=name: found.append(text(name))) for name in names];"
        " [each.start() for each in threads]; [each.join() for each in threads]; print(sorted(set(found)))"
    )
    inside.pending(64)
    inside.answer("deny", files)  # one answer for all of them
    assert inside.told() == "['EACCES', 'ENOENT']"
    assert inside.do(f"print(text({str(files / 'f79')!r}))") == "EACCES"
    records = inside.end()
    assert outcomes(records) == ["asked"] * 64 + ["denied"]
    assert sum(r["count"] for r in records if r.get("reason") == "limit") == 16


# How it is switched on


def test_it_is_switched_on_by_mode_and_file_and_off_by_static(netsandbox: Any, files: Path) -> None:
    read = ("--", "cat", str(files / "plan"))
    config = netsandbox.home().path / "config" / "netsandbox" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    plain = netsandbox("run", *read)
    assert (plain.events("approval"), plain.stdout) == ([], "")
    config.write_text("[approvals]\nfiles = true\nwait = 1\n")
    assert len(netsandbox("run", *read).events("approval", outcome="unanswered")) == 1
    assert netsandbox("run", "--mode", "static", *read).events("approval") == []
    config.write_text("[approvals]\nwait = 1\n")
    assert len(netsandbox("run", "--mode", "dynamic", *read).events("approval", outcome="unanswered")) == 1
    assert len(netsandbox("run", "--online", "--ask", *read).events("approval", outcome="unanswered")) == 1
    wide = netsandbox("run", "--ask", "--files", "readable", *read)
    assert (wide.events("approval"), wide.stdout) == ([], CANARY)


def test_a_session_that_is_killed_while_a_call_waits_ends(inside: Inside, files: Path) -> None:
    inside.asked(files / "plan")
    inside.running.signal(signal.SIGTERM)
    assert inside.running.wait() != 0
    assert outcomes(list(inside.running.audit)) == ["asked", "unanswered"]
