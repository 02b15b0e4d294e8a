"""Builds the preload library for macOS on any system: both architectures in one file (`universal_binary`).

`python interpose/macos_library.py FILE` builds it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import universal_binary

SOURCES = Path(__file__).resolve().parent / "src"
NAME = "libnetsandbox_interpose.dylib"


def build(product: Path, sources: Path = SOURCES) -> Path:
    """The universal library at *product*."""
    return universal_binary.build(product, NAME, sources, _arguments(sources))


def compile_slice(architecture: str, sources: Path = SOURCES) -> bytes:
    """The library for one architecture."""
    return universal_binary.compile_slice(architecture, NAME, sources, _arguments(sources))


def _arguments(sources: Path) -> list[str]:
    # Names without folders, so that none of them can reach the product.
    return [*universal_binary.loadable(NAME), *sorted(source.name for source in sources.glob("*.c"))]


if __name__ == "__main__":
    build(Path(sys.argv[1]))
