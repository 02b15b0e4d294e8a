"""Doors for TCP."""
