"""A session's inspection from its start: the engine's process, the CA that its programs trust, and the channel.

The engine starts before the command and makes the CA, for which the command waits, since programs read their list of
CAs when they start. It imports the rest when the command has started, so that it takes no time from the launch. The
command can write none of that (INV-8).
"""

from __future__ import annotations

import os
import sys

from netsandbox_proxy.inspect.installed import check_version, version_in
from netsandbox_proxy.inspect.process import EngineProcess

from netsandbox.backends.linux.engine_filter import engine_filter
from netsandbox.errors import HostError, UsageError
from netsandbox.frozen import copy_with
from netsandbox.paths import session_dir, working_folder
from netsandbox.policy.trust_places import BUNDLES, trust_variables
from netsandbox.runtime.host_file import read_host_file
from netsandbox.runtime.imports import ROOT, search_path
from netsandbox.runtime.inherited import write_notice
from netsandbox.session.java_key_store import found_stores, key_store
from netsandbox.session.npm_settings import npm_settings
from netsandbox.system import IS_MACOS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox_proxy.inspect.client import EngineClient
    from netsandbox_proxy.inspect.secret_places import Placeholders

    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.session_secrets import SessionSecrets
    from netsandbox.session.har_recorder import HarRecorder
    from netsandbox.settings import Command, RunSettings

NO_INSPECTION = "inspection needs seccomp, which macOS does not have; leave rules for requests out"
NAME, JAVA_NAME = "ca-bundle.pem", "ca-bundle.jks"
LOADED = (  # after the command has started nothing more is imported
    "netsandbox.audit.requests",
    "netsandbox.policy.redaction",
    "netsandbox.session.request_gate",
    "netsandbox_proxy.inspect.client",
    "netsandbox_proxy.inspect.request_check",
    "netsandbox_proxy.inspect_stage",
    "netsandbox_proxy.plain_request",
)


class SessionInspection:
    """*environment* is the command's: its SSL_CERT_FILE names CAs that the user trusts besides the system's. *har* gets
    the requests, if the user wants them in a file."""

    def __init__(
        self,
        session: str,
        environment: Mapping[bytes, bytes],
        har: HarRecorder | None = None,
        secrets: SessionSecrets | None = None,
    ) -> None:
        paths = import_folders()
        self._secrets = secrets
        self.placeholders: Placeholders | None = None  # None: the session has no secrets
        if secrets is not None:
            from netsandbox_proxy.inspect.secret_places import Placeholders

            self.placeholders = Placeholders(secrets.placeholders)
        self.places = tuple(dict.fromkeys(os.path.realpath(path) for path in BUNDLES if os.path.isfile(path)))
        if not self.places:
            raise HostError(f"no list of CAs is at {', '.join(BUNDLES)}; install ca-certificates")
        self._filter = engine_filter(os.uname().machine)
        self._trust = read_host_file(self.places[0]) + _user_trust(environment)
        # Where programs find the bundle: in the session's view it lies over the system's.
        npm = npm_settings(environment, os.fsencode(working_folder() or "/"))
        self.variables = trust_variables(os.fsencode(self.places[0]), environment, npm)
        self.bundle = os.path.join(session_dir(session), NAME)
        os.makedirs(os.path.dirname(self.bundle), 0o700, exist_ok=True)
        _write(self.bundle, self._trust)
        self.java_places = found_stores(environment)
        self.key_store = os.path.join(session_dir(session), JAVA_NAME)
        if self.java_places:
            _write(self.key_store, b"")
        self._process = EngineProcess(session, paths)
        self._client: EngineClient | None = None
        self.har = har

    def load(self) -> None:
        """Import what is needed later, while the engine makes the CA."""
        for name in (*LOADED, *(("hashlib",) if self.java_places else ())):
            __import__(name)

    def finish(self) -> None:
        """Add the session's CA to the lists. The command starts after this, and the engine has had the time in which
        the kernel made the sandbox."""
        trust = self._trust + b"\n" + self._process.authority().encode("ascii")
        _write(self.bundle, trust)
        if self.java_places:
            _write(self.key_store, key_store(trust))

    def open(self, loop: Loop, idle: int) -> EngineClient:
        from netsandbox_proxy.inspect.client import EngineClient, WorkerSettings

        trust = os.memfd_create("trust", os.MFD_CLOEXEC)
        os.write(trust, self._trust)
        os.lseek(trust, 0, os.SEEK_SET)
        captured = None if self.har is None else self.har.bodies
        settings = WorkerSettings(self._filter, trust, idle, captured=captured, secrets=self._secrets)
        self._client = EngineClient(loop, self._process, settings)
        self._process.proceed()
        return self._client

    def close(self, stderr: int) -> None:
        """*stderr* gets a notice if the HAR file is not whole."""
        if self._client is not None:
            self._client.close()
        self._process.close()
        for path in (self.bundle, self.key_store):
            try:
                os.unlink(path)
            except OSError:
                pass
        missing = "" if self.har is None else self.har.close()
        if missing:
            write_notice(stderr, missing)


def start_inspection(
    session: str, settings: RunSettings, command: Command
) -> tuple[SessionInspection, RunSettings, Command]:
    """Start the engine; the command gets the variables by which programs trust its CA."""
    secrets = settings.secrets
    har = None
    if settings.har is not None:
        from netsandbox.session.har_recorder import HarRecorder

        version = sys.modules["netsandbox"].__version__  # not imported: the package stands above its sessions
        har = HarRecorder(settings.har, session, version, settings.har_bodies)
    made = SessionInspection(session, command.environment, har, secrets)
    java = (made.key_store, made.java_places) if made.java_places else None
    settings = copy_with(settings, ca_bundle=(made.bundle, made.places), java_trust=java)
    given = command.environment if secrets is None else secrets.environment(command.environment)
    return made, settings, copy_with(command, environment={**given, **made.variables})


def import_folders() -> list[str]:
    """Where the engine imports from; `UsageError` where it cannot work."""
    if IS_MACOS:
        raise UsageError(NO_INSPECTION)
    # Not every folder of `sys.path`: that of a script, or the working one, is the command's to write.
    paths = [*search_path(ROOT, sys.executable), *(path for path in sys.path if path.endswith("-packages"))]
    check_version(version_in(paths))
    return [path for path in dict.fromkeys(paths) if os.path.isdir(path)]


def _user_trust(environment: Mapping[bytes, bytes]) -> bytes:
    named = environment.get(b"SSL_CERT_FILE", b"")
    if not named:
        return b""
    try:
        return b"\n" + read_host_file(os.fsdecode(named))
    except OSError as error:
        raise UsageError(f"SSL_CERT_FILE: {os.fsdecode(named)!a}: {error.strerror}; correct or unset it") from None


def _write(path: str, data: bytes) -> None:
    """In place: the session's view may show this file already."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with open(descriptor, "wb") as file:
        file.write(data)
