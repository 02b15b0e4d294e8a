"""Approvals at run time: the questions that wait for the user, and the answers. Only sessions that ask load it."""
