"""The backends, which confine a session: one folder for each mechanism."""
