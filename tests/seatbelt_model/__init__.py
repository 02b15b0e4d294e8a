"""The SBPL interpreter, its models and linter."""
