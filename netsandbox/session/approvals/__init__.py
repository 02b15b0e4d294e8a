"""Approvals at run time: what waits for the user's answer, and what was answered. Loaded by sessions that ask."""
