"""Real servers, each with a port of its own and a page that tells who answers. Nothing is installed or fetched here."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.rig import ports
from tests.rig.account import Identity
from tests.rig.probes import Probe
from tests.rig.world import need

NODE = """
const http = require("http");
const server = http.createServer((request, response) => response.end(`page node ${request.socket.localPort}`));
server.listen(Number(process.argv[2]), () => console.log(`says ${server.address().port}`));
"""
CLUSTER = """
const cluster = require("cluster"), http = require("http");
if (cluster.isPrimary)
    for (let n = 0; n < 2; n++) cluster.fork();
else
    http.createServer((q, answer) => answer.end(`page cluster ${q.socket.localPort}`)).listen(Number(process.argv[2]));
"""
ASYNCIO = """
import asyncio, os, sys

async def serve(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    body = b"page asyncio %d" % writer.get_extra_info("sockname")[1]
    writer.write(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(serve, "localhost", int(sys.argv[1]), reuse_port=True)
    await server.serve_forever()

os.fork()
asyncio.run(main())
"""
NGINX = """
daemon off;
worker_processes 1;
error_log stderr;
pid FOLDER/nginx.pid;
USER
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    server {
        listen 127.0.0.1:@;
        listen [::1]:@;
        location / { return 200 "page nginx $server_port"; }
    }
}
"""
GO = """
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("says", listener.Addr().(*net.TCPAddr).Port)
	http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		fmt.Fprintf(w, "page %s %d", os.Args[1], own.Port)
	}))
}
"""
C = r"""
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int own_port(int fd)
{
    struct sockaddr_in own;
    socklen_t size = sizeof own;

    return getsockname(fd, (void *)&own, &size) ? -1 : ntohs(own.sin_port);
}

int main(int count, char **words)
{
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(count > 2 ? atoi(words[2]) : 0) };
    int yes = 1, listener = socket(AF_INET, SOCK_STREAM, 0);

    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (void *)&here, sizeof here) || listen(listener, 16)) {
        fprintf(stderr, "refused: %s\n", strerror(errno));
        return 1;
    }
    printf("says %d\n", own_port(listener));
    fflush(stdout);
    for (;;) {
        char request[4096], body[64];
        int client = accept(listener, NULL, NULL);

        if (client < 0)
            continue;
        if (read(client, request, sizeof request) > 0) {
            int size = snprintf(body, sizeof body, "page %s %d", words[1], own_port(client));
            dprintf(client, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", size, body);
        }
        close(client);
    }
}
"""


@dataclass(frozen=True)
class RealServer:
    """PORT in ARGV stands for the port, which is counted from the window's base where only its ports are allowed."""

    name: str
    kind: str
    port: int
    argv: tuple[str, ...]
    raw: bool = False  # makes its system calls itself, so that no library can rewrite them

    @property
    def page(self) -> str:
        return f"page {self.name}"

    def wanted(self, folder: Path, place: int | None) -> dict[str, Any]:
        """For the conductor; PLACE is the server's place in a window."""
        port = self.port if place is None else place
        return {
            "name": self.name,
            "kind": self.kind,
            "port": port,
            "in_window": place is not None,
            "argv": [word.replace("FOLDER", str(folder)) for word in self.argv],
            "folder": str(folder),
        }


