"""The default mode of files: the project, the system and toolchains are there; the rest is not (INV-12).

Each file that must not be read holds SECRET, and the test looks for that text in everything the session printed. Each
file that must not be written is read afterwards on the host.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.ordinary_user,
]
SECRET = "canary-7f1e"
WRITES = 'echo planted >> "$1" && echo wrote || echo refused'


def own(path: Path, home: Any) -> Path:
    os.chown(path, home.identity.uid, home.identity.gid)
    return path


def put(home: Any, name: str, text: str = SECRET) -> Path:
    """A file in the home on the host, owned by the account."""
    path = home.path / name
    for folder in reversed(path.relative_to(home.path).parents):
        whole = home.path / folder
        if not whole.exists():
            whole.mkdir()
            own(whole, home)
    path.write_text(text)
    return own(path, home)


def git_init(home: Any, folder: Path) -> None:
    done = home.plainly(["git", "init", "-q", str(folder)])
    assert done.returncode == 0, done.stderr


def test_the_rest_of_the_home_is_not_there(netsandbox: Any) -> None:
    home = netsandbox.home()
    for name in ("Documents/plan.md", "other/.env", ".ssh/id_rsa", ".bash_history", ".claude/.credentials.json"):
        put(home, name)
    put(home, "work/mine.txt", "mine-is-shown")
    run = netsandbox("run", "--", "sh", "-c", f"cat mine.txt; grep -rs . {home.path}; ls -aR {home.path}; true")
    assert "mine-is-shown" in run.stdout
    assert SECRET not in run.stdout
    assert "Documents" not in run.stdout


def test_writes_to_the_home_stay_inside_and_are_kept_for_the_project(netsandbox: Any) -> None:
    home = netsandbox.home()
    rc = put(home, ".toolrc", "true\n")
    first = netsandbox("run", "--", "sh", "-c", WRITES, "sh", str(rc))
    assert first.stdout == "wrote\n"
    assert rc.read_text() == "true\n"
    again = netsandbox("run", "--", "cat", str(rc))
    assert again.stdout == "planted\n"
    other = put(home, "elsewhere/file").parent
    elsewhere = netsandbox("run", "--", "sh", "-c", f"cat {rc} || echo nothing", cwd=other)
    assert elsewhere.stdout == "nothing\n"


@pytest.mark.parametrize("name", [".bashrc", ".zshrc", ".profile"])
def test_start_up_files_of_shells_are_empty_and_read_only(netsandbox: Any, name: str) -> None:
    home = netsandbox.home()
    rc = put(home, name)
    run = netsandbox("run", "--", "sh", "-c", f"{WRITES}; rm -f $1; mv $1 $1.old; cat $1", "sh", str(rc))
    assert run.stdout == "refused\n"
    assert rc.read_text() == SECRET
    named = netsandbox("run", "--allow-read", str(rc), "--", "cat", str(rc))
    assert named.stdout == SECRET


def test_the_working_folder_is_written_on_the_host(netsandbox: Any) -> None:
    run = netsandbox("run", "--", "sh", "-c", "echo made > file; mkdir folder; echo deep > folder/file")
    assert run.returncode == 0, run.stderr
    assert (netsandbox.home().work / "file").read_text() == "made\n"
    assert (netsandbox.home().work / "folder/file").read_text() == "deep\n"


def test_the_project_is_the_enclosing_repository(netsandbox: Any) -> None:
    home = netsandbox.home()
    git_init(home, home.work)
    put(home, "work/root.txt", "of-the-root")
    deep = put(home, "work/src/deep/file", "x").parent
    run = netsandbox("run", "--", "sh", "-c", "cat ../../root.txt; echo new > ../../new.txt", cwd=deep)
    assert run.stdout == "of-the-root"
    assert (home.work / "new.txt").read_text() == "new\n"


def test_a_repository_in_the_home_itself_is_no_project(netsandbox: Any) -> None:
    """Dotfiles are often kept so; the search for a repository never reaches the home."""
    home = netsandbox.home()
    git_init(home, home.path)
    put(home, "work/mine.txt", "mine")
    plan = put(home, "Documents/plan.md")
    run = netsandbox("run", "--", "sh", "-c", f"cat mine.txt {plan}; true")
    assert run.stdout == "mine"


@pytest.mark.parametrize("where", ["home", "root"])
def test_the_home_and_the_root_are_no_projects(netsandbox: Any, where: str) -> None:
    home = netsandbox.home()
    plan = put(home, "plan.md")
    folder = home.path if where == "home" else Path("/")
    run = netsandbox("run", "--", "sh", "-c", f"cat {plan}; echo x > {home.path}/made; pwd", cwd=folder)
    assert SECRET not in run.stdout
    assert run.stdout.endswith(f"{folder}\n")
    assert not (home.path / "made").exists()
    assert "not a project" in run.stderr
    named = netsandbox("run", "--allow-read", plan, "--", "cat", plan, cwd=folder)
    assert named.stdout == SECRET
    assert "none of your files" not in named.stderr


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp", "/dev/shm"])
def test_temporary_folders_are_the_sessions_own(netsandbox: Any, place: str) -> None:
    canary = Path(place, f"nsb-canary-{os.getpid()}")
    canary.write_text(SECRET)
    canary.chmod(0o666)
    try:
        run = netsandbox(
            "run", "--", "sh", "-c", f"cat {canary}; echo own > {canary} && cat {canary}; stat -c %a {place}"
        )
        assert run.stdout == "own\n1777\n"
        assert canary.read_text() == SECRET
    finally:
        canary.unlink()


def test_share_tmp_shows_the_hosts(netsandbox: Any) -> None:
    canary = Path("/tmp", f"nsb-canary-{os.getpid()}")
    canary.write_text("shared")
    canary.chmod(0o644)
    try:
        assert netsandbox("run", "--share-tmp", "--", "cat", str(canary)).stdout == "shared"
    finally:
        canary.unlink()


@pytest.mark.attack(214)
@pytest.mark.attack(216)
def test_a_secret_that_the_host_makes_or_replaces_during_the_session_does_not_appear(netsandbox: Any) -> None:
    """H2 and H4: covers came off when the host replaced the covered file."""
    home = netsandbox.home()
    old = put(home, ".npmrc")
    script = f"echo ready; read line; cat {old} {home.path}/.netrc 2>/dev/null; echo end"
    session = netsandbox.spawn("run", "--", "sh", "-c", script, stdin=subprocess.PIPE)
    session.read_until(b"ready\n")
    put(home, ".npmrc.new", SECRET)
    os.replace(home.path / ".npmrc.new", old)
    put(home, ".netrc")
    session.process.stdin.write(b"\n")
    session.process.stdin.flush()
    assert session.read_until(b"end\n") == b"end\n"


def test_rules_show_and_open(netsandbox: Any) -> None:
    home = netsandbox.home()
    read = put(home, "Documents/plan.md", "plan")
    write = put(home, "data/notes.txt", "notes")
    script = f"cat {read} {write}; {WRITES}; set -- {read}; {WRITES}"
    options = ("--allow-read", str(read.parent), "--rw", str(write.parent))
    run = netsandbox("run", *options, "--", "sh", "-c", script, "sh", str(write))
    assert run.stdout == "plannoteswrote\nrefused\n"
    assert write.read_text() == "notesplanted\n"
    assert read.read_text() == "plan"


def test_denied_paths_inside_the_project(netsandbox: Any) -> None:
    home = netsandbox.home()
    env = put(home, "work/.env")
    kept = put(home, "work/kept/file", "kept")
    options = ("--blacklist", str(env), "--deny-write", str(kept.parent))
    script = f"cat .env; {WRITES}; mv kept moved; rm -r kept; cat kept/file; echo x > free; cat free"
    run = netsandbox("run", *options, "--", "sh", "-c", script, "sh", str(kept))
    assert SECRET not in run.stdout
    assert run.stdout == "refused\nkeptx\n"
    assert kept.read_text() == "kept"


@pytest.mark.parametrize(
    "name",
    [
        *(".vscode/tasks.json", ".idea/x.xml", ".envrc", ".husky/pre-commit", ".git/hooks/x"),
        *(".mcp.json", ".cursor/mcp.json", ".codex/config.toml", ".zed/tasks.json", ".devcontainer/x.json"),
    ],
)
def test_files_that_the_hosts_programs_obey_stay_read_only(netsandbox: Any, name: str) -> None:
    home = netsandbox.home()
    git_init(home, home.work)
    path = put(home, f"work/{name}", "kept")
    top = name.split("/", maxsplit=1)[0] if not name.startswith(".git/") else ".git/hooks"
    script = f"{WRITES}; mv {top} x; rm -rf {top}; cat {name}"
    run = netsandbox("run", "--", "sh", "-c", script, "sh", name)
    assert run.stdout == "refused\nkept"
    assert path.read_text() == "kept"
    opened = netsandbox("run", "--allow-write", str(home.work / top), "--", "sh", "-c", WRITES, "sh", name)
    assert opened.stdout == "wrote\n"


def test_a_worktree_reaches_its_repository(netsandbox: Any) -> None:
    home = netsandbox.home()
    main = home.path / "main"
    main.mkdir()
    own(main, home)
    who = ("-c", "user.name=n", "-c", "user.email=e@example.invalid")
    for command in (
        ["git", "init", "-q", str(main)],
        ["git", "-C", str(main), *who, "commit", "-q", "--allow-empty", "-m", "first"],
        ["git", "-C", str(main), "worktree", "add", "-q", str(home.path / "tree")],
    ):
        done = home.plainly(command)
        assert done.returncode == 0, done.stderr
    put(home, "main/unrelated.txt")
    script = f"git {' '.join(who)} commit -q --allow-empty -m second && git log --format=%s; cat ../main/unrelated.txt"
    run = netsandbox("run", "--", "sh", "-c", script, cwd=home.path / "tree")
    assert run.stdout == "second\nfirst\n", run.stderr
    assert home.plainly(["git", "-C", str(home.path / "tree"), "log", "-1", "--format=%s"]).stdout == "second\n"


def test_programs_of_the_home_run(netsandbox: Any) -> None:
    """A toolchain on PATH, and one that a link on PATH leads to."""
    home = netsandbox.home()
    for name, text in (
        ("tools/v1/bin/tool", "#!/bin/sh\ncat ${0%/bin/tool}/lib/data\n"),
        ("tools/v1/lib/data", "data\n"),
    ):
        put(home, name, text).chmod(0o755)
    (home.path / ".local/bin").mkdir(parents=True)
    (home.path / ".local/bin/linked").symlink_to(home.path / "tools/v1/bin/tool")
    path = f"{home.path}/.local/bin:{netsandbox.identity.path}"
    run = netsandbox("run", "--", "sh", "-c", f"{home.path}/tools/v1/bin/tool", env={"PATH": path})
    assert run.stdout == "data\n", run.stderr
    put(home, "tools/v1/lib/data", "data\n")
    written = netsandbox("run", "--", "sh", "-c", WRITES, "sh", f"{home.path}/tools/v1/lib/data", env={"PATH": path})
    assert written.stdout == "refused\n"


def test_a_cache_is_shown_and_its_changes_stay_with_us(netsandbox: Any) -> None:
    home = netsandbox.home()
    put(home, "work/requirements.txt", "")
    kept = put(home, ".cache/pip/http/entry", "from-the-host")
    (home.path / ".cache").chmod(0o755)
    script = f"cat {kept}; echo poison > {kept}; echo new > {kept.parent}/new; cat {kept.parent}/new"
    run = netsandbox("run", "--", "sh", "-c", script)
    assert run.stdout == "from-the-hostnew\n", run.stderr
    assert kept.read_text() == "from-the-host"
    assert not (kept.parent / "new").exists()
    again = netsandbox("run", "--", "sh", "-c", f"cat {kept.parent}/new")
    assert again.stdout == "new\n"


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.broker_as_root
@pytest.mark.parametrize("mode", ["project", "readable", "open"])
def test_a_secret_of_the_system_cannot_be_opened(netsandbox: Any, mode: str) -> None:
    """E22: it looked like an empty file, and a reader did not notice."""
    run = netsandbox("run", "--files", mode, "--", "sh", "-c", "head -c 1 /etc/shadow && head -c 1 /etc/gshadow")
    assert (run.returncode, run.stdout) == (1, ""), run.stderr
    assert "/etc/shadow' for reading: Permission denied" in run.stderr
    allowed = netsandbox("run", "--files", mode, "--", "head", "-c", "8", "/etc/passwd")
    assert (allowed.returncode, allowed.stdout) == (0, "root:x:0")


def test_an_attempt_on_a_secret_of_the_system_is_a_refusal_like_others(netsandbox: Any) -> None:
    run = netsandbox("run", "--", "head", "-c", "1", "/etc/shadow")
    assert run.returncode == 1
    line = "keys and passwords of this machine stay closed; run what needs them outside"
    told = [(each["path"], each["reason"], "hint" in each) for each in run.audit if each["event"] == "file"]
    if netsandbox.identity.uid:  # the kernel refuses it, as on the host
        assert told == []
        return
    assert told == [("/etc/shadow", "not-shown", False)]
    assert f"denied reading /etc/shadow; {line}" in run.stderr
    assert line in netsandbox("explain", "--last").stdout
    assert netsandbox("audit", "summary", "--fail-on-denied").returncode == 1
    assert "allow-read" not in netsandbox("explain", "--last").stdout
    assert "denied" not in netsandbox("run", "--", "head", "-c", "1", "/etc/passwd").stderr


@pytest.mark.attack(222)
def test_devices_of_the_host_are_not_there(netsandbox: Any) -> None:
    run = netsandbox("run", "--", "sh", "-c", "ls /dev; echo x > /dev/kmsg; head -c 3 /dev/zero | od -An -tx1")
    names = set(run.stdout.split()[:-3])
    assert not names & {"kvm", "kmsg", "mem", "vda", "sda", "fuse", "net", "dri", "loop0"}
    assert {"null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm", "fd"} <= names
    assert run.stdout.endswith("00 00 00\n")


def test_a_session_makes_terminals(netsandbox: Any) -> None:
    run = netsandbox("run", "--", "script", "-qc", "tty", "/dev/null")
    assert run.stdout.strip() == "/dev/pts/0", run.stderr


@pytest.mark.parametrize("mode", ["project", "readable", "open"])
def test_our_own_code_is_read_only_in_every_mode(netsandbox: Any, mode: str) -> None:
    """H1: a command that overwrites what the supervisor has mapped runs outside of the sandbox."""
    places = [Path(netsandbox.identity.pythonpath.split(":")[0], "netsandbox", "__init__.py")]
    script = f"for path; do {WRITES.replace('$1', '$path')}; done"
    options = ("--files", mode, "--allow-write", str(places[0].parents[1]))
    run = netsandbox("run", *options, "--", "sh", "-c", script, "sh", *map(str, places))
    assert run.stdout == "refused\n" * len(places), run.stderr


def test_sessions_with_open_files_write_as_before(netsandbox: Any) -> None:
    home = netsandbox.home()
    rc = put(home, ".bashrc", "true\n")
    run = netsandbox("run", "--files", "open", "--", "sh", "-c", WRITES, "sh", str(rc))
    assert run.stdout == "wrote\n"
    assert rc.read_text() == "true\nplanted\n"


@pytest.mark.parametrize("value", ["closed", "", "Project"])
def test_an_unknown_mode_is_an_error(netsandbox: Any, value: str) -> None:
    run = netsandbox("run", f"--files={value}", "--", "true")
    assert run.returncode == 2
    assert "project, readable, open" in run.stderr


def test_a_program_in_an_environment_of_another_folder_runs_by_its_path(netsandbox: Any) -> None:
    """It is a link to an interpreter of the system, which is shown, and the environment around it is not."""
    environment = netsandbox.home().path / "other/.venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin/python").symlink_to("/usr/bin/python3")
    put(netsandbox.home(), "other/.venv/pyvenv.cfg", "home = /usr/bin\n")
    plan = put(netsandbox.home(), "other/plan.md")
    script = f"import sys; print(sys.prefix); print(open({str(plan)!r}).read())"
    run = netsandbox("run", "--", str(environment / "bin/python"), "-c", script)
    assert run.stdout == f"{environment}\n"
    assert "FileNotFoundError" in run.stderr


@pytest.mark.parametrize("rule", ["/etc/shadow", "/etc"])
def test_a_secret_of_the_system_is_shown_if_a_rule_names_it(netsandbox: Any, rule: str) -> None:
    """Only its size is looked at."""
    secret = "/etc/shadow"
    size = ("--", "sh", "-c", f"wc -c < {secret}")
    if netsandbox.identity.uid:  # a rule gives no rights that the user does not have
        assert netsandbox("run", "--allow-read", rule, *size).stdout == ""
        return
    assert netsandbox("run", *size).stdout == ""
    run = netsandbox("run", "--allow-read", rule, *size)
    assert run.stdout == f"{os.path.getsize(secret)}\n"
    assert "the command can read /etc/" in run.stderr
    assert netsandbox("run", "--allow-read", rule, "--deny-read", secret, *size).stdout == ""


def test_links_of_the_user_are_followed(netsandbox: Any) -> None:
    """The twin of the one above: no session has written there."""
    home = netsandbox.home()
    put(home, "mine/run.sh", "#!/bin/sh\n").chmod(0o755)
    plan = put(home, "mine/plan.md")
    tools = put(home, "tools/bin/x", "").parent
    (tools / "run").symlink_to(plan.parent / "run.sh")
    (tools / "docs").symlink_to(plan.parent)
    by_program = netsandbox("run", "--", "run", env={"PATH": f"{tools}:{netsandbox.identity.path}"})
    assert by_program.returncode == 0, by_program.stderr
    assert netsandbox("run", "--allow-read", f"{tools}/docs", "--", "cat", str(plan)).stdout == SECRET


def test_folders_above_what_is_denied_cannot_be_moved(netsandbox: Any) -> None:
    """Otherwise the next session would not find the path that it must hide."""
    home = netsandbox.home()
    put(home, "work/a/b/.env")
    rule = ("--deny-read", str(home.work / "a/b/.env"))
    first = netsandbox("run", *rule, "--", "sh", "-c", "mv a/b a/c || mv a d || echo held; cat a/b/.env")
    assert first.stdout == "held\n"
    assert SECRET not in netsandbox("run", *rule, "--", "sh", "-c", "grep -rs . .; true").stdout


REPLACED = {
    "protected": ("work/.envrc", ()),
    "denied": ("work/denied", ("--deny-read", "denied")),
    "readable": (".netrc", ("--files", "readable")),
    "open": (".netrc", ("--files", "open")),
}


@pytest.mark.parametrize("case", REPLACED)
def test_a_cover_that_the_host_took_away_is_told(netsandbox: Any, case: str) -> None:
    name, options = REPLACED[case]
    home = netsandbox.home()
    path = put(home, name, "old")
    session = netsandbox.spawn("run", *options, "--", "sh", "-c", "echo made; read -r end", stdin=subprocess.PIPE)
    session.read_until(b"made")
    put(home, "new", "new").rename(path)
    _, told = session.process.communicate(b"\n", 60)
    assert f"replaced or removed {path}".encode().replace(str(home.path).encode(), b"~") in told
    assert b"replaced or removed" not in netsandbox("run", *options, "--", "true").stderr.encode()
