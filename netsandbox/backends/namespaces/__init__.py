"""The Linux backend `namespaces`."""
