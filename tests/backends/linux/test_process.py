"""Landlock on older kernels: rights that they do not know are left out, and the caller learns which ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[3] / "netsandbox/backends/linux/native"
# process.c, on a kernel that knows the rights of the first argument; prints whether it handles those of the others.
OLDER = """
#include <errno.h>
#define syscall older
#include "process.c"
#undef syscall
#include <stdio.h>

static uint64_t known;

long older(long number, ...)
{
    va_list arguments;
    const uint64_t *files;

    va_start(arguments, number);
    files = va_arg(arguments, const uint64_t *);
    va_end(arguments);
    if (number != SYS_landlock_create_ruleset)
        return 0;
    errno = EINVAL;
    return *files & ~known ? -1 : 9;
}

noreturn void fail(const char *step)
{
    printf("failed: %s\\n", step);
    exit(1);
}

int main(int argc, char **argv)
{
    known = strtoull(argv[1], NULL, 16);
    access_begin(0xFFFF, 0);
    for (int number = 2; number < argc; number++)
        printf("%d\\n", access_handles((uint32_t)strtoul(argv[number], NULL, 16)));
    return 0;
}
"""
HEADERS = "#define _GNU_SOURCE\n#include <stdarg.h>\n#include <stdlib.h>\n#include <stdnoreturn.h>\n"
CUT, DEVICE, READ = "4000", "8000", "4"


@pytest.fixture(scope="module")
def older(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("older")
    (folder / "older.c").write_text(HEADERS + OLDER)
    line = [compiler, "-w", "-I", str(NATIVE), "-o", str(folder / "older"), str(folder / "older.c")]
    subprocess.run(line, check=True)
    return folder / "older"


@pytest.mark.parametrize(
    ("known", "handled"),
    [("FFFF", "1 1 1"), ("7FFF", "1 0 1"), ("3FFF", "0 0 1"), ("1FFF", "0 0 1")],
    ids=["ABI 5", "ABI 3", "ABI 2", "ABI 1"],
)
def test_a_right_that_the_kernel_does_not_know_is_not_handled(older: Path, known: str, handled: str) -> None:
    done = subprocess.run([older, known, CUT, DEVICE, READ], capture_output=True, text=True, check=True)
    assert done.stdout.split() == handled.split()


def test_without_landlock_the_step_fails(older: Path) -> None:
    done = subprocess.run([older, "0"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "failed: Landlock\n")
