"""Ports of the host that stand for ports of a session; see ../README.md."""
