"""What both Linux backends use: the filter and its trapped calls, what a session sees of the files, its limits."""
