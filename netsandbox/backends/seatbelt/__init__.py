"""The macOS backend: Seatbelt is the boundary, doors on the shared loopback are the way out, a token opens them."""
