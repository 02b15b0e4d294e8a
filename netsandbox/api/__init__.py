"""The Python API: `subprocess` with a sandbox. The names that users import are in the package `netsandbox` itself."""
