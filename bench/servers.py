"""The servers for measurements, and the peers that are compared with our doors, all on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import place
from processes import Server, await_port, free_port

ORIGIN = "origin.test"
BIG = 1 << 30  # bytes of /big
MIDDLE = 64 << 20  # bytes of /middle


class Origin:
    """nginx. `port` and, by TLS, `secure` serve files; `alert` answers every handshake with a TLS alert."""

    def __init__(self) -> None:
        self.folder = _folder("nginx")
        self.port, self.secure, self.alert = free_port(), free_port(), free_port()
        self.files = place.PROJECT / "files"  # a server in a session has them too
        self.files.mkdir()
        (self.files / "small").write_bytes(b"0123456789abcdef" * 4)
        with (self.files / "big").open("wb") as big:
            big.truncate(BIG)
        with (self.files / "middle").open("wb") as middle:
            middle.truncate(MIDDLE)
        self.certificate = self.folder / "certificate"
        _certificate(self.folder)
        settings = self.folder / "nginx.conf"
        settings.write_text(_nginx(self))
        self.server = _start("nginx", ["-c", str(settings), "-p", str(self.folder), "-e", str(self.folder / "errors")])
        _expect(self.port, "nginx", self.folder)


class Authority:
    """The name server that knows the origin."""

    def __init__(self) -> None:
        import socket

        self.port = free_port(socket.SOCK_DGRAM)
        program = str(place.BENCH / "authority.py")
        self.server = Server(
            [sys.executable, "-I", program, str(self.port)], place.environment(), place.WORK / "authority.log"
        )


class Squid:
    """A forward proxy that caches and logs nothing."""

    def __init__(self) -> None:
        folder = _folder("squid")
        folder.chmod(0o777)
        self.port = free_port()
        (folder / "hosts").write_text(f"127.0.0.1 {ORIGIN}\n")
        settings = folder / "squid.conf"
        settings.write_text(
            f"http_port 127.0.0.1:{self.port}\nhttp_access allow all\ncache deny all\naccess_log none\n"
            f"hosts_file {folder}/hosts\ncache_log {folder}/log\npid_filename {folder}/pid\ncoredump_dir {folder}\n"
            "cache_mem 8 MB\nnetdb_filename none\npinger_enable off\nmax_filedescriptors 8192\n"
            "shutdown_lifetime 1 seconds\n"
        )
        # The shared memory is named after the service: a separate name avoids conflicts with another squid.
        self._service = f"bench{os.getpid()}"
        self.server = _start("squid", ["-N", "-n", self._service, "-f", str(settings)])
        _expect(self.port, "squid", folder)

    def stop(self) -> None:
        """A squid that had to be killed leaves its shared memory."""
        self.server.stop()
        for segment in Path("/dev/shm").glob(f"{self._service}-*"):
            segment.unlink(missing_ok=True)


class Mitmdump:
    """mitmproxy as people run it: a CONNECT proxy that logs nothing and keeps no body."""

    def __init__(self, program: str, trust: Path) -> None:
        folder = _folder("mitmproxy")
        self.port = free_port()
        settings = {
            "confdir": folder,
            "ssl_verify_upstream_trusted_ca": trust,
            "stream_large_bodies": "1",
            "http2": "false",
            "connection_strategy": "lazy",
        }
        chosen = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        listen = ["--listen-host", "127.0.0.1", "--listen-port", str(self.port)]
        self.server = Server([program, "-q", *listen, *chosen], place.environment(), place.WORK / "mitmdump.log")
        _expect(self.port, "mitmdump", folder)


class Dnsmasq:
    """Answers `allowed.test` from its own table and says NXDOMAIN to `denied.test`."""

    def __init__(self) -> None:
        folder = _folder("dnsmasq")
        self.port = free_port()
        settings = folder / "dnsmasq.conf"
        settings.write_text(
            f"no-resolv\nno-hosts\nkeep-in-foreground\nport={self.port}\nlisten-address=127.0.0.1\nbind-interfaces\n"
            f"pid-file={folder}/pid\ncache-size=1000\naddress=/allowed.test/192.0.2.1\naddress=/denied.test/\nuser=\n"
        )
        self.server = _start("dnsmasq", ["-C", str(settings)])
        _expect(self.port, "dnsmasq", folder)


def nginx_settings(folder: Path, files: Path, listens: str, more: str = "") -> str:
    """One worker that serves *files*; what it writes goes into *folder*."""
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.getuid() == 0 else ""
    return f"""{user} worker_processes 1; daemon off; pid {folder}/pid; worker_rlimit_nofile 16384;
events {{ worker_connections 8192; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; keepalive_timeout 300; {temporary}
  server {{ {listens} root {files}; }}
  {more}
}}
"""


def _nginx(origin: Origin) -> str:
    folder = origin.folder
    listens = f"listen 127.0.0.1:{origin.port} backlog=4096; listen 127.0.0.1:{origin.secure} ssl backlog=4096;"
    certificate = f"ssl_certificate {folder}/certificate; ssl_certificate_key {folder}/key;"
    alert = f"server {{ listen 127.0.0.1:{origin.alert} ssl backlog=4096; ssl_reject_handshake on; }}"
    return nginx_settings(folder, origin.files, listens, f"{certificate}\n  {alert}")


def _certificate(folder: Path) -> None:
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(folder / "key")]
    subject = ["-subj", f"/CN={ORIGIN}", "-addext", f"subjectAltName=DNS:{ORIGIN}"]
    subject += ["-days", "2", "-out", str(folder / "certificate")]
    subprocess.run(["openssl", "req", "-x509", *key, *subject], check=True, capture_output=True)


def _folder(name: str) -> Path:
    folder = place.WORK / name
    folder.mkdir()
    return folder


def _start(program: str, arguments: list[str]) -> Server:
    path = place.find(program)
    if path is None:
        raise LookupError(f"{program} is not installed; bench/install-peers installs it")
    return Server([path, *arguments], place.environment(), place.WORK / f"{program}.log")


def _expect(port: int, program: str, folder: Path) -> None:
    if not await_port(port):
        raise LookupError(f"{program} did not start; see {place.WORK / program}.log and {folder}")
