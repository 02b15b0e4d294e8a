"""Where the preload library is and how to inject it."""
