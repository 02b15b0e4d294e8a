"""The resolver door: strict DNS parsing, synthetic addresses, a tunnel guard, and lookups on the host's side."""
