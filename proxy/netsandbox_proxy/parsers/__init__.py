"""Pure parsers: bytes in, values out; no sockets, no clock."""
