"""A session's own localhost: what it may bind, what of it appears on the host, which host ports it reaches."""
