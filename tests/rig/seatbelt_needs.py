"""What ordinary programs need of a Mac, by the rules of a session's profile, and what each must not open with it."""

from __future__ import annotations

from tests.rig.seatbelt_promises import APP, HOME, Promise, named, target
from tests.seatbelt_model.request import Request, file, lookup

_PTY = {"extension": "com.apple.sandbox.pty"}
_STRANGER = {"extension": None}


def _each(path: str, *operations: str) -> tuple[Request, ...]:
    return tuple(file(operation, path) for operation in operations)


USED = ("file-read-data", "file-write-data", "file-ioctl")  # what is done with a device
NEEDS = (
    Promise(
        "processes",
        allowed=(
            target("process-info-pidinfo", "self"),
            target("mach-task-name", "self"),
            target("mach-task-name", "same-sandbox"),
            named("ipc-posix-shm-read-data", "ipc-posix-name", "apple.shm.notification_center"),
            named("user-preference-read", "preference-domain", "kCFPreferencesAnyApplication"),
        ),
        denied=(
            target("process-suspend-resume", "same-sandbox"),
            target("mach-priv-host-port", "same-sandbox"),
            target("mach-task-special-port-set", "same-sandbox"),
            named("ipc-posix-shm-write-data", "ipc-posix-name", "apple.shm.notification_center"),
            named("user-preference-read", "preference-domain", "com.apple.mail"),
            named("user-preference-write", "preference-domain", "kCFPreferencesAnyApplication"),
        ),
        changes=(),
    ),
    Promise(
        "facts",
        allowed=(named("sysctl-read", "sysctl-name", "kern.osrelease"),),
        denied=(
            named("sysctl-read", "sysctl-name", "kern.bootargs"),
            named("sysctl-write", "sysctl-name", "kern.osrelease"),
            named("sysctl-read", "sysctl-name", "kern.grade_cputype"),
        ),
        changes=(),
    ),
    Promise(
        "devices",
        allowed=(
            *(request for name in ("null", "zero", "random", "urandom") for request in _each(f"/dev/{name}", *USED)),
            *(request for name in ("stdin", "stdout", "stderr", "tty") for request in _each(f"/dev/{name}", *USED)),
            *_each("/dev/fd/1", *USED),
            *_each("/dev/dtracehelper", *USED),
            *_each("/dev/autofs_nowait", "file-read-data"),
            *_each("/dev/ptmx", *USED),
            Request("pseudo-tty"),
            Request("file-ioctl", path="/dev/ttys009", attributes=_PTY),
        ),
        denied=(
            *(
                file(operation, f"/dev/{name}")
                for name in (
                    "null",
                    "stdin",
                    "dtracehelper",
                    "autofs_nowait",
                    "ptmx",
                    "disk0",
                    "bpf0",
                    "mem",
                    "auditpipe",
                )
                for operation in ("file-write-unlink", "file-mount")
            ),
            *_each("/dev/autofs_nowait", "file-write-data", "file-ioctl"),
            *_each("/dev/disk0", *USED),
            *_each("/dev/bpf0", *USED),
            Request("file-ioctl", path="/dev/ttys009", attributes=_STRANGER),
            Request("file-write-unlink", path="/dev/ttys009", attributes=_PTY),
            Request("file-mount", path="/dev/ttys009", attributes=_PTY),
        ),
        changes=(),
    ),
    Promise(
        "the system's files",
        allowed=(
            *_each("/", "file-read-data"),
            *_each("/private/var", "file-read-metadata"),
            *_each("/Users", "file-read-metadata"),
            *_each("/Volumes", "file-read-metadata"),
            *_each("/private/var/folders/ab/cd", "file-read-metadata"),
            *_each("/private/var/select/sh", "file-read-data"),
            *_each("/private/var/db/timezone/tz/x", "file-read-data"),
            *_each("/private/var/db/xcode_select_link", "file-read-data"),
            *_each("/private/etc/ssl/cert.pem", "file-read-data"),
            *_each("/private/etc/hosts", "file-read-data"),
            *_each("/private/etc/resolv.conf", "file-read-data"),
            *_each("/Library/Preferences/com.apple.networkd.plist", "file-read-data"),
            *_each(f"{HOME}/.CFUserTextEncoding", "file-read-data"),
            *_each("/opt/homebrew/bin/node", "file-read-data", "process-exec*", "file-map-executable"),
            *_each("/usr/local/bin/node", "file-read-data", "process-exec*"),
            *_each("/Library/Developer/CommandLineTools/usr/bin/git", "process-exec*"),
            *_each("/Applications/Xcode.app/Contents/Developer/usr/bin/git", "process-exec*"),
            *(
                file("process-exec*", f"{HOME}/{name}")
                for name in (
                    *(".nvm/versions/node/v22/bin/node", ".pyenv/shims/python", ".cargo/bin/cargo", ".volta/bin/node"),
                    *(".rustup/toolchains/stable/bin/rustc", "go/bin/gopls", ".bun/bin/bun", ".local/bin/uv"),
                    *(".local/share/uv/tools/ruff/bin/ruff", ".rbenv/shims/ruby", ".deno/bin/deno", ".asdf/shims/node"),
                    *(".local/share/mise/installs/node/bin/node", ".sdkman/candidates/java/current/bin/java"),
                )
            ),
        ),
        denied=(
            *_each("/", "file-write-create", "file-mount", "file-link"),
            *_each("/private/var", "file-read-data", "file-read-xattr"),
            *_each("/Users/you", "file-read-metadata", "file-read-data"),
            *_each("/private/etc/sudoers", "file-read-metadata", "file-read-data"),
            *_each("/private/var/select/sh", "file-write-data", "file-link"),
            *_each("/private/etc/hosts", "file-write-data", "file-link"),
            *_each("/Library/Preferences/com.apple.networkd.plist", "file-write-data", "file-link"),
            *_each("/usr/local/bin/node", "file-write-data", "file-link"),
            *_each("/Volumes/disk/tool", "process-exec*"),
            *_each("/Users/you/tool", "process-exec*", "process-exec-interpreter"),
        ),
        changes=(),
    ),
    Promise(
        "the project's files",
        allowed=(*_each(f"{APP}/x", "file-write-mode", "file-write-xattr", "file-map-executable"),),
        denied=(*_each(f"{APP}/x", "file-mknod", "file-link", "file-mount", "file-chroot"),),
        changes=(),
    ),
    Promise(
        "services",
        allowed=(lookup("com.apple.logd"), lookup("com.apple.bsd.dirhelper")),
        denied=(lookup("com.apple.any"), Request("mach-register", attributes={"global-name": "com.apple.logd"})),
        changes=(),
    ),
)
