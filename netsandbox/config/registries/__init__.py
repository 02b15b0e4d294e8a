"""Finds the registries of a tool, so that a profile allows only these hosts: `lookup.hosts`.

The code has no list of registries. If no file and no variable of the user names one, the tool is queried.
"""
