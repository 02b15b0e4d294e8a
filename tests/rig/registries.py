"""Small registries on loopback, one of each kind, as handlers of a canary: one package, whatever is asked for."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping

Reply = tuple[int, dict[str, str], bytes]
Handler = Callable[[str, str, dict[str, str], bytes], Reply]
PACKAGE, VERSION = "trial", "1.0.0"
MODULE = "modules.test/trial"


def pages(found: Mapping[str, tuple[str, bytes]]) -> Handler:
    """Answers with *found*, a type and bytes for each path."""

    def respond(method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        kind, data = found.get(target.partition("?")[0], ("", b""))
        return (200, {"Content-Type": kind}, data) if kind else (404, {}, b"")

    return respond


def npm(url: str) -> Handler:
    """*url* is the registry's own, without a slash at its end."""
    manifest = {"name": PACKAGE, "version": VERSION}
    data = packed({"package/package.json": json.dumps(manifest).encode()})
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"
    version = {**manifest, "dist": {"tarball": f"{url}/{PACKAGE}.tgz", "integrity": integrity}}
    document = {"name": PACKAGE, "dist-tags": {"latest": VERSION}, "versions": {VERSION: version}}
    return pages(
        {
            f"/{PACKAGE}": ("application/json", json.dumps(document).encode()),
            f"/{PACKAGE}.tgz": ("application/octet-stream", data),
        }
    )


def python_index() -> Handler:
    name = f"{PACKAGE}-{VERSION}-py3-none-any.whl"
    info = f"{PACKAGE}-{VERSION}.dist-info"
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{PACKAGE}.py", "ORIGIN = 'registry'\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    page = f'<!DOCTYPE html><a href="/files/{name}">{name}</a>'.encode()
    return pages(
        {
            f"/simple/{PACKAGE}/": ("text/html", page),
            f"/files/{name}": ("application/octet-stream", wheel.getvalue()),
        }
    )


def crates(url: str) -> Handler:
    files, data = crate_index(url)
    index = {f"/index/{name}": ("application/json", text) for name, text in files.items()}
    return pages({**index, f"/dl/{PACKAGE}/{VERSION}/download": ("application/octet-stream", data)})


def crate_index(url: str) -> tuple[dict[str, bytes], bytes]:
    """The files of an index of crates, which a git repository can hold too, and the crate."""
    manifest = f'[package]\nname = "{PACKAGE}"\nversion = "{VERSION}"\nedition = "2021"\n'.encode()
    root = f"{PACKAGE}-{VERSION}"
    data = packed({f"{root}/Cargo.toml": manifest, f"{root}/src/lib.rs": b""})
    line = {
        **{"name": PACKAGE, "vers": VERSION, "deps": [], "features": {}, "yanked": False},
        "cksum": hashlib.sha256(data).hexdigest(),
    }
    return {
        "config.json": json.dumps({"dl": f"{url}/dl"}).encode(),
        f"tr/ia/{PACKAGE}": json.dumps(line).encode(),
    }, data


def go_proxy() -> Handler:
    inside, version = f"{MODULE}@v{VERSION}", f"v{VERSION}"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(f"{inside}/go.mod", f"module {MODULE}\n")
        file.writestr(f"{inside}/trial.go", "package trial\n")
    return pages(
        {
            f"/{MODULE}/@v/list": ("text/plain", f"{version}\n".encode()),
            f"/{MODULE}/@v/{version}.info": ("application/json", json.dumps({"Version": version}).encode()),
            f"/{MODULE}/@v/{version}.mod": ("text/plain", f"module {MODULE}\n".encode()),
            f"/{MODULE}/@v/{version}.zip": ("application/zip", archive.getvalue()),
        }
    )


def packed(files: Mapping[str, bytes]) -> bytes:
    """The same bytes whenever it is made: an index has their digest."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), mtime=0)
