"""The pure parts of `make test-kernels`: cases, recipes, the initramfs, verdicts and the page. The run itself boots."""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import lzma
import re
import sys
import tarfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "scripts" / "kernels"
GUEST = SCRIPTS / "guest"
HELD = {"state": "ran", "status": 0, "message": "", "checks": {"exit-status": "", "dev-server": ""}}
UNBUILT = {"state": "unbuilt", "status": 2, "message": "netsandbox: unknown backend 'broker'"}
PROVEN = {"ok": True, "unproven": None, "probes": {"ok": 57, "skipped": 2}, "machine": {"limits": "note: none"}}
POLICY = """\
Package files:
 500 https://archive.example.com/debian-security bookworm-security/main amd64 Packages
 500 https://archive.example.com/debian bookworm/main amd64 Packages
     release v=12.11,o=Debian
"""

Module = Callable[[str], Any]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """`kernels("cases")` is scripts/kernels/cases.py; afterwards it is forgotten, for its names are everyday words."""
    monkeypatch.syspath_prepend(str(GUEST))
    monkeypatch.syspath_prepend(str(SCRIPTS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(SCRIPTS)):
            del sys.modules[name]


# The cases


def test_every_case_has_its_own_name_and_a_known_kernel(kernels: Module) -> None:
    cases = kernels("cases")
    names = [case.name for case in cases.CASES]
    assert len(set(names)) == len(names)
    assert {case.kernel for case in cases.CASES} == set(cases.KERNELS)
    assert all(case.name.startswith(f"{case.kernel}-") for case in cases.CASES)
    assert all("namespaces" in case.expected for case in cases.CASES)


def test_the_guest_knows_every_step_and_check_of_the_cases(kernels: Module) -> None:
    cases, prepare, smoke = kernels("cases"), kernels("prepare"), kernels("smoke")
    assert {step for case in cases.CASES for step in case.steps} == set(prepare.STEPS)
    assert {check for case in cases.CASES for check in case.checks} == set(smoke.EXTRA)


def test_some_cases_can_be_chosen_and_a_wrong_name_is_an_error(kernels: Module) -> None:
    cases = kernels("cases")
    assert [case.name for case in cases.chosen(["6.12-yama-3", "6.1-plain"])] == ["6.1-plain", "6.12-yama-3"]
    assert cases.chosen([]) == list(cases.CASES)
    with pytest.raises(SystemExit, match=r"unknown case 5\.4-plain; use some of: 6\.1-plain"):
        cases.chosen(["5.4-plain"])


# The machine


def test_the_archive_is_the_one_that_apt_uses_but_not_that_of_security_updates(kernels: Module) -> None:
    assert kernels("recipe").mirror(POLICY) == "https://archive.example.com/debian"
    assert kernels("recipe").mirror("Package files:\n 100 /var/lib/dpkg/status\n") is None


def test_packages_are_unpacked_and_none_of_their_scripts_runs(kernels: Module) -> None:
    command = kernels("recipe").mmdebstrap(
        "trixie", "arm64", ["a", "b"], address="https://archive.example.com", hook=["hook", "with space"]
    )
    assert {"--variant=extract", "--mode=chrootless", "--architectures=arm64", "--include=a,b"} <= set(command)
    assert "--extract-hook=hook 'with space' \"$1\"" in command
    assert command[-1] == "deb https://archive.example.com trixie main"


def test_the_files_of_an_ordinary_user_become_roots_on_the_disk(kernels: Module) -> None:
    make_disk = kernels("recipe").make_disk
    assert make_disk("folder", "disk", root=True)[0] == "mke2fs"
    assert make_disk("folder", "disk", root=False)[:3] == ["unshare", "--map-root-user", "mke2fs"]


def test_another_recipe_has_another_fingerprint(kernels: Module) -> None:
    fingerprint = kernels("recipe").fingerprint
    assert fingerprint(["a"], b"b") == fingerprint(["a"], b"b")
    assert len({fingerprint(["a"], b"b"), fingerprint(["ab"], b""), fingerprint(["a"], b"c")}) == 3


DEPENDENCIES = """\
kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz kernel/lib/crc16.ko.xz
kernel/fs/jbd2/jbd2.ko.xz:
kernel/lib/crc16.ko.xz:
kernel/drivers/block/virtio_blk.ko.xz: kernel/drivers/virtio/virtio-ring.ko.xz
"""


def test_modules_are_loaded_after_those_that_they_need(kernels: Module) -> None:
    order = kernels("initramfs").load_order(DEPENDENCIES, ["virtio_pci", "virtio_blk", "ext4", "crc16"])
    assert [kernels("initramfs").module_name(path) for path in order] == [
        *("virtio_ring", "virtio_blk", "crc16", "jbd2", "ext4"),
    ]


def unpacked(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """The mode and the data of each file of a cpio archive."""
    found, at = {}, 0
    while at < len(archive):
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[start : start + 8], 16) for start in range(at + 6, at + 110, 8)]
        name = archive[at + 110 : at + 109 + fields[11]].decode()
        data = (at + 110 + fields[11] + 3) & ~3
        found[name] = (fields[1], archive[data : data + fields[6]])
        at = (data + fields[6] + 3) & ~3
    return found


