"""The log is out of the workload's reach wherever it lies (INV-8)."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest

from tests.rig.command import read_log
from tests.rig.inside import attack

pytestmark = pytest.mark.usefixtures("user_namespaces")

TAMPER = """
def write(path, flags):
    os.close(os.open(path, flags))

tries = {
    "append": lambda: write(log, os.O_WRONLY | os.O_APPEND),
    "truncate": lambda: os.truncate(log, 0),
    "open": lambda: write(log, os.O_RDWR | os.O_TRUNC),
    "unlink": lambda: os.unlink(log),
    "rename": lambda: os.rename(log, log + ".old"),
    "replace": lambda: (write(log + ".new", os.O_CREAT | os.O_WRONLY), os.rename(log + ".new", log)),
    "chmod": lambda: os.chmod(log, 0o666),
    "chown": lambda: os.chown(log, os.getuid(), os.getgid()),
    "touch": lambda: os.utime(log, (0, 0)),
    "link": lambda: os.link(log, log + ".link"),
    "symlink": lambda: os.symlink("/dev/null", log),
    "rename exchange": lambda: os.rename(log + ".new", log),
}
out["tries"] = {name: refused(call) for name, call in tries.items()}
out["page"] = status(get(b"allowed.test", good))
"""


@pytest.mark.attack(176)
@pytest.mark.ordinary_user
@pytest.mark.parametrize("named_by", ["the option", "the variable", "the configuration"])
def test_176_a_log_in_the_project_folder_is_out_of_the_workloads_reach(
    netsandbox: Any, origin: Any, named_by: str
) -> None:
    """INV-8: the workload owns the folder, and still neither changes, moves nor removes the log."""
    good, options = origin
    log, config = netsandbox.home().work / "audit.jsonl", netsandbox.home().path / "rules.toml"
    config.write_text(f'[audit]\nlog = "{log}"\n')
    chosen = {"the option": ["--audit-log", str(log)], "the configuration": ["--config", str(config)]}
    env = {"SANDBOX_AUDIT_LOG": str(log)} if named_by == "the variable" else None
    ports = {"good": good.port, "log": str(log)}
    tried = attack(netsandbox, [*options, *chosen.get(named_by, [])], TAMPER, arguments=ports, env=env)
    worked = {name for name, error in tried.out["tries"].items() if error is None}
    assert worked == set()
    assert tried.out["page"] == 200
    records = read_log(log)
    assert records[0]["event"] == "session.start"
    assert [record["status"] for record in records if record["event"] == "session.end"] == [0]
    assert netsandbox("audit", "verify", log).returncode == 0


@pytest.mark.attack(149)
@pytest.mark.attack(176)
@pytest.mark.ordinary_user
@pytest.mark.parametrize("place", ["the default one", "a folder of the project"])
def test_149_176_the_folders_over_a_log_cannot_be_moved_to_put_a_forged_one_there(
    netsandbox: Any, origin: Any, place: str
) -> None:
    good, options = origin
    home = netsandbox.home()
    deep = home.work / "logs" / "deep"
    deep.mkdir(parents=True)
    for folder in (deep, deep.parent):
        os.chown(folder, netsandbox.identity.uid, netsandbox.identity.gid)
    chosen = [] if place == "the default one" else ["--audit-log", str(deep / "audit.jsonl")]
    folders = [home.state] if place == "the default one" else [deep, deep.parent]
    script = """
out["moved"] = [refused(os.rename, folder, folder + ".old") for folder in folders]
out["relative"] = [refused(os.rename, os.path.relpath(folder), os.path.relpath(folder) + ".old") for folder in folders]
open("file", "w").close()
os.rename("file", os.getcwd() + "/renamed")
out["page"] = status(get(b"allowed.test", good))
"""
    arguments = {"good": good.port, "folders": [str(folder) for folder in folders]}
    tried = attack(netsandbox, [*options, *chosen], script, arguments=arguments)
    assert None not in tried.out["moved"]
    assert None not in tried.out["relative"]
    assert tried.out["page"] == 200
    assert netsandbox("audit", "verify", tried.run.log_path).returncode == 0


@pytest.mark.open_files
@pytest.mark.attack(176)
@pytest.mark.ordinary_user
def test_176_the_state_folder_of_all_sessions_is_empty_and_read_only_inside(netsandbox: Any) -> None:
    netsandbox("run", "--", "true")
    state = netsandbox.home().state / "netsandbox"
    script = """
out["seen"] = os.listdir(state)
out["write"] = [refused(os.mkdir, state + "/sessions"), refused(os.rename, state, state + ".old")]
out["write"].append(refused(os.rmdir, state))
out["found"] = [os.path.join(top, name) for top, _, names in os.walk(os.path.dirname(state)) for name in names]
"""
    tried = attack(netsandbox, [], script, arguments={"state": str(state)})
    assert (tried.out["seen"], tried.out["found"]) == ([], [])
    assert None not in tried.out["write"]
    assert len(netsandbox.home().logs()) == 2


@pytest.mark.attack(176)
def test_a_folder_of_logs_is_out_of_reach_for_every_session(netsandbox: Any) -> None:
    """INV-8: with --audit-log DIR/ the logs of other sessions are no more the command's than its own."""
    folder = netsandbox.home().work / "logs"
    assert netsandbox("run", "--audit-log", f"{folder}/", "--", "true").returncode == 0
    (first,) = folder.iterdir()
    before = first.read_bytes()
    script = f'ls "{folder}"; true > "{first}"; rm "{first}"; mv "{folder}" "{folder}2"; echo done'
    run = netsandbox("run", "--audit-log", f"{folder}/", "--", "sh", "-c", script)
    assert run.stdout == "done\n"
    assert first.read_bytes() == before
    assert len(list(folder.iterdir())) == 2  # the twin: the second session's own log was written


