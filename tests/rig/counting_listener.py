"""A listening socket that counts whom it let in: a door that has not accepted yet looks as if all had left."""

from __future__ import annotations

import _socket
from typing import Any


class CountingListener(_socket.socket):
    """For the doors, which accept by `_accept`."""

    accepts = 0

    def _accept(self) -> tuple[int, Any]:
        accepted: tuple[int, Any] = super()._accept()  # type: ignore[misc]
        self.accepts += 1
        return accepted
