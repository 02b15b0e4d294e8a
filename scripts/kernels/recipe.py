"""What a machine is made of: packages, and the commands that fetch them. Pure."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence

PROGRAMS_RELEASE = "trixie"
PYTHON = "3.13"  # of that release
PROGRAMS = (
    *("base-files", "bash", "dash", "coreutils", "findutils", "grep", "sed", "util-linux", "mount", "libc-bin"),
    *("python3", "iproute2", "procps", "kmod", "apparmor", "git", "busybox-static"),
)
PLATFORMS = {"amd64": "manylinux_2_17_x86_64", "arm64": "manylinux_2_17_aarch64"}
ACCOUNTS = {
    "etc/passwd": (
        "root:x:0:0:root:/:/bin/bash\n"
        "guest:x:1001:1001::/home/guest:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "etc/group": "root:x:0:\nguest:x:1001:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    # Nothing answers there: a name that leaves the session would be seen to fail, not to hang.
    "etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
}


def mirror(policy: str) -> str | None:
    """The first archive in the output of `apt-cache policy` that is not the one of security updates."""
    for address, release in re.findall(r"(https?://\S+) (\S+)/main", policy):
        if "security" not in release:
            return str(address)
    return None


def mmdebstrap(
    release: str, architecture: str, packages: Sequence[str], *, address: str, hook: Sequence[str]
) -> list[str]:
    """Unpack packages without running their scripts, and hand the folder to *hook* (its last argument).

    So no program of the other architecture runs here, and no mount and no chroot is needed. mmdebstrap refuses this
    mode to root because scripts would run outside of a chroot; without scripts the check is skipped.
    """
    return [
        *("mmdebstrap", "--quiet", "--variant=extract", "--format=null"),
        *("--mode=chrootless", "--skip=check/chrootless"),
        f"--architectures={architecture}",
        f"--include={','.join(packages)}",
        f'--extract-hook={shlex.join(hook)} "$1"',
        *(release, "/dev/null", f"deb {address} {release} main"),
    ]


def make_disk(folder: str, disk: str, *, root: bool) -> list[str]:
    """An ordinary user's files become root's in the image: he is mapped to root while it is written."""
    as_root = [] if root else ["unshare", "--map-root-user"]
    return [*as_root, "mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-d", folder, disk, "3G"]


def fingerprint(*parts: object) -> str:
    """Changes when the machine must be built again."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()
