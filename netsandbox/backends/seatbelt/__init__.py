"""The macOS backend: Seatbelt is the boundary, and doors on the shared loopback, which need a token, the way out."""
