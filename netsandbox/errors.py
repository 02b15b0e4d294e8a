"""Errors that end a command of ours. Each message states what happened and, after a semicolon, what to do next."""

from __future__ import annotations


class NetsandboxError(Exception):
    """Printed as `netsandbox: <text>`; `status` is the exit status."""

    status = 1


class UsageError(NetsandboxError):
    """A wrong option, pattern or configuration file: the command was never started."""

    status = 2


class HostError(NetsandboxError):
    """This machine does not offer what the sandbox needs; we never run unconfined instead."""


class BackendUnavailable(HostError):
    """This machine cannot make the sandbox of one backend; another one may be tried."""


class CommandError(NetsandboxError):
    """CMD could not be executed: 127 not found, 126 found but not executable."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status
