"""Carries out a plan of `policy.overlay_plan`: brings changes of an overlay into the folder of the host.

The content is a session's, and the folder may change meanwhile, so
- no link is followed, and nothing outside of the folder is opened;
- a path is compared with what was planned right before it is changed, and another one stops everything;
- a file is written beside its place and moved there; it has no set-user-id bit; no device is ever made.
"""

from __future__ import annotations

import os
import stat
from errno import EXDEV

from netsandbox.backends.linux.private_folders import FOLDER as OPEN_FOLDER
from netsandbox.backends.linux.private_folders import READ, open_folder
from netsandbox.backends.namespaces.overlay_files import PART, content, node_of
from netsandbox.errors import NetsandboxError
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.overlay_changes import FOLDER, LINK, above
from netsandbox.policy.overlay_plan import REMOVE
from netsandbox.runtime.private_file import NEW, write_new

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.backends.linux.kept_overlays import Overlay
    from netsandbox.policy.git_merge import Merged
    from netsandbox.policy.overlay_changes import Node
    from netsandbox.policy.overlay_plan import Step, Trees

DRAFT = ".netsandbox-"


class Application:
    """One run. `done` counts the steps that were carried out."""

    def __init__(self, overlay: Overlay, trees: Trees) -> None:
        self.done = 0
        self._overlay = overlay
        self._trees = trees
        self._upper = open_folder(overlay.data)
        self._host = open_folder(overlay.folder)
        self._place = open_folder(overlay.place)
        self._removed: set[str] = set()
        self._folders: list[str] = []  # whose content must be written before they may become read-only

    def carry_out(self, steps: tuple[Step, ...]) -> None:
        mask = os.umask(0)
        try:
            for step in steps:
                path = step.path
                self._step(step)
                self.done += 1
            for path in reversed(self._folders):
                self._set_mode(path)
        except OSError as error:
            raise NetsandboxError(
                f"stopped at {path!a} ({error.strerror}) after {self.done} changes; the rest is kept, mend that and"
                " run it again"
            ) from None
        finally:
            os.umask(mask)

    def _step(self, step: Step) -> None:
        name = step.path.rpartition("/")[2]
        folder = open_folder(above(step.path), self._host)
        try:
            self._check(folder, name, step.path)
            if step.action == REMOVE:
                self._remove(folder, name, step.path)
            else:
                self._write(folder, name, step.path)
        finally:
            os.close(folder)

    def _check(self, folder: int, name: str, path: str) -> None:
        """An error if the host has something else there than when the plan was made."""
        known = self._trees.host.get(path) if path not in self._removed else None
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            found = None
        if not _is_as_known(found, known):
            raise NetsandboxError(
                f"{path!a} changed while it was applied, after {self.done} changes; the rest is kept, look at it and"
                " run it again"
            )

    def _remove(self, folder: int, name: str, path: str) -> None:
        if path not in self._trees.host:
            return
        if self._trees.host[path].kind == FOLDER:
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
        self._removed.add(path)

    def _write(self, folder: int, name: str, path: str) -> None:
        if self._trees.upper[path].kind == FOLDER:
            self._make_folder(folder, name, path, self._trees.upper[path])
            return
        self._put(folder, name, path, lambda drafts, draft: self._draft(drafts, draft, path, folder))

    def _put(self, folder: int, name: str, path: str, make: Callable[[int, str], None]) -> None:
        """Make a draft and move it to its place. It is made in the state folder, where no session could open it and
        keep it open; beside its place if that is another disk, or mounted apart."""
        is_near = os.fstat(self._place).st_dev == os.fstat(folder).st_dev
        for drafts in (self._place, folder) if is_near else (folder,):
            draft = f"{DRAFT}{os.urandom(8).hex()}"
            try:
                make(drafts, draft)
                self._check(folder, name, path)
                os.rename(draft, name, src_dir_fd=drafts, dst_dir_fd=folder)
                return
            except BaseException as error:
                _remove_if_there(draft, drafts)
                if drafts == folder or not isinstance(error, OSError) or error.errno != EXDEV:
                    raise

    def _draft(self, drafts: int, draft: str, path: str, folder: int) -> None:
        node = self._trees.upper[path]
        if node.kind == LINK:
            os.symlink(node.target, draft, dir_fd=drafts)
        else:
            self._copy(drafts, draft, path, folder)

    def _make_folder(self, folder: int, name: str, path: str, node: Node) -> None:
        mode = node.mode | 0o300
        if mode != node.mode:
            self._folders.append(path)
        if path not in self._trees.host or path in self._removed:
            os.mkdir(name, mode, dir_fd=folder)
            return
        here = os.open(name, OPEN_FOLDER, dir_fd=folder)
        try:
            os.fchmod(here, mode)
        finally:
            os.close(here)

    def _set_mode(self, path: str) -> None:
        here = open_folder(path, self._host)
        try:
            os.fchmod(here, self._trees.upper[path].mode)
        finally:
            os.close(here)

    def _copy(self, drafts: int, draft: str, path: str, folder: int) -> None:
        node = self._trees.upper[path]
        holder = open_folder(above(path), self._upper)
        try:
            source = os.open(path.rpartition("/")[2], READ, dir_fd=holder)
        finally:
            os.close(holder)
        with open(source, "rb", 0):
            if not _is_as_known(os.fstat(source), node):
                raise NetsandboxError(f"{path!a} changed in the overlay while it was read; run it again")
            target = os.open(draft, NEW, 0o600, dir_fd=drafts)
            with open(target, "wb", 0):
                _copy_content(source, target, node.size)
                self._keep_owner(target, path, folder)
                os.fchmod(target, node.mode)
                os.utime(target, ns=(node.modified, node.modified))

    def _keep_owner(self, target: int, path: str, folder: int) -> None:
        """A file that is replaced keeps its owner and group, as far as this user may give it away; a new one gets the
        group that its folder gives."""
        own, holder = os.fstat(target), os.fstat(folder)
        owner, group = own.st_uid, holder.st_gid if holder.st_mode & stat.S_ISGID else own.st_gid
        if path in self._trees.host and path not in self._removed:
            found = os.stat(path.rpartition("/")[2], dir_fd=folder, follow_symlinks=False)
            owner, group = found.st_uid, found.st_gid
        if (owner, group) != (own.st_uid, own.st_gid):
            try:
                os.fchown(target, owner, group)
            except PermissionError:
                pass

    def merge_config(self, path: str) -> Merged | None:
        """Give a configuration file of git what makes no program run, as at the end of a session without an overlay.
        None: it cannot be read or written, or has errors."""
        from netsandbox.policy.git_config import MAX_CONFIG
        from netsandbox.policy.git_merge import merge

        overlay = self._overlay
        mine, theirs = (content(root, path, MAX_CONFIG) for root in (overlay.data, overlay.folder))
        if mine is None or theirs is None:
            return None
        host = theirs.decode("utf-8", "surrogateescape")
        try:
            merged = merge(
                host,
                mine.decode("utf-8", "surrogateescape"),
                host,
                lambda url: not is_within(os.path.realpath(url), overlay.folder),
            )
            if merged.text is not None:
                self._replace(path, merged.text.encode("utf-8", "surrogateescape"))
        except (OSError, ValueError):
            return None
        return merged

    def _replace(self, path: str, data: bytes) -> None:
        def make(drafts: int, draft: str) -> None:
            write_new(draft, data, self._trees.host[path].mode, drafts)

        folder = open_folder(above(path), self._host)
        try:
            self._put(folder, path.rpartition("/")[2], path, make)
        finally:
            os.close(folder)

    def close(self) -> None:
        for descriptor in (self._upper, self._host, self._place):
            os.close(descriptor)


def _remove_if_there(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass


def _is_as_known(found: os.stat_result | None, known: Node | None) -> bool:
    if found is None or known is None:
        return found is None and known is None
    now = node_of(found)
    if now.kind == known.kind == FOLDER:  # its entries may have changed, by this run too
        return now.number == known.number
    return (now.kind, now.number, now.size, now.changed) == (known.kind, known.number, known.size, known.changed)


def _copy_content(source: int, target: int, size: int) -> None:
    """Copy what is written in the file; what is empty stays so, as a file may pretend to fill the disk."""
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError:  # nothing follows
            break
        end = os.lseek(source, at, os.SEEK_HOLE)
        while at < end and (part := os.pread(source, min(PART, end - at), at)):
            at += os.pwrite(target, part, at)
    os.ftruncate(target, size)
