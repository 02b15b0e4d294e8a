"""The audit log: hash-chained JSON lines, written before the act."""
