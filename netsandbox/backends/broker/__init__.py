"""The Linux backend for hosts and containers without user namespaces: seccomp user notification, Landlock, a broker."""
