"""The operations that a profile can name, each with its parent. Pure.

A rule on an operation covers all operations below it. The names come from published profiles; an unknown name is
reported and never ignored. The parent of `network-bind` is disputed, so its lineage depends on the model.
"""

from __future__ import annotations

DEFAULT = "default"

_CHILDREN: dict[str, str] = {
    DEFAULT: "appleevent-send authorization-right-obtain boot-arg-set darwin-notification-post device*"
    " distributed-notification-post dynamic-code-generation file* fs-quota* fs-rename fs-snapshot*"
    " generic-issue-extension hid-control iokit* ipc* job-creation load-unsigned-code lsopen mach*"
    " managed-preference-read network* nvram* opendirectory-user-modify process* pseudo-tty qtn-download qtn-sandbox"
    " qtn-user signal socket-ioctl socket-option* storage-class-map syscall* sysctl* system* user-preference*",
    "device*": "device-camera device-microphone",
    "file*": "file-chroot file-clone file-ioctl file-issue-extension file-link file-lock file-map-executable"
    " file-mknod file-mount file-mount-update file-read* file-revoke file-search file-test-existence file-unmount"
    " file-write*",
    "file-read*": "file-read-data file-read-metadata file-read-xattr",
    "file-write*": "file-write-acl file-write-create file-write-data file-write-finderinfo file-write-flags"
    " file-write-mode file-write-mount file-write-owner file-write-setugid file-write-times file-write-umount"
    " file-write-unlink file-write-unmount file-write-xattr",
    "fs-quota*": "fs-quota-get fs-quota-off fs-quota-on fs-quota-set fs-quota-stat fs-quota-sync",
    "fs-snapshot*": "fs-snapshot-create fs-snapshot-delete fs-snapshot-mount fs-snapshot-revert",
    "iokit*": "iokit-get-properties iokit-issue-extension iokit-open* iokit-set-properties",
    "iokit-open*": "iokit-open-service iokit-open-user-client",
    "ipc*": "ipc-posix* ipc-sysv*",
    "ipc-posix*": "ipc-posix-issue-extension ipc-posix-sem* ipc-posix-shm*",
    "ipc-posix-sem*": "ipc-posix-sem-create ipc-posix-sem-open ipc-posix-sem-post ipc-posix-sem-unlink"
    " ipc-posix-sem-wait",
    "ipc-posix-shm*": "ipc-posix-shm-read* ipc-posix-shm-write*",
    "ipc-posix-shm-read*": "ipc-posix-shm-read-data ipc-posix-shm-read-metadata",
    "ipc-posix-shm-write*": "ipc-posix-shm-write-create ipc-posix-shm-write-data ipc-posix-shm-write-unlink",
    "ipc-sysv*": "ipc-sysv-msg ipc-sysv-sem ipc-sysv-shm",
    "mach*": "mach-bootstrap mach-cross-domain-lookup mach-derive-port mach-host* mach-issue-extension"
    " mach-kernel-endpoint mach-lookup mach-message-send mach-per-user-lookup mach-priv* mach-register mach-task*",
    "mach-host*": "mach-host-exception-port-set mach-host-special-port-set",
    "mach-priv*": "mach-priv-host-port mach-priv-task-port",
    "mach-task*": "mach-task-exception-port-set mach-task-inspect mach-task-name mach-task-read"
    " mach-task-special-port-get mach-task-special-port-set",
    "network*": "network-inbound network-outbound",
    "network-inbound": "network-bind",
    "nvram*": "nvram-delete nvram-get nvram-set",
    "process*": "process-codesigning* process-exec* process-fork process-info* process-iopolicy*"
    " process-legacy-codesigning process-suspend-resume",
    "process-codesigning*": "process-codesigning-blob-get process-codesigning-cdhash-get"
    " process-codesigning-entitlements-blob-get process-codesigning-identity-get process-codesigning-status*"
    " process-codesigning-text-offset-get",
    "process-codesigning-status*": "process-codesigning-status-get process-codesigning-status-set",
    "process-exec*": "process-exec-interpreter process-exec-update-label",
    "process-info*": "process-info-codesignature process-info-dirtycontrol process-info-ledger process-info-listpids"
    " process-info-pidfdinfo process-info-pidfileportinfo process-info-pidinfo process-info-rusage"
    " process-info-setcontrol",
    "process-iopolicy*": "process-iopolicy-get process-iopolicy-set",
    "socket-option*": "socket-option-get socket-option-set",
    "syscall*": "syscall-mach syscall-mig syscall-unix",
    "sysctl*": "sysctl-read sysctl-write",
    "system*": "system-acct system-audit system-automount system-chud system-debug system-fcntl system-fsctl"
    " system-info system-kas-info system-kext* system-mac-label system-mac-syscall system-memorystatus-control"
    " system-necp-client-action system-nfssvc system-package-check system-privilege system-reboot system-sched"
    " system-set-time system-socket system-suspend-resume system-swap",
    "system-kext*": "system-kext-load system-kext-query system-kext-unload",
    "user-preference*": "user-preference-read user-preference-write",
}
ALIASES = {
    "iokit-open": "iokit-open*",
    "ipc-posix-sem": "ipc-posix-sem*",
    "ipc-posix-shm": "ipc-posix-shm*",
    "process-exec": "process-exec*",
}
PARENTS = {child: parent for parent, children in _CHILDREN.items() for child in children.split()}
KNOWN = frozenset(PARENTS) | {DEFAULT} | frozenset(ALIASES)


# Common errors of published profiles; no profile with them loads.
_MEANT = {"file-execute": "process-exec*", "file-read-write*": "file-read* file-write*"}


def nearest(name: str) -> str:
    """The known operation that *name* may be a misspelling of; empty if none."""
    from difflib import get_close_matches  # slow to import, and needed only for an error

    return _MEANT.get(name) or next(iter(get_close_matches(name, sorted(PARENTS), n=1, cutoff=0.8)), "")


def canonical(name: str) -> str:
    """The main name of an operation that has two."""
    return ALIASES.get(name, name)


def lineage(name: str, *, bind_under_inbound: bool = True) -> tuple[str, ...]:
    """The operation, its parent, and so on up to `default`."""
    line = [canonical(name)]
    while line[-1] != DEFAULT:
        alone = line[-1] == "network-bind" and not bind_under_inbound
        line.append("network*" if alone else PARENTS[line[-1]])
    return tuple(line)


def covers(upper: str, lower: str) -> bool:
    """Whether a rule on *upper* covers *lower*, in the model with the longer lineage."""
    return canonical(upper) in lineage(lower)


def family(name: str) -> str:
    """The operation just below `default` that *name* belongs to."""
    line = lineage(name)
    return line[-2] if len(line) > 1 else DEFAULT
