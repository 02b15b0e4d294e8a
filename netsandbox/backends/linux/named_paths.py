"""What the rules of the user, of files and of profiles show, open, close and hide in the mode `project`."""

from __future__ import annotations

import os

from netsandbox.backends.linux.session_root import NAMED, PROJECT
from netsandbox.errors import UsageError
from netsandbox.paths import home
from netsandbox.policy import shown_files
from netsandbox.policy.file_rules import ResolvedPath, check_no_link, is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.backends.linux.project_view import ProjectView
    from netsandbox.policy.file_rules import PathRule


class NamedPaths:
    """Adds the rules of a view to it. A rule that cannot be enforced is an error (INV-1)."""

    def __init__(self, view: ProjectView) -> None:
        self.view = view
        self.rules, self.root, self.paths, self.folders = view.rules, view.root, view.paths, view.folders

    def apply(self) -> None:
        rules = self.rules
        for rule in self._followed(rules.allow_read):
            self._named(rule, writable=False)
        for rule in self._followed(rules.allow_write):
            if rule.folder:
                self._make(rule)
            self._named(rule, writable=True)
            if os.path.basename(rule.path) in shown_files.AGENT_FILES and not rule.origin.startswith("--"):
                self._copy(rule)
        for rule in dict.fromkeys((*rules.deny_write, *self._followed(rules.deny_write))):  # where it was, too
            if self._is_missing(rule):
                self.view.forbidden.append(rule.path)
            else:
                real = self.paths.reached(rule.path)
                shown = self.root.shown_entry(real)
                if shown is not None and shown.writable:
                    self.root.pin_above(real)
                self.root.close(real)
        for rule in rules.deny_read:
            if not self._is_missing(rule):
                self._hide(rule)
        if rules.caches:
            self._caches()
        if rules.copies:
            self._copies()
        self._clean_later()

    def _clean_later(self) -> None:
        """Have the places in the private home removed where rules show something: the next session may lack them."""
        start = f"{self.view.home}/"
        named = [rule.path for rule in (*self.rules.allow_read, *self.rules.allow_write)]
        places = dict.fromkeys((*map(self.paths.reached, named), *map(os.path.normpath, named)))
        entries = {path[len(start) :]: self.root.entries.get(path) for path in places if path.startswith(start)}
        paths = {path: entry.source if entry.kind == "link" else "" for path, entry in entries.items() if entry}
        if paths and self.folders.is_kept:
            self.folders.clean_later(paths)

    def _followed(self, rules: tuple[PathRule, ...]) -> Iterable[PathRule]:
        """The rules of profiles and files, for the folders that variables move; an option means what it says."""
        if all(rule.origin.startswith("--") for rule in rules):
            return rules
        from netsandbox.policy.tool_caches import followed

        named = [rule for rule in rules if rule.origin.startswith("--")]
        moved = followed((rule for rule in rules if rule not in named), self.view.environment, home())
        return [*(rule for _, rule in moved), *named]

    def _hide(self, rule: PathRule) -> None:
        """Hide a path and everything that is shown below it."""
        real = self.paths.reached(rule.path)
        if self.view.working is not None and is_within(self.view.working, real):
            raise UsageError(
                f"{rule.origin}: {rule.path!a} holds the working folder, so it cannot be hidden;"
                " leave it out, or work in another folder"
            )
        self.root.remove_below(real)
        if self.root.shown_entry(real) is not None:  # by a folder above, even if it was covered until now
            self.root.pin_above(real)
            self.view.cover(rule.path)

    def _make(self, rule: PathRule) -> None:
        """Make a folder that no tool has made yet."""
        if os.path.isdir(rule.path):
            return
        try:
            os.makedirs(rule.path, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{rule.origin}: cannot make {rule.path!a}: {error.strerror}; make it yourself, or leave it out"
            ) from None
        self.paths.forget_missing()
        self.view.written = self.view.writable_folders()

    def _named(self, rule: PathRule, *, writable: bool) -> None:
        if self._is_missing(rule):
            return
        real = self.paths.reached(rule.path)
        if real == "/":
            raise UsageError(
                f"{rule.origin}: the whole disk is too much for the mode project; name folders, or use"
                f" --files {'open' if writable else 'readable'}"
            )
        if is_within(real, "/dev") and not is_within(real, "/dev/shm"):  # noqa: S108 (a path to compare)
            if os.path.basename(real) in shown_files.DEVICES:
                return  # every session has it
            raise UsageError(f"{rule.origin}: {rule.path!a} is of the devices; name each one with --allow-device")
        links = self.view.links_of_sessions(rule.path, real)
        check_no_link(ResolvedPath(rule.path, real), f"{rule.origin}:", links)
        if is_within(real, self.folders.state):
            raise UsageError(
                f"{rule.origin}: {rule.path!a} is state of netsandbox, which no session sees; leave it out"
            )
        if is_within(self.folders.state, real) and writable:
            raise UsageError(f"{rule.origin}: {rule.path!a} holds the state of netsandbox; name the folders inside")
        self.view.show(rule.path, writable=writable, rank=NAMED)
        if writable:
            self._cover_secrets(real)
            self.folders.remember_written(real)

    def _cover_secrets(self, folder: str) -> None:
        """Hide the places of secrets in a folder that is opened for writing, unless a rule shows or names them."""
        if not (is_within(folder, self.view.home) or is_within(self.view.home, folder)):
            return
        from netsandbox.backends.linux.file_view import secret_places

        shown = [os.path.realpath(rule.path) for rule in self.rules.allow_read]
        named = [os.path.realpath(rule.path) for rule in self.rules.allow_write]
        for place in secret_places(self.rules, self.view.working, []):
            inside = is_within(place.real, folder) and place.real not in named
            if inside and not any(is_within(place.real, path) for path in shown):
                self.root.pin_above(place.real)
                self.view.cover(place.real)

    def _copy(self, rule: PathRule) -> None:
        """A settings file of an agent: the session changes a private copy (`agent_files`)."""
        real = self.paths.reached(rule.path)
        denied = [os.path.realpath(each.path) for each in (*self.rules.deny_read, *self.rules.deny_write)]
        if not os.path.isfile(real) or any(is_within(real, each) for each in (self.view.working or real, *denied)):
            return
        self.root.entries.pop(real, None)
        if os.path.dirname(real) == self.view.home:
            copy = f"{self.folders.home}/{os.path.basename(real)}"
        else:
            copy = f"{self.folders.moved('agents')}/{os.path.basename(real)}"
            self.root.place(copy, real, writable=True)
        self._make_copy(real, copy)

    def _make_copy(self, real: str, copy: str) -> None:
        from netsandbox.backends.linux.agent_files import make_copy

        self.view.agents.append(make_copy(real, copy))

    def _is_missing(self, rule: PathRule) -> bool:
        if not rule.path.startswith("/"):
            raise UsageError(f"{rule.origin}: {rule.path!a} is not absolute; write it from / on")
        return not os.path.exists(rule.path)

    def _caches(self) -> None:
        """Caches are overlays: the session changes a copy, its project's alone. None can be shared by projects: what a
        tool checks its files against lies in the same cache. A rule that only shows a cache, or a folder around one,
        takes nothing from its tool; where the cache is missing, that folder is the overlay."""
        from netsandbox.policy.tool_caches import followed

        denied = [self.paths.reached(rule.path) for rule in self.rules.deny_read]
        for _, rule in followed(self.rules.caches, self.view.environment, home()):
            real = self.paths.reached(rule.path)
            shown = self.root.shown_entry(real)
            if (shown is not None and shown.writable) or self.view.is_too_much(real) or self.view.is_secret(real):
                continue
            if any(is_within(real, each) for each in denied):
                continue
            if os.path.isdir(real):
                self._cache(real)
                self.view.links_to(rule.path)
            elif shown is not None and not os.path.lexists(real):
                self._cache_around(real)
            elif shown is None and not is_within(real, self.view.home):
                self.root.place(f"{self.folders.cache(real)}/data", real, writable=True, rank=PROJECT)

    def _cache(self, real: str) -> str:
        shown = self.root.shown_entry(real)
        if shown is not None and shown.rank == NAMED:
            self.root.entries.pop(real, None)
            self.view.originals.append(real)
        folder = self.folders.cache(real)
        self.root.cache(real, folder, real)
        return folder

    def _cache_around(self, real: str) -> None:
        """The same for the folder that a missing cache would be made in, if a rule shows it."""
        folder = os.path.dirname(real)
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        shown = self.root.shown_entry(folder)
        if shown is not None and shown.rank == NAMED and not self.view.is_too_much(folder):
            self._fill_cache(folder, f"{self._cache(folder)}/data")

    def _fill_cache(self, real: str, copy: str) -> None:
        """An overlay shows what the host has."""

    def _copies(self) -> None:
        """Folders of agents are overlays too. Their rules name them on purpose, with the login in them; one that only a
        variable names may be anything."""
        from netsandbox.policy.tool_caches import followed

        for _, rule in followed(self.rules.copies, self.view.environment, home()):
            real = self.paths.reached(rule.path)
            shown = self.root.shown_entry(real)
            is_secret = rule not in self.rules.copies and self.view.is_secret(real)
            if (shown is not None and shown.writable) or self.view.is_too_much(real) or is_secret:
                continue
            if os.path.isdir(real):
                copy = self.folders.copy(real)
                self.root.entries.pop(real, None)
                self.root.cache(real, copy, real)
                self.view.links_to(rule.path)
                self._fill(real, f"{copy}/data")

    def _fill(self, real: str, copy: str) -> None:
        """Prepare the copy of a folder. What `allow_write` names in it and is not there yet is made by the session, and
        goes to the host at the end."""
        from netsandbox.backends.linux.agent_files import refresh

        refresh(real, copy, self._written_in(real))
        self._expect_new(real, copy)

    def _written_in(self, real: str) -> list[str]:
        """The paths of `allow_write` in an agent's folder that the host has."""
        paths = (self.paths.reached(rule.path) for rule in self._followed(self.rules.allow_write))
        return [path for path in paths if path != real and is_within(path, real) and os.path.exists(path)]

    def _expect_new(self, real: str, copy: str) -> None:
        for rule in self._followed(self.rules.allow_write):
            path = self.paths.reached(rule.path)
            if not rule.folder and is_within(path, real) and not os.path.lexists(path):
                self.view.expected.append((path, copy + path[len(real) :]))
