"""The policy: what may be reached, decided without I/O."""
