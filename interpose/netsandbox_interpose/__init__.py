"""The preload library for Python: `library` says where it is and injects it, `_native` is the same code to call."""