def test_the_initramfs_has_busybox_the_first_program_and_the_modules_in_order(kernels: Module, tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    for line in DEPENDENCIES.splitlines():
        path = modules / line.partition(":")[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(path.name.encode()))
    (modules / "kernel/drivers/virtio").mkdir()
    (modules / "kernel/drivers/virtio/virtio-ring.ko.xz").write_bytes(lzma.compress(b"ring"))
    (modules / "modules.dep").write_text(DEPENDENCIES)
    files = unpacked(kernels("initramfs").initramfs(b"busybox", b"#!/bin/sh\n", modules))
    assert files["init"] == (0o100755, b"#!/bin/sh\n")
    assert files["proc"] == (0o040755, b"")
    assert [name for name in files if name.startswith("modules/")] == [
        *("modules/00-virtio_ring.ko", "modules/01-virtio_blk.ko", "modules/02-crc16.ko"),
        *("modules/03-jbd2.ko", "modules/04-ext4.ko"),
    ]
    assert files["modules/00-virtio_ring.ko"][1] == b"ring"
    assert list(files)[-1] == "TRAILER!!!"


@pytest.mark.parametrize(
    ("architecture", "program", "console"),
    [("amd64", "qemu-system-x86_64", "ttyS0"), ("arm64", "qemu-system-aarch64", "ttyAMA0")],
)
def test_a_machine_has_its_three_disks_in_order_and_no_network(
    kernels: Module, architecture: str, program: str, console: str
) -> None:
    boot = kernels("boot")
    machine = boot.Machine(architecture, Path("/machines"), "trixie")
    command = boot.command(machine, ["lsm=yama"], Path("/case"))
    assert command[0] == program
    drives = [word.partition(",")[0] for flag, word in pairwise(command) if flag == "-drive"]
    assert drives == ["file=/machines/disk", "file=/case/payload", "file=/case/result"]
    assert "snapshot=on" in next(word for word in command if "/machines/disk" in word)
    assert command[command.index("-append") + 1].endswith(f"console={console} lsm=yama")
    assert "-nodefaults" in command
    assert not any("net" in word for word in command)


def test_a_result_is_read_up_to_the_first_zero_byte(kernels: Module) -> None:
    parsed = kernels("boot").parsed
    assert parsed(b'{"kernel": "6.1"}\n\0 older text\0') == {"kernel": "6.1"}
    assert parsed(b"\0" * 10) == {}
    assert parsed(b'{"kernel": \0')["broken"] == "the result cannot be read"


def test_the_guest_gets_the_product_its_programs_and_the_plan_but_no_expectations(
    kernels: Module, tmp_path: Path
) -> None:
    cases, product = kernels("cases"), kernels("product")
    prefix = tmp_path / "prefix"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "netsandbox").write_bytes(b"program")
    (case,) = cases.chosen(["6.12-yama-2"])
    product.pack(prefix, case, tmp_path / "payload")
    with tarfile.open(tmp_path / "payload") as archive:
        entries = {entry.name: entry for entry in archive}
        plan = json.load(archive.extractfile("kernel-test/plan.json") or io.BytesIO())
    assert {"netsandbox/bin/netsandbox", "kernel-test/prepare.py", "kernel-test/smoke.py"} < set(entries)
    assert {(entry.uid, entry.gid) for entry in entries.values()} == {(0, 0)}
    assert plan == {
        "sysctls": {"kernel.yama.ptrace_scope": "2"},
        "steps": [],
        "checks": [],
        "backends": ["namespaces", "broker"],
    }


# The verdicts


def result(**changed: Any) -> dict[str, Any]:
    seen = {"kernel": "6.12.1", "doctor": PROVEN, "backends": {"namespaces": HELD, "broker": UNBUILT}}
    return {**seen, **changed}


def plain(kernels: Module) -> Any:
    return kernels("cases").chosen(["6.12-plain"])[0]


def test_a_case_passes_if_all_that_is_built_does_what_is_expected(kernels: Module) -> None:
    verdict = kernels("verdict").judge(plain(kernels), result())
    assert verdict.status == "passed"
    assert verdict.line == (
        "6.12-plain             passed  6.12.1; doctor: 57 probes hold, 2 cannot be tried (notes: limits); "
        "namespaces ran, 2 of 2 checks held; broker not built yet"
    )