def test_a_folder_of_logs_that_is_the_working_directory_is_refused(netsandbox: Any) -> None:
    work = netsandbox.home().work
    run = netsandbox("run", "--audit-log", "./", "--", "touch", "started", cwd=work)
    assert (run.returncode, len(run.stderr.splitlines())) == (2, 1)
    assert not (work / "started").exists()


@pytest.mark.backend("namespaces", "broker")
def test_audit_says_that_a_newer_session_placed_its_log(netsandbox: Any) -> None:
    log = netsandbox.home().path / "logs" / "audit.jsonl"
    netsandbox("run", "--audit-log", log, "--", "true")
    nothing = netsandbox("audit", "summary")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert f"`netsandbox audit summary {log}` reads it" in nothing.stderr
    assert netsandbox("audit", "summary", log).returncode == 0
    netsandbox("run", "--", "true")
    usual = netsandbox("audit", "summary")
    assert (usual.returncode, usual.stderr) == (0, "")


@pytest.mark.attack(217)
@pytest.mark.parametrize("mode", ["project", "readable", "open"])
def test_a_placed_log_of_a_running_session_is_closed_to_other_sessions(netsandbox: Any, mode: str) -> None:
    """The log lies in the folder that both sessions work in."""
    home = netsandbox.home()
    log = home.work / "audit.jsonl"
    first = netsandbox.spawn(
        "run", "--audit-log", str(log), "--", "sh", "-c", "echo ready; read line; echo end", stdin=subprocess.PIPE
    )
    first.read_until(b"ready\n")
    script = (
        f"echo forged >> {log}; echo forged > x; mv -f x {log}; mv {log} away; rm -f {log}; echo twin >twin; echo e"
    )
    other = netsandbox("run", "--files", mode, "--", "sh", "-c", script)
    assert other.stdout == "e\n", other.stderr
    assert (home.work / "twin").read_text() == "twin\n"
    assert not (home.work / "away").exists()
    assert "forged" not in log.read_text()
    first.process.stdin.write(b"\n")
    first.process.stdin.flush()
    first.read_until(b"end\n")
    first.process.wait(20)
    assert netsandbox("audit", "verify", str(log)).returncode == 0


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
def test_a_log_that_a_file_names_does_not_keep_a_second_session_from_starting(netsandbox: Any) -> None:
    """D15: the second one writes beside it. An option names one log, so there a second session is an error."""
    home = netsandbox.home()
    log, config = home.path / "logs" / "violations.log", home.path / "rules.toml"
    config.write_text(f'[sandbox]\nlog_file = "{log}"\n')
    first = netsandbox.spawn("run", "--config", config, "--", "sh", "-c", "echo ready; cat", stdin=subprocess.PIPE)
    first.read_until(b"ready")
    script = f"for log in {log.parent}/violations*; do echo x >> $log; rm -f $log; mv $log x; done; echo end"
    second = netsandbox("run", "--config", config, "--", "sh", "-c", script)
    assert (second.returncode, second.stdout) == (0, "end\n")
    refused = netsandbox("run", "--audit-log", log, "--", "echo", "ran")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "is in use by another session; give each session its own log" in refused.stderr
    first.process.stdin.close()
    assert first.wait() == 0
    (beside,) = log.parent.glob("violations-*.log")
    for path in (log, beside):
        records = read_log(path)
        assert [record["event"] for record in records if record["event"].startswith("session.")] == [
            *("session.start", "session.end"),
        ]
        assert netsandbox("audit", "verify", path).returncode == 0
    third = netsandbox("run", "--config", config, "--", "true")
    assert third.returncode == 0
    assert len(list(log.parent.glob("*.log"))) == 2


@pytest.mark.ordinary_user
@pytest.mark.backend("namespaces", "broker")
def test_the_sessions_of_one_project_are_read_together(netsandbox: Any) -> None:
    home = netsandbox.home()
    for name in ("shop", "shop/src", "shop-2"):
        home.plainly(["mkdir", str(home.work / name)])
        netsandbox("run", "-q", "--", "curl", "-s", f"http://{name.replace('/', '.')}.test/", cwd=home.work / name)
    of_one = netsandbox("audit", "summary", "--folder", "shop", "--since", "7d")
    assert of_one.stdout.startswith("2 sessions from ")
    assert [name in of_one.stdout for name in ("shop.test", "shop.src.test", "shop-2.test")] == [True, True, False]
    shown = netsandbox("audit", "show", "--folder", ".", "--denied", "--json", cwd=home.work / "shop-2").stdout
    assert ("shop-2.test" in shown, "shop.test" in shown) == (True, False)
    nothing = netsandbox("audit", "summary", "--folder", "/srv")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "netsandbox audit summary --all" in nothing.stderr
