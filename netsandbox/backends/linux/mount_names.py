"""Other names of a path: a bind mount, or a second mount of the same disk, shows it elsewhere too."""

from __future__ import annotations

from netsandbox.errors import HostError
from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOUNTS = "/proc/self/mountinfo"


@frozen
class Mount:
    """The folder *root* of the file system *device*, mounted at *point*."""

    device: bytes
    root: str
    point: str


def known_mounts() -> tuple[Mount, ...]:
    """Those of this mount namespace."""
    try:
        with open(MOUNTS, "rb") as file:
            return read_mounts(file.read())
    except OSError as error:
        raise HostError(f"cannot read {MOUNTS}: {error.strerror}; secrets could be seen by a second name") from None


def read_mounts(text: bytes) -> tuple[Mount, ...]:
    """The lines of /proc/self/mountinfo, proc_pid_mountinfo(5): ID PARENT MAJOR:MINOR ROOT POINT …"""
    found = []
    for line in text.split(b"\n"):
        fields = line.split(b" ", 5)
        if len(fields) == 6:
            found.append(Mount(fields[2], _name(fields[3]), _name(fields[4])))
    return tuple(found)


def _name(field: bytes) -> str:
    """The field with its octal escapes (blanks, line ends, backslashes) decoded, as os.fsdecode returns it."""
    first, *rest = field.split(b"\\")
    whole = first + b"".join(bytes([int(part[:3], 8) & 0xFF]) + part[3:] for part in rest)
    return whole.decode("utf-8", "surrogateescape")


def other_names(path: str, mounts: Sequence[Mount]) -> Iterator[tuple[str, str]]:
    """Names that may lead to *path* or to something in it, each with the name below *path* that it would stand for. The
    caller checks whether they do: another mount may cover them.
    """
    holder = None
    for mount in mounts:
        if is_within(path, mount.point) and (holder is None or len(mount.point) >= len(holder.point)):
            holder = mount  # of several mounts at one point, the last one is on top
    if holder is None:
        return
    inside = _joined(holder.root, _below(path, holder.point))
    for mount in mounts:
        if mount.device != holder.device:
            continue
        if is_within(inside, mount.root):
            name, known = _joined(mount.point, _below(inside, mount.root)), path
        elif is_within(mount.root, inside):
            name, known = mount.point, _joined(path, _below(mount.root, inside))
        else:
            continue
        if not is_within(name, path):
            yield name, known


def _below(path: str, folder: str) -> str:
    return path[len(folder.rstrip("/")) :]


def _joined(folder: str, rest: str) -> str:
    return (folder.rstrip("/") + rest).rstrip("/") or "/"
