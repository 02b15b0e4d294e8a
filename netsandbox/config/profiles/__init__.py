"""Profiles: named sets of settings for a tool, a language or a mode, which are layers below and above the user's
files."""