@pytest.mark.parametrize(
    ("changed", "trouble"),
    [
        ({"broken": "not done after 9 s"}, "not done after 9 s"),
        ({"backends": {"namespaces": HELD}}, "broker: not tried"),
        (
            {"backends": {"namespaces": {**HELD, "checks": {"denied-address": "1 accepted"}}, "broker": UNBUILT}},
            "namespaces: denied-address: 1 accepted",
        ),
        (
            {"backends": {"namespaces": {"state": "refused", "status": 1, "message": "no"}, "broker": UNBUILT}},
            "namespaces: did not run: no",
        ),
        ({"doctor": {**PROVEN, "ok": False, "unproven": "x missing"}}, "doctor: x missing"),
        (
            {"doctor": {**PROVEN, "not_holding": [{"probe": "raw", "happened": "it arrived", "status": "LEAK"}]}},
            "doctor: raw: it arrived, LEAK",
        ),
    ],
)
def test_a_case_fails_by_anything_else(kernels: Module, changed: dict[str, Any], trouble: str) -> None:
    verdict = kernels("verdict").judge(plain(kernels), result(**changed))
    assert (verdict.status, verdict.trouble) == ("FAILED", (trouble,))
    assert verdict.line.endswith(f"\n    {trouble}")


@pytest.mark.parametrize(
    ("seen", "trouble"),
    [
        ({"state": "refused", "status": 1, "message": "netsandbox: no Landlock here; boot with it"}, []),
        (HELD, ["ran, but should have refused"]),
        (
            {"state": "refused", "status": 1, "message": "netsandbox: no"},
            ["the message does not name Landlock: netsandbox: no"],
        ),
        (
            {"state": "refused", "status": 1, "message": "netsandbox: Landlock\nmore"},
            ["the message is not one line of netsandbox: netsandbox: Landlock\nmore"],
        ),
        (
            {"state": "refused", "status": 2, "message": "netsandbox: Landlock"},
            ["refused with status 2, not 1"],
        ),
        (UNBUILT, []),
    ],
)
def test_a_refusal_is_one_line_that_names_what_is_missing(
    kernels: Module, seen: dict[str, Any], trouble: list[str]
) -> None:
    expected = kernels("cases").refuses("Landlock")
    assert kernels("verdict").backend_trouble(expected, seen) == trouble


def test_a_case_is_skipped_if_the_guest_says_so_or_nothing_of_it_is_built(kernels: Module) -> None:
    judge = kernels("verdict").judge
    skipped = judge(plain(kernels), {"kernel": "6.12.1", "skipped": "this kernel has no x"})
    assert skipped.line == "6.12-plain             skipped  this kernel has no x"
    only = dataclasses.replace(plain(kernels), expected={"broker": kernels("cases").RUNS})
    assert judge(only, result(backends={"broker": UNBUILT})).status == "skipped"


def test_an_unproven_machine_is_no_failure_where_namespaces_must_refuse(kernels: Module) -> None:
    (case,) = kernels("cases").chosen(["6.12-max-userns-0"])
    refused = {"state": "refused", "status": 1, "message": "netsandbox: User namespaces: user.max_user_namespaces=0"}
    doctor = {"ok": False, "unproven": "user namespaces missing", "probes": {}, "machine": {}}
    seen = {"namespaces": refused, "broker": UNBUILT, "auto": UNBUILT}
    verdict = kernels("verdict").judge(case, result(doctor=doctor, backends=seen))
    assert (verdict.status, verdict.doctor) == ("passed", "not proven, user namespaces missing")


def test_the_last_line_has_the_totals(kernels: Module) -> None:
    verdict = kernels("verdict")
    found = [verdict.judge(plain(kernels), each) for each in (result(), result(broken="x"), result(), {"skipped": "y"})]
    assert verdict.totals(found) == "2 passed, 1 failed, 1 skipped"


# The page


def test_the_rows_of_a_run_replace_the_older_ones_and_keep_the_others(kernels: Module) -> None:
    page = kernels("page")
    verdict = kernels("verdict").judge(plain(kernels), result())
    old = "| `6.12-plain` | old |\n| `arm64-plain` | kept |\n| `6.0-gone` | gone |\n"
    made = page.written(f"before\n{page.BEGIN}{old}{page.END}after\n", [verdict])
    assert made == (
        f"before\n{page.BEGIN}\n{page.HEAD}"
        "| `6.12-plain` | as Debian 13 boots it | 6.12.1 | passed | 57 probes hold, 2 cannot be tried (notes: limits) "
        "| `namespaces` ran, 2 of 2 checks held; `broker` not built yet |\n"
        f"| `arm64-plain` | kept |\n\n{page.END}after\n"
    )
    with pytest.raises(SystemExit, match="lacks"):
        page.written("no markers", [verdict])


def test_a_cell_keeps_to_its_row(kernels: Module) -> None:
    page = kernels("page")
    verdict = kernels("verdict").judge(plain(kernels), result(broken="one | two\nthree"))
    assert page.row(verdict).count("\n") == 1
    assert "one \\| two three" in page.row(verdict)


def test_the_page_has_a_row_for_every_case(kernels: Module) -> None:
    text = (ROOT / "docs" / "kernels.md").read_text("utf-8")
    rows = re.findall(r"^\| `([^`]+)` \|", text.partition(kernels("page").BEGIN)[2], re.MULTILINE)
    assert rows == [case.name for case in kernels("cases").CASES]
