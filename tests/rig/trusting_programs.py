"""Programs that speak TLS, each with a command that fetches something below a URL; what each one trusts is the table of
docs/inspection.md.

`URL` in a command stands for a folder of the server that is the program's own, so the server's list of requests tells
which programs came through.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.rig.account import Identity
from tests.rig.tools import Tools
from tests.rig.world import need

JAVA = """
import java.net.URL;

public class Get {
    public static void main(String[] words) throws Exception {
        new URL(words[0]).openStream().readAllBytes();
    }
}
"""
OPENSSL = """place=${1#https://}; place=${place%%/*}
printf "GET /openssl/x HTTP/1.1\\r\\nHost: $place\\r\\nConnection: close\\r\\n\\r\\n" |
    openssl s_client -quiet -verify_return_error -servername ${place%:*} -connect $place"""
GO = "GOPROXY=$1 GONOSUMDB='*' GOFLAGS=-mod=mod GOPATH=$PWD/go go list -m example.org/x@v1.0.0"
GRPC = """
import sys, grpc
channel = grpc.secure_channel(sys.argv[1].split("/")[2], grpc.ssl_channel_credentials())
call = channel.unary_unary("/grpcio/x", request_serializer=bytes, response_deserializer=bytes)
call(b"", timeout=10)
"""
CARGO = (
    'CARGO_REGISTRIES_OWN_INDEX="sparse+$1/" CARGO_HOME=$PWD/cargo CARGO_NET_RETRY=0 cargo search --registry own words'
)
UV = "$UV pip install --no-cache -q --target here --index-url $1 words"
AIOHTTP = """
import asyncio, sys, aiohttp
async def main():
    async with aiohttp.ClientSession() as session, session.get(sys.argv[1]) as answer:
        print(await answer.text())
asyncio.run(main())
"""


@dataclass(frozen=True)
class Program:
    """*by_file*: it trusts the list that is shown over the system's. *by_variable*: that of a variable."""

    name: str
    command: tuple[str, ...]
    by_file: bool
    by_variable: bool


def shell(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script, "sh", "URL")


def python(code: str) -> tuple[str, ...]:
    return ("PYTHON", "-c", code, "URL/x")


BOTH, FILE, VARIABLE = (True, True), (True, False), (False, True)
PROGRAMS = (
    Program("curl", ("curl", "-sS", "URL/x"), *BOTH),
    Program("wget", ("wget", "-qO-", "-t1", "URL/x"), *FILE),
    Program("git", ("git", "ls-remote", "URL/x"), *BOTH),
    Program("openssl", shell(OPENSSL), *BOTH),
    Program("Python ssl", python("import sys, urllib.request as u; u.urlopen(sys.argv[1])"), *BOTH),
    Program("requests", python("import sys, requests; requests.get(sys.argv[1])"), *VARIABLE),
    Program("httpx", python("import sys, httpx; httpx.get(sys.argv[1])"), *VARIABLE),
    Program("aiohttp", python(AIOHTTP), *BOTH),
    Program("grpcio", python(GRPC), *VARIABLE),
    Program("pip", ("PYTHON", "-m", "pip", "-q", "--retries=0", "download", "--index-url", "URL", "words"), *VARIABLE),
    Program("uv", shell(UV), *VARIABLE),
    Program("node", ("node", "-e", "require('https').get(process.argv[1], r => r.resume())", "URL/x"), *VARIABLE),
    Program("node fetch", ("node", "-e", "fetch(process.argv[1]).then(r => r.text())", "URL/x"), *VARIABLE),
    Program("npm", ("npm", "ping", "--fetch-retries=0", "--registry", "URL"), *VARIABLE),
    Program("pnpm", ("pnpm", "add", "--config.fetch-retries=0", "--registry", "URL", "words"), *VARIABLE),
    Program("Deno", ("deno", "eval", "await (await fetch(Deno.args[0])).text()", "URL/x"), *VARIABLE),
    Program("Go", shell(GO), *BOTH),
    Program("Cargo", shell(CARGO), *BOTH),
    Program("Ruby", ("ruby", "-ropen-uri", "-e", "URI.open(ARGV[0]).read", "URL/x"), *BOTH),
    Program("Java", ("java", "Get.java", "URL/x"), *BOTH),
)
UNCLEAR = {"pip"}  # Debian's and new ones read the system's list too
# Files of this machine may name a list of CAs.
OWN_FILES = {"PIP_CONFIG_FILE": "/dev/null", "NPM_CONFIG_GLOBALCONFIG": "/dev/null"}
NEEDED = {
    "curl": "curl",
    "wget": "wget",
    "git": "git",
    "openssl": "openssl",
    "node": "nodejs",
    "npm": "npm",
    "go": "golang-go",
    "ruby": "ruby",
    "javac": "default-jdk-headless",
}


def folder_of(program: Program) -> str:
    """Where its requests arrive."""
    return program.name.lower().replace(" ", "-")


def environment(tools: Tools, identity: Identity) -> dict[str, str]:
    """Variables by which an account finds all the programs; MODULES is for its PYTHONPATH, UV a program."""
    for name, package in NEEDED.items():
        need(name, package)
    folders = [tools.of_npm(package, identity) for package in ("pnpm@9", "deno@2")]
    modules = [tools.of_pip(package, identity) for package in ("requests", "httpx", "aiohttp", "grpcio")]
    rust = tools.rust(identity)
    uv = tools.program(Path(need("uv", "uv")), identity)
    path = ":".join((*folders, rust["PATH"]))
    return {**rust, **OWN_FILES, "PATH": path, "MODULES": ":".join(modules), "UV": uv}
