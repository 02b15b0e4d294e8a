"""C units of the product, compiled for a test: a library of some of them, and the layout of their structs."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig.probes import Probe
from tests.rig.workshop import ROOT

FOLDERS = tuple(ROOT / "netsandbox/backends" / name / "native" for name in ("broker", "linux"))
INCLUDES = tuple(f"-I{folder}" for folder in FOLDERS)
Layout = Callable[..., dict[str, int]]
Library = Callable[..., ctypes.CDLL]


@pytest.fixture(scope="session")
def layout(probe: Probe) -> Layout:
    """layout(headers, struct, *fields) -> its size, as `size`, and the offset of each field, as the compiler says."""

    def ask(headers: tuple[str, ...], struct: str, *fields: str) -> dict[str, int]:
        lines = [f'    printf("{name} %zu\\n", offsetof(struct {struct}, {name}));' for name in fields]
        lines.append(f'    printf("size %zu\\n", sizeof(struct {struct}));')
        included = "".join(f'#include "{name}"\n' for name in headers)
        source = f"#include <stddef.h>\n#include <stdio.h>\n{included}int main(void)\n{{\n" + "\n".join(lines) + "\n}\n"
        program = probe(f"layout-{struct}", source, flags=(*INCLUDES, "-D_GNU_SOURCE"))
        text = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        return {name: int(value) for name, value in (line.split() for line in text.splitlines())}

    return ask


@pytest.fixture(scope="session")
def library(workshop: Path, compiler: str) -> Library:
    """library(*paths) -> these units of the backends' native folders, loaded."""

    def load(*names: str) -> ctypes.CDLL:
        units = [str(next(folder / name for folder in FOLDERS if (folder / name).exists())) for name in names]
        made = workshop / f"units-{hashlib.sha256(repr(names).encode()).hexdigest()[:12]}.so"
        if not made.exists():
            flags = ("-std=gnu11", "-O1", "-Wall", "-Werror", "-D_GNU_SOURCE", "-shared", "-fPIC")
            subprocess.run([compiler, *flags, *INCLUDES, *units, "-o", str(made)], check=True)
        return ctypes.CDLL(str(made))

    return load
