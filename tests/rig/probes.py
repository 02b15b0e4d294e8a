"""Programs made for the tests: C probes, dynamic and static, and a static Go client that knows no proxy variables."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Probe = Callable[..., Path]

GO_CLIENT = """
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	if os.Args[1] == "tcp" {
		conn, err := net.DialTimeout("tcp", os.Args[2], 10*time.Second)
		check(err)
		fmt.Fprint(conn, os.Args[3])
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(os.Stdout, conn)
		return
	}
	client := http.Client{Transport: &http.Transport{Proxy: nil}, Timeout: 10 * time.Second}
	response, err := client.Get(os.Args[1])
	check(err)
	fmt.Println(response.StatusCode)
	io.Copy(os.Stdout, response.Body)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
"""


@pytest.fixture(scope="session")
def compiler() -> str:
    """The C compiler of this machine."""
    names = (os.environ.get("CC"), "cc", "gcc", "clang")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no C compiler (package gcc with libc6-dev)")
    return found


@pytest.fixture(scope="session")
def probe(workshop: Path, compiler: str) -> Probe:
    """probe(name, source, static=False, flags=()) -> the program; compiled once per session."""
    folder = workshop / "probes"
    folder.mkdir(mode=0o755)

    def build(name: str, source: str, *, static: bool = False, flags: tuple[str, ...] = ()) -> Path:
        link = ("-static",) if static else ()
        key = hashlib.sha256(repr((source, link, flags)).encode()).hexdigest()[:12]
        program = folder / f"{name}-{key}"
        if program.exists():
            return program
        file = program.with_suffix(".c")
        file.write_text(source)
        command = [compiler, "-std=gnu11", "-O1", "-Wall", "-pthread", *flags, *link, str(file), "-o", str(program)]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0 and static and "cannot find -lc" in made.stderr:
            pytest.skip("no static C library (package libc6-dev)")
        assert made.returncode == 0, made.stderr
        program.chmod(0o755)
        return program

    return build


@pytest.fixture(scope="session")
def go_static(workshop: Path) -> Path:
    """A static Go client: `client URL` prints status and body, `client tcp HOST:PORT DATA` prints the answer."""
    if shutil.which("go") is None:
        pytest.skip("go is missing (package golang-go)")
    folder = workshop / "go"
    folder.mkdir(mode=0o755)
    (folder / "main.go").write_text(GO_CLIENT)
    cache = os.environ.get("GOCACHE", str(Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "go-build"))
    settings: dict[str, Any] = {"CGO_ENABLED": "0", "GO111MODULE": "off", "GOFLAGS": "", "GOCACHE": cache}
    command = ["go", "build", "-o", str(folder / "client"), "main.go"]
    made = subprocess.run(
        command, cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=300
    )
    assert made.returncode == 0, made.stderr
    (folder / "client").chmod(0o755)
    return folder / "client"