class Workbench:
    """Makes servers ready for one account, once a test run."""

    def __init__(self, identity: Identity, folder: Path, probe: Probe, go: tuple[Path, Path]) -> None:
        self.identity = identity
        self.folder = folder
        self.probe = probe
        self.go_dynamic, self.go_static = go
        self._postgres: Path | None = None

    def servers(self, c_port: int) -> list[RealServer]:
        """C_PORT is what the static program in C asks for. The others ask for ports that are free here: a program of
        this machine that listens on all addresses also has the port on a session's device."""
        nginx = f"sed s/@/$0/ nginx.in >nginx.conf && exec {_nginx()}"
        port = ports.free_window(9)
        return [
            RealServer("node", "http", port, (need("node", "nodejs"), "server.js", "PORT")),
            RealServer("python", "http", port + 1, (self.identity.python, "-u", "-m", "http.server", "PORT")),
            RealServer("cluster", "http", port + 2, (need("node", "nodejs"), "cluster.js", "PORT")),
            RealServer("asyncio", "http", port + 3, (self.identity.python, "asyncio_server.py", "PORT")),
            RealServer("nginx", "http", port + 4, ("sh", "-c", nginx, "PORT")),
            RealServer("redis", "redis", port + 5, (need("redis-server", "redis-server"), *_redis())),
            RealServer("go", "http", port + 6, (str(self.go_dynamic), "go", "PORT"), raw=True),
            RealServer("go-static", "http", port + 7, (str(self.go_static), "go-static", "PORT"), raw=True),
            RealServer("c-static", "http", c_port, (str(self._c()), "c-static", "PORT"), raw=True),
            RealServer("postgres", "postgres", port + 8, (postgres_at("postgres"), "-D", "FOLDER/pg", *_settings())),
        ]

    def fill(self, folder: Path, *, ipv6: bool) -> None:
        """Puts into FOLDER what the servers need there; without IPV6 nginx is not told to listen on ::1 too."""
        (folder / "server.js").write_text(NODE)
        (folder / "cluster.js").write_text(CLUSTER)
        (folder / "asyncio_server.py").write_text(ASYNCIO)
        user = "user root root;" if self.identity.uid == 0 else ""
        config = NGINX if ipv6 else NGINX.replace("listen [::1]:@;", "")
        (folder / "nginx.in").write_text(config.replace("FOLDER", str(folder)).replace("USER", user))
        (folder / "page").write_text("page python")
        if self.identity.uid != 0:
            shutil.copytree(self._cluster(), folder / "pg")
        self._give(folder)

    def _c(self) -> Path:
        return self.probe("server", C, static=True)

    def _cluster(self) -> Path:
        if self._postgres is None:
            place = self.folder / "cluster"
            self._give(self.folder)
            initdb = [postgres_at("initdb"), "-N", "--auth=trust", "--username=tester", "--locale=C", "-D", place]
            account = self.identity.popen
            made = subprocess.run(
                initdb,
                capture_output=True,
                text=True,
                check=False,
                cwd=self.folder,
                timeout=120,
                **account,  # type: ignore[call-overload]
            )
            assert made.returncode == 0, made.stderr
            self._postgres = place
        return self._postgres

    def _give(self, folder: Path) -> None:
        if not self.identity.is_caller:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self.identity.uid, self.identity.gid)


def _nginx() -> str:
    return f"{need('nginx', 'nginx-light')} -e stderr -c $PWD/nginx.conf -p $PWD"


def _redis() -> tuple[str, ...]:
    quiet = ("--save", "", "--appendonly", "no", "--dir", "FOLDER")
    return ("--port", "PORT", "--bind", "127.0.0.1", "-::1", *quiet)


def _settings() -> tuple[str, ...]:
    settings = ("listen_addresses=localhost", "port=PORT", "unix_socket_directories=", "fsync=off", "max_connections=8")
    return tuple(word for setting in settings for word in ("-c", setting))


def postgres_at(program: str) -> str:
    """Debian keeps the server's programs out of the PATH, in a folder for each version."""
    found = shutil.which(program) or next(
        (str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), reverse=True)), None
    )
    if found is None:
        pytest.skip(f"{program} is missing (package postgresql)")
    return found


@pytest.fixture(scope="session")
def go_servers(workshop: Path) -> tuple[Path, Path]:
    """The same server linked dynamically (with cgo) and statically; both make their system calls themselves."""
    need("go", "golang-go")
    folder = workshop / "go-server"
    folder.mkdir(mode=0o755)
    (folder / "main.go").write_text(GO)
    cache = os.environ.get("GOCACHE", str(Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "go-build"))
    made = []
    for name, cgo in (("dynamic", "1"), ("static", "0")):
        settings = {"CGO_ENABLED": cgo, "GO111MODULE": "off", "GOFLAGS": "", "GOCACHE": cache}
        build = ["go", "build", "-o", name, "main.go"]
        done = subprocess.run(
            build, cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        (folder / name).chmod(0o755)
        made.append(folder / name)
    return made[0], made[1]


@pytest.fixture(scope="session")
def workbench(workshop: Path, probe: Probe, go_servers: tuple[Path, Path]) -> Any:
    """workbench(identity) -> the servers for that account."""
    made: dict[str, Workbench] = {}

    def of(identity: Identity) -> Workbench:
        if identity.name not in made:
            folder = workshop / f"servers-{identity.name}"
            folder.mkdir(mode=0o755)
            made[identity.name] = Workbench(identity, folder, probe, go_servers)
        return made[identity.name]

    return of
