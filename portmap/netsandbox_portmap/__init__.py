"""Empty in this version; see ../README.md."""
