"""The wheel for Macs, made on any system: complete, installable on a Mac alone, the same bytes each time."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.rig import mac_wheel as wheels
from tests.rig.mac_wheel import HELPER, LIBRARY, MODULE

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="a Mac signs what it builds, so its wheel is another")

PACKAGES = {
    "netsandbox": "netsandbox",
    "netsandbox_proxy": "proxy/netsandbox_proxy",
    "netsandbox_dns": "dns/netsandbox_dns",
    "netsandbox_portmap": "portmap/netsandbox_portmap",
    "netsandbox_interpose": "interpose/netsandbox_interpose",
}
ELF, MACH_O, UNIVERSAL = b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"


@pytest.fixture(scope="module")
def content(mac_wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(mac_wheel) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def installed(mac_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip, told that this is a Mac, puts it."""
    target = tmp_path_factory.mktemp("installed")
    done = install(mac_wheel, target, "macosx_11_0_universal2")
    assert done.returncode == 0, done.stderr
    return target


def install(wheel: Path, target: Path, platform: str) -> subprocess.CompletedProcess[str]:
    choice = ["--platform", platform, "--only-binary=:all:", "--no-deps", "--no-index"]
    quiet = ["--disable-pip-version-check", "--no-compile", "--quiet"]
    command = [sys.executable, "-m", "pip", "install", *choice, *quiet, "--target", str(target), str(wheel)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_its_tags_say_every_mac_from_11_on_and_every_python_from_3_11_on(
    mac_wheel: Path, content: dict[str, bytes]
) -> None:
    assert mac_wheel.name.endswith("-cp311-abi3-macosx_11_0_universal2.whl")
    (told,) = (data.decode() for name, data in content.items() if name.endswith(".dist-info/WHEEL"))
    fields = Parser().parsestr(told)
    assert fields.get_all("Tag") == ["cp311-abi3-macosx_11_0_universal2"]
    assert fields["Root-Is-Purelib"] == "false"


def test_all_python_files_are_in_it_and_no_more(content: dict[str, bytes], mac_sources: Path) -> None:
    expected = {
        f"{package}/{file.relative_to(mac_sources / folder)}"
        for package, folder in PACKAGES.items()
        for file in (mac_sources / folder).rglob("*.py")
    }
    assert {name for name in content if name.endswith(".py")} == expected


def test_the_files_that_shells_and_man_read_are_in_it(content: dict[str, bytes], mac_sources: Path) -> None:
    folder = mac_sources / "netsandbox" / "shells" / "files"
    files = {f"netsandbox/shells/files/{file.relative_to(folder)}" for file in folder.rglob("*") if file.is_file()}
    assert "netsandbox/shells/files/zsh/.zshenv" in files
    assert files <= set(content)
    page = next(data for name, data in content.items() if name.endswith(".data/data/share/man/man1/netsandbox.1"))
    assert page == (mac_sources / "docs" / "netsandbox.1").read_bytes()


def test_what_is_compiled_is_for_macs_and_nothing_is_for_linux(content: dict[str, bytes]) -> None:
    assert {name for name, data in content.items() if data.startswith(UNIVERSAL)} == {
        *(HELPER, LIBRARY, MODULE),
        *(name for name in content if name.endswith(".data/scripts/netsandbox")),
    }
    assert [name for name, data in content.items() if data.startswith((ELF, MACH_O))] == []


def test_the_helper_and_the_launcher_are_programs(mac_wheel: Path) -> None:
    with zipfile.ZipFile(mac_wheel) as archive:
        programs = {entry.filename for entry in archive.infolist() if entry.external_attr >> 16 & 0o111}
    assert HELPER in programs
    assert [name for name in programs if name.endswith(".data/scripts/netsandbox")]


def test_its_record_has_each_file_with_its_hash_and_size(content: dict[str, bytes]) -> None:
    (record,) = (name for name in content if name.endswith(".dist-info/RECORD"))
    rows = {name: (digest, size) for name, digest, size in csv.reader(io.StringIO(content[record].decode()))}
    assert rows.pop(record) == ("", "")
    expected = {
        name: (
            f"sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()}",
            str(len(data)),
        )
        for name, data in content.items()
        if name != record
    }
    assert rows == expected


@pytest.mark.parametrize("platform", ["macosx_11_0_arm64", "macosx_14_0_x86_64"])
def test_pip_takes_it_for_macs_of_both_processors(mac_wheel: Path, tmp_path: Path, platform: str) -> None:
    assert install(mac_wheel, tmp_path, platform).returncode == 0


@pytest.mark.parametrize("platform", ["macosx_10_15_x86_64", "manylinux2014_x86_64"])
def test_pip_refuses_it_for_older_macs_and_other_systems(mac_wheel: Path, tmp_path: Path, platform: str) -> None:
    done = install(mac_wheel, tmp_path, platform)
    assert done.returncode != 0
    assert "not a supported wheel" in done.stderr


def test_an_install_has_the_parts_where_the_program_looks_for_them(installed: Path) -> None:
    for name in (HELPER, LIBRARY, MODULE):
        assert (installed / name).read_bytes().startswith(UNIVERSAL)
    assert os.access(installed / HELPER, os.X_OK)


@pytest.mark.usefixtures("private_home")
def test_its_python_runs_here_as_far_as_another_system_can(installed: Path, tmp_path: Path) -> None:
    """Everything but the compiled module is imported; the profile is printed by what was installed."""
    seatbelt = "netsandbox.backends.seatbelt"
    names = f"{seatbelt}.backend {seatbelt}.serving netsandbox_interpose.library netsandbox_portmap.port_map"
    check = f"import sys, {', '.join(names.split())}; print(netsandbox.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", check]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == f"{installed}/netsandbox/__init__.py\n", done.stderr
    start = "import sys; sys.argv[0] = 'netsandbox'; from netsandbox.cli.main import main; main()"
    command = [sys.executable, "-c", start, "run", "--dry-run", "--backend", "seatbelt", "--", "true"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "(deny default)" in done.stdout


def test_another_folder_and_an_empty_cache_give_the_same_bytes_and_the_products_for_linux_in_it_stay(
    mac_sources: Path, mac_wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the cache of what we compile is empty: building what the compiler brings with it takes most of a minute."""
    monkeypatch.setenv("ZIG_LOCAL_CACHE_DIR", str(tmp_path / "cache"))
    sources = wheels.copy_sources(tmp_path / "another folder", mac_sources)
    others = [
        sources / place for place in ("netsandbox/backends/namespaces/native/netsandbox-init", f"interpose/{MODULE}")
    ]
    for other in others:
        other.write_bytes(ELF)
    second = wheels.build(sources, tmp_path / "dist")
    assert any((tmp_path / "cache").iterdir()), "the compiler used that cache"
    assert second.read_bytes() == mac_wheel.read_bytes()
    assert all(other.read_bytes() == ELF for other in others)
