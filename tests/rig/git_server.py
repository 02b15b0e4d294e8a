"""A repository, and the answers of the HTTP server that git brings along."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any


def git(*words: str | Path, cwd: Path) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "safe.directory=*")
    subprocess.run(["git", *identity, *map(str, words)], cwd=cwd, check=True, capture_output=True)


def made_repository(short_tmp: Path) -> Path:
    """A bare repository with one commit; its folder is the root of a server."""
    work, bare = short_tmp / "work", short_tmp / "project.git"
    git("init", "-q", "-b", "main", work, cwd=short_tmp)
    (work / "file").write_text("from the repository\n")
    git("add", "file", cwd=work)
    git("commit", "-q", "-m", "first", cwd=work)
    git("clone", "-q", "--bare", work, bare, cwd=short_tmp)
    git("config", "http.receivepack", "true", cwd=bare)
    return bare


def smart_http(root: Path) -> Any:
    """A canary's answers by `git http-backend`, the server that git brings along."""

    def respond(method: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        path, _, query = target.partition("?")
        cgi = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
            "REMOTE_USER": "test",
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=cgi, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        return int(fields.pop("Status", "200").split()[0]), fields, content

    return respond
