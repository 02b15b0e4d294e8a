"""Event loops, streams, listeners and the rules for imports: what every part of the supervisor runs on."""
