"""Port windows, the shared-memory port map and publishing."""
