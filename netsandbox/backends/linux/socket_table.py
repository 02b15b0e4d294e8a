"""Parses /proc/<pid>/net/tcp, udp and their IPv6 versions (pure): the sockets of that process's network.

An address is written as four-byte words in host order, in hex.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_ntop, inet_pton

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ROW = 256  # longer than any line of the table, counted from its address
MAPPED = "0000000000000000FFFF0000"
LISTENING = "0A"
_LOCAL, _STATE, _INODE = 1, 3, 9


def table_address(address: str, port: int) -> str:
    """An address in the table's form."""
    packed = inet_pton(AF_INET6 if ":" in address else AF_INET, address)
    words = [packed[start : start + 4][::-1].hex().upper() for start in range(0, len(packed), 4)]
    return f"{''.join(words)}:{port:04X}"


def read_address(text: str) -> tuple[str, int]:
    """The address and port of *text*, in the table's form."""
    words, _, port = text.partition(":")
    packed = b"".join(bytes.fromhex(words[start : start + 8])[::-1] for start in range(0, len(words), 8))
    return inet_ntop(AF_INET6 if len(packed) == 16 else AF_INET, packed), int(port, 16)


def find_inode(table: str, local: str) -> str | None:
    """The inode of the socket whose own address is *local*; `0` means that no process holds it any more."""
    mark, at = f": {local} ", -1
    while (at := table.find(mark, at + 1)) >= 0:  # not split into lines: a busy session has thousands
        words = table[at + 2 : at + ROW].split()
        if len(words) > 8 and words[8] != "0":
            return words[8]
    return None


def listeners(table: str) -> Iterator[tuple[str, int, str]]:
    """Address, port and inode of every listening socket."""
    for line in table.splitlines():
        if f" {LISTENING} " not in line:
            continue
        words = line.split()
        if len(words) > _INODE and words[_STATE] == LISTENING:
            try:
                address, port = read_address(words[_LOCAL])
            except (ValueError, OSError):  # not a line of this table
                continue
            yield address, port, words[_INODE]


def local_ports(table: str) -> set[int]:
    """The local ports of all sockets in the table."""
    found = set()
    for line in table.splitlines()[1:]:
        words = line.split(None, 2)
        if len(words) > _LOCAL:
            try:
                found.add(int(words[_LOCAL].rpartition(":")[2], 16))
            except ValueError:  # not a line of this table
                continue
    return found
