"""Installs, loads and removes the profile of `apparmor`. Everything here needs root, and leaves files of others alone.

A new profile is checked by `apparmor_parser` before it replaces the old one. If the kernel does not accept it, the old
file is back in its place.
"""

from __future__ import annotations

import os
import shutil
import subprocess

from netsandbox.doctor.apparmor import NAME, named_helpers, path_objection, profile_text, writers_objection
from netsandbox.errors import HostError, NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.text import single_line

FOLDER = "/etc/apparmor.d"
PARSER = "apparmor_parser"
PLACES = "/usr/sbin:/sbin:/usr/bin:/bin"  # where root's programs are; PATH may be that of a user
ABI = "abi/4.0"  # AppArmor 4.0, the first that knows `userns`
MODE = 0o644
MAX_SECONDS = 60


@frozen
class ProfileFile:
    """The file of the profile in *folder*, and the program that loads it."""

    folder: str = FOLDER
    places: str = PLACES

    @property
    def path(self) -> str:
        return os.path.join(self.folder, NAME)

    def helpers(self) -> list[str]:
        """The helpers that the installed profile names; empty if there is none."""
        text = _read(self.path)
        if text is None:
            return []
        found = named_helpers(text)
        if found is None:
            raise HostError(f"{self.path} was not written by netsandbox; move it away, then run this again")
        return found

    def wanted(self, helper: str) -> list[str]:
        """The helpers of a profile to which *helper* is added. Others stay if they are there and still protected."""
        kept = [path for path in self.helpers() if path != helper and is_usable(path)]
        return sorted([*kept, helper])

    def install(self, helper: str) -> None:
        """Name *helper* in the profile and load it. Doing it again changes nothing."""
        objection = path_objection(helper) or writers_objection(helper)
        if objection:
            raise HostError(objection)
        if lack := self.lack():
            raise HostError(lack)
        self._replace(profile_text(self.wanted(helper)))

    def remove(self, helper: str) -> list[str] | None:
        """Take *helper* out of the profile. Returns the helpers that stay named; None if *helper* was not named."""
        named = self.helpers()
        stay = [path for path in named if path != helper and is_usable(path)]
        if stay == named:
            return None
        if stay:
            if lack := self.lack():
                raise HostError(lack)
            self._replace(profile_text(stay))
            return stay
        if self._parser:  # it fails if the profile is not loaded, which is what is wanted
            _run([self._parser, "-R", self.path])
        os.unlink(self.path)
        return []

    def lack(self) -> str | None:
        """What is missing for a profile to be loaded; None if nothing is."""
        if not self._parser:
            return f"{PARSER} is missing; as root run `apt-get install apparmor`"
        abi = os.path.join(self.folder, ABI)
        if os.path.exists(abi):
            return None
        return (
            f"{abi} is missing, so AppArmor is older than 4.0 and knows no rule for user namespaces; "
            "install a newer package apparmor"
        )

    @property
    def _parser(self) -> str:
        return shutil.which(PARSER, path=self.places) or ""

    def _replace(self, text: str) -> None:
        new = os.path.join(self.folder, f".{NAME}.new")  # AppArmor loads no hidden files
        old = _read(self.path)
        _write(new, text)
        try:
            _checked([self._parser, "-Q", "-K", new], "the profile is not understood")
        except NetsandboxError:
            os.unlink(new)
            raise
        os.replace(new, self.path)
        try:
            _checked([self._parser, "-r", self.path], "the profile cannot be loaded")
        except NetsandboxError:
            if old is None:
                os.unlink(self.path)
            else:
                _write(new, old)
                os.replace(new, self.path)
            raise


def is_usable(helper: str) -> bool:
    """Whether a helper that was named before is still there and still protected."""
    return os.path.isfile(helper) and path_objection(helper) is None and writers_objection(helper) is None


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _write(path: str, text: str) -> None:
    """A new file; what is left of an earlier attempt is removed."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        os.fchmod(descriptor, MODE)
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def _checked(command: list[str], what: str) -> None:
    done = _run(command)
    if done.returncode:
        told = single_line(done.stderr.strip(), 300) or f"exit status {done.returncode}"
        raise HostError(f"{what} by {command[0]}: {told}; nothing was changed, please report this")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=MAX_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"{command[0]} does not work ({error}); reinstall the package apparmor") from None
