"""The rules of the mode `project` are applied by the kernel, and each denied attempt has its allowed twin.

A file that must not be read holds SECRET; one that must not be written is read afterwards on the host.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rig.landlocked import DONE, REFUSED, SECRET, Try, home, put

__all__ = ["home"]
pytestmark = pytest.mark.ordinary_user


# The mode project


def test_the_project_is_written_and_the_rest_of_the_home_is_closed(home: Any, landlocked: Try) -> None:
    mine, plan, key = put(home, "work/mine", "mine"), put(home, "Documents/plan"), put(home, ".ssh/id_rsa")
    new = home.path / "new"
    found = landlocked(
        [
            ("read", mine),
            ("write", mine),
            ("make", f"{home.work}/new"),
            ("remove", f"{home.work}/new"),
            *(("read", path) for path in (plan, key)),
            *(("write", path) for path in (plan, key)),
            ("truncate", plan),
            ("make", new),
            ("remove", plan),
            ("list", home.path),
            ("rename", f"{mine} {home.path}/Documents/moved"),
        ]
    )
    assert found.results[:4] == ["mine", DONE, DONE, DONE]
    assert found.results[4:12] == [REFUSED] * 8
    assert found.results[12:] in ([REFUSED], ["EXDEV"])
    assert (mine.read_text(), plan.read_text(), key.read_text()) == ("planted", SECRET, SECRET)
    assert not new.exists()


def test_a_session_runs_programs_and_reads_the_system(home: Any, landlocked: Try) -> None:
    script = "set -e; ls /usr/bin >/dev/null; cat /etc/passwd >/dev/null; head -c1 /dev/urandom >/dev/null;"
    found = landlocked(
        [
            ("sh", script + " cat /proc/self/status >/dev/null; ls /sys >/dev/null; echo here; echo err >/dev/stderr"),
            ("write", "/proc/self/comm"),
            ("append", "/etc/passwd"),
            ("append", "/usr/bin/env"),
        ]
    )
    assert found.results[0] == [0, "here\n", "err\n"]
    assert all(result in ("EACCES", "EPERM") for result in found.results[1:])


def test_the_home_is_private_and_settings_are_linked_in_it(home: Any, landlocked: Try) -> None:
    put(home, ".gitconfig", "[user]\n\tname = me\n")
    put(home, ".nvm/nvm.sh", "nvm")
    put(home, ".cargo/bin/tool", "tool")
    put(home, ".cargo/credentials", SECRET)
    found = landlocked(
        [
            ("read", "$HOME/.gitconfig"),
            ("read", "$HOME/.nvm/nvm.sh"),
            ("read", "$HOME/.cargo/bin/tool"),
            ("read", f"{home.path}/.nvm/nvm.sh"),
            ("make", "$HOME/.toolrc"),
            ("write", "$HOME/.toolrc"),
            ("make", "$HOME/.cargo/registry"),
            ("write", "$HOME/.gitconfig"),
            ("read", "$HOME/.cargo/credentials"),
            ("read", f"{home.path}/.cargo/credentials"),
        ]
    )
    assert found.results[:4] == ["[user]\n\tname = me\n", "nvm", "tool", "nvm"]
    assert found.results[4:7] == [DONE] * 3
    assert found.results[7:] == [REFUSED, "ENOENT", REFUSED]
    assert found.kept == [f"{home.path}/.toolrc"]
    assert found.environment["HOME"].startswith(f"{home.path}/state/")
    again = landlocked([("read", "$HOME/.toolrc"), ("read", "$HOME/.gitconfig")])
    assert again.results == ["planted", "[user]\n\tname = me\n"]
    private = Path(found.environment["HOME"])
    assert not (private / ".gitconfig").is_symlink()  # removed with the last session


def test_a_start_file_of_an_earlier_session_is_gone(home: Any, landlocked: Try) -> None:
    landlocked([("make", "$HOME/.bashrc"), ("write", "$HOME/.bashrc"), ("make", "$HOME/kept")])
    assert landlocked([("read", "$HOME/.bashrc"), ("read", "$HOME/kept")]).results == ["ENOENT", ""]


def test_what_an_earlier_session_left_in_the_home_leads_nowhere(home: Any, landlocked: Try) -> None:
    """A link in the place of a folder, by which we would make links elsewhere; a file where a link belongs."""
    plan = put(home, "Documents/plan")
    put(home, ".cargo/bin/tool", "tool")
    put(home, ".gitconfig", "mine")
    landlocked(
        [
            (
                "sh",
                f"cd; rm -rf .cargo .gitconfig; ln -s {plan.parent} .cargo; echo x >.gitconfig",
            )
        ]
    )
    found = landlocked([("read", "$HOME/.cargo/bin/tool"), ("read", "$HOME/.gitconfig"), ("read", plan)])
    assert found.results == ["tool", "mine", REFUSED]
    assert os.listdir(plan.parent) == ["plan"]


def test_the_temporary_folder_is_private_and_removed(home: Any, landlocked: Try, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    found = landlocked(
        [("make", "$TMPDIR/x"), ("make", f"{tmp_path}/x"), ("list", "/tmp")], env={"XDG_RUNTIME_DIR": "/run/user/9"}
    )
    assert found.results == [DONE, REFUSED, REFUSED]
    private = found.environment["TMPDIR"]
    assert found.environment["XDG_RUNTIME_DIR"] == f"{private}/run"
    assert not os.path.exists(private)


def test_the_hosts_temporary_folders_can_be_shared(home: Any, landlocked: Try, tmp_path_factory: Any) -> None:
    """A home below /tmp holds files of netsandbox, which sharing would open: nothing starts."""
    found = landlocked([("list", "/tmp")], share_tmp=True)
    if str(home.path).startswith("/tmp/"):
        assert "belongs to netsandbox" in found.error
    else:
        assert isinstance(found.results[0], list)


def test_rules_open_and_close(home: Any, landlocked: Try) -> None:
    data, shared, hidden = put(home, "data/x", "data"), put(home, "shared/x", "shared"), put(home, "data/deep/hidden")
    beside = put(home, "data/deep/beside", "beside")
    found = landlocked(
        [
            ("read", data),
            ("read", beside),
            ("write", shared),
            ("make", f"{home.path}/shared/new"),
            ("read", "$HOME/data/x"),
            ("write", data),
            ("read", hidden),
            ("make", f"{home.path}/data/new"),
            ("list", hidden.parent),
        ],
        allow_read=[f"{home.path}/data"],
        allow_write=[f"{home.path}/shared"],
        deny_read=[hidden],
    )
    assert found.results[:5] == ["data", "beside", DONE, DONE, "data"]
    assert found.results[5:] == [REFUSED] * 4
    assert (data.read_text(), shared.read_text()) == ("data", "planted")


@pytest.mark.parametrize("rule", ["deny_read", "deny_write"])
def test_a_deny_in_the_project_is_an_error(home: Any, landlocked: Try, rule: str) -> None:
    path = put(home, "work/keep/x")
    found = landlocked(**{rule: [path]})
    assert found.kind == "UsageError"
    assert "work/keep/x" in found.error
    assert "--backend namespaces" in found.error
    assert landlocked(**{rule: [home.path / "elsewhere"]}).error == ""


def test_a_deny_of_the_whole_project_is_kept(home: Any, landlocked: Try) -> None:
    path = put(home, "work/x", "x")
    assert landlocked([("read", path), ("write", path)], deny_write=[home.work]).results == ["x", REFUSED]
    assert landlocked([("read", path), ("write", path)]).results == ["x", DONE]


def test_a_secret_in_a_folder_that_is_opened_for_writing_is_an_error(home: Any, landlocked: Try) -> None:
    put(home, ".config/gh/hosts.yml")
    put(home, ".config/tool/x", "x")
    found = landlocked(allow_write=[home.path / ".config"])
    assert found.kind in ("HostError", "UsageError")
    assert ".config" in found.error
    fine = landlocked([("write", f"{home.path}/.config/tool/x")], allow_write=[home.path / ".config/tool"])
    assert fine.results == [DONE]


def test_a_link_that_a_session_made_opens_nothing(home: Any, landlocked: Try) -> None:
    plan = put(home, "Documents/plan")
    landlocked([("sh", f"ln -s {plan.parent} out; mkdir bin; ln -s {plan} bin/tool")])
    found = landlocked(
        [("read", f"{home.work}/out/plan"), ("list", f"{home.work}/out")],
        env={"PATH": f"{home.work}/bin:/usr/bin:/bin"},
    )
    assert found.results == [REFUSED, REFUSED]
    named = landlocked(allow_read=[home.work / "out"])
    assert "which a command could have made" in named.error


def test_a_folder_above_the_home_does_not_show_the_home(home: Any, landlocked: Try) -> None:
    plan, mine = put(home, "Documents/plan"), put(home, "work/mine", "mine")
    beside = home.path.parent / f"{home.path.name}-beside"
    beside.write_text("beside")
    beside.chmod(0o644)
    try:
        found = landlocked([("read", plan), ("read", mine), ("read", beside)], allow_read=[home.path.parent])
        assert found.results == [REFUSED, "mine", "beside"]
    finally:
        beside.unlink()


def test_a_hard_link_does_not_make_a_file_writable(home: Any, landlocked: Try) -> None:
    settings, mine = put(home, ".gitconfig", "mine"), put(home, "work/mine", "mine")
    inner = put(home, ".nvm/nvm.sh", "mine")
    found = landlocked(
        [
            ("link", f"{mine} {home.work}/second"),
            ("link", f"{settings} {home.work}/third"),
            ("link", f"{inner} {home.work}/fourth"),
        ]
    )
    assert found.results[0] == DONE
    assert all(result in ("EACCES", "EXDEV", "EPERM") for result in found.results[1:])


def test_no_device_is_made(home: Any, landlocked: Try) -> None:
    assert landlocked([("device", f"{home.work}/null"), ("make", f"{home.work}/file")]).results[0] in (
        "EACCES",
        "EPERM",
    )


def test_caches_are_private_and_kept(home: Any, landlocked: Try) -> None:
    theirs = put(home, ".npm/_cacache/x", "host")
    cache = home.path / ".npm/_cacache"
    attempts = [("make", "$HOME/.npm/_cacache/y"), ("read", "$HOME/.npm/_cacache/y"), ("write", theirs)]
    assert landlocked(attempts, caches=[cache]).results == [DONE, "", REFUSED]
    assert landlocked(attempts, caches=[cache]).results == ["EEXIST", "", REFUSED]
    assert os.listdir(cache) == ["x"]


def test_variables_lead_to_private_folders(home: Any, landlocked: Try) -> None:
    put(home, ".nvm/nvm.sh")
    moved = home.path.parent / "moved-cache"
    found = landlocked(
        [("sh", 'mkdir -p "$XDG_CACHE_HOME/a" "$XDG_CONFIG_HOME/b" && echo made')],
        env={
            "XDG_CACHE_HOME": str(moved),
            "XDG_CONFIG_HOME": f"{home.path}/.config",
            "NVM_DIR": f"{home.path}/.nvm",
            "SSH_AUTH_SOCK": "/tmp/agent",
            "OTHERS": f"/usr/bin:{home.path}/bin:{home.work}/bin",
        },
    )
    private = found.environment["HOME"]
    assert found.results == [[0, "made\n", ""]]
    assert not moved.exists()
    assert found.environment["XDG_CONFIG_HOME"] == f"{private}/.config"
    assert found.environment["NVM_DIR"] == f"{home.path}/.nvm"
    assert found.environment["OTHERS"] == f"/usr/bin:{private}/bin:{home.work}/bin"
    assert "SSH_AUTH_SOCK" not in found.environment


def test_in_the_home_itself_the_command_begins_in_the_private_one(home: Any, landlocked: Try) -> None:
    plan = put(home, "plan")
    found = landlocked([("sh", "echo x >made && pwd"), ("read", plan)], cwd=home.path)
    assert found.results == [[0, found.environment["HOME"] + "\n", ""], REFUSED]
    assert not (home.path / "made").exists()


# netsandbox's own files (INV-8)


def test_state_and_configuration_are_closed(home: Any, landlocked: Try) -> None:
    config = put(home, "config/netsandbox/config.toml", "")
    found = landlocked([("list", home.state / "netsandbox"), ("make", home.state / "netsandbox/x"), ("write", config)])
    assert found.results == [REFUSED] * 3


def test_our_file_in_the_project_is_an_error(home: Any, landlocked: Try) -> None:
    put(home, "work/.venv/bin/python")
    put(home, "other/.venv/bin/python")
    found = landlocked(own=[home.work / ".venv"])
    assert found.kind == "HostError"
    assert "work/.venv belongs to netsandbox" in found.error
    assert landlocked(own=[home.path / "other/.venv"]).error == ""


def test_an_interpreter_in_the_project_is_an_error(home: Any, landlocked: Try) -> None:
    """It is one that runs netsandbox: the command could overwrite what the supervisor has mapped."""
    for folder in (home.work, home.path / "tools"):
        make = [home.identity.python, "-m", "venv", "--without-pip", str(folder / ".venv")]
        subprocess.run([*home.identity.prefix, *make], check=True, env=home.environment(None))
    found = landlocked(python=home.work / ".venv/bin/python")
    assert found.kind == "HostError"
    assert f"~/{home.work.name}/.venv belongs to netsandbox" in found.error
    assert landlocked(python=home.path / "tools/.venv/bin/python").error == ""


def test_a_link_in_the_project_to_our_file_is_an_error(home: Any, landlocked: Try) -> None:
    put(home, "dotfiles/config.toml")
    (home.work / "config.toml").symlink_to(home.path / "dotfiles/config.toml")
    assert "belongs to netsandbox" in landlocked(own=[home.work / "config.toml"]).error


def test_shared_memory_with_our_files_is_carved(home: Any, landlocked: Try) -> None:
    folder = Path("/dev/shm") / f"netsandbox-test-{os.urandom(4).hex()}"
    folder.mkdir()
    try:
        for name in ("kept", "beside"):
            (folder / name).write_text("x")
            (folder / name).chmod(0o666)
        attempts = [("write", folder / "kept"), ("write", folder / "beside")]
        assert landlocked(attempts, own=[folder / "kept"]).results == [REFUSED, DONE]
        assert landlocked(attempts).results == [DONE, DONE]
    finally:
        for name in ("kept", "beside"):
            (folder / name).unlink()
        folder.rmdir()


def test_our_file_as_standard_input_is_an_error(home: Any, landlocked: Try) -> None:
    ours = put(home, "ours")
    with ours.open("r+") as opened:
        assert "belongs to netsandbox" in landlocked(own=[ours], stdin=opened).error
        assert landlocked(stdin=opened).error == ""
