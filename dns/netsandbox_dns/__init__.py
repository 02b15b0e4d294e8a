"""The resolver door."""
