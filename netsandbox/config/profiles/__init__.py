"""Profiles: named sets of settings for a tool, a language or a mode, stacked below and above the user's own files."""
