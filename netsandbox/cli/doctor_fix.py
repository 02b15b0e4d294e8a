"""`netsandbox doctor --fix`: prints the commands that open user namespaces; root installs or removes the profile."""

from __future__ import annotations

import os
import sys

from netsandbox.backends.namespaces.launch import HELPER
from netsandbox.cli.terminal import notice, print_text
from netsandbox.doctor import linux_checks
from netsandbox.doctor.apparmor import ROOT, owner_of, path_objection, profile_text, writers_objection
from netsandbox.doctor.apparmor_files import ProfileFile
from netsandbox.doctor.fixes import Fix, broker_fixes, capture_fix, namespace_fixes, proc_fix, script
from netsandbox.doctor.helper_trial import helper_failure
from netsandbox.doctor.host_facts import HostFacts, read_facts
from netsandbox.errors import HostError, NetsandboxError
from netsandbox.text import few, shell_quoted, single_line

PROFILE = ProfileFile()
END = "END"
NOTHING = "Nothing to fix: the helper can make its namespaces on this machine."
BROKER = "# Without user namespaces sessions use the backend broker. For that one:\n"


def print_fixes() -> int:
    """Print the fixes as a shell script. The exit status is 0 if there is nothing to fix."""
    facts, helper = read_facts(), _helper()
    failure = helper_failure()
    if failure is None and not (os.geteuid() == ROOT and _lacks_profile(facts, helper)):
        print_text(NOTHING)
        return 0
    fixes = _fixes(facts, helper)
    print_text("\n".join(script(fixes) if fixes else [f"# {single_line(failure or '')}"]))
    if weak := broker_fixes(facts, linux_checks.landlock_abi()):
        print_text(BROKER + "\n".join(script(weak)))
    return 1


def apply() -> int:
    """Install and load the profile."""
    facts, helper = read_facts(), _helper()
    if not facts.needs_profile:
        why = "AppArmor does not restrict user namespaces" if facts.has_apparmor else "AppArmor is not enabled"
        print_text(f"Nothing to install: {why} on this machine.")
        return 0
    if facts.is_container:
        raise HostError("the profile belongs to the machine below this container; run `netsandbox doctor --fix` there")
    _need_root("install", "--apply")
    PROFILE.install(helper)
    if owner_of(helper) != ROOT:
        notice(_writable_notice(helper))
    print_text(f"{PROFILE.path} is installed and loaded: {single_line(helper)} may make user namespaces.")
    print_text("Now run `netsandbox doctor`, not as root.")
    return 0


def remove() -> int:
    """Remove the profile, or this installation's part of it."""
    _need_root("remove", "--remove")
    stay = PROFILE.remove(_helper(needed=False))
    if stay is None:
        print_text(f"Nothing to remove: {PROFILE.path} does not name this installation.")
    elif stay:
        others = few(single_line(path) for path in stay)
        print_text(f"This installation is removed from {PROFILE.path}, which still names {others}.")
    else:
        print_text(f"{PROFILE.path} is removed and unloaded.")
    return 0


def removal_command() -> str | None:
    """The command that removes the profile, if it names this installation."""
    try:
        named = _helper(needed=False) in PROFILE.helpers()
    except (OSError, NetsandboxError):
        return None
    return _as_root("--remove") if named else None


def _helper(*, needed: bool = True) -> str:
    """AppArmor sees the path without links."""
    if needed and not os.access(HELPER, os.X_OK):
        raise HostError(f"the native helper is missing; {linux_checks.REINSTALL}")
    return os.path.realpath(HELPER)


def _need_root(what: str, option: str) -> None:
    if os.geteuid() != ROOT:
        raise HostError(f"only root can {what} the profile; run `{_as_root(option)}`")


def _as_root(option: str) -> str:
    """sudo does not look for programs in a user's folders, so the command has its whole path."""
    program = os.path.join(os.path.dirname(sys.executable), "netsandbox")
    return f"sudo {shell_quoted(program) if os.path.exists(program) else 'netsandbox'} doctor --fix {option}"


def _lacks_profile(facts: HostFacts, helper: str) -> bool:
    """Root itself is not restricted, so root learns it from the files."""
    return facts.is_restricted and not facts.is_container and helper not in PROFILE.helpers()


def _fixes(facts: HostFacts, helper: str) -> list[Fix]:
    if facts.is_restricted or linux_checks.user_namespace():
        return namespace_fixes(facts, _profile_steps(helper) if facts.needs_profile else ())
    if linux_checks.private_proc():
        return [proc_fix()]
    return [capture_fix()] if linux_checks.transparent_capture() else []


def _profile_steps(helper: str) -> tuple[str, ...]:
    """Commands that need nothing of ours to run as root; then the one that does the same."""
    objection = path_objection(helper) or writers_objection(helper)
    if objection:
        return (f"# {single_line(objection)}",)
    remarks = [PROFILE.lack(), _writable_notice(helper) if owner_of(helper) != ROOT else None]
    return (
        *(f"# {single_line(remark)}" for remark in remarks if remark),
        f"sudo tee {PROFILE.path} >/dev/null <<'{END}'",
        *profile_text(PROFILE.wanted(helper)).splitlines(),
        END,
        f"sudo apparmor_parser -r {PROFILE.path}",
        f"# or, the same by netsandbox: {_as_root('--apply')}",
    )


def _writable_notice(helper: str) -> str:
    return (
        f"every program that runs as user {owner_of(helper)} can replace {single_line(helper)} and get user namespaces "
        "too; to rule that out, install netsandbox as root, for instance in /opt/netsandbox, and apply the fix there"
    )
