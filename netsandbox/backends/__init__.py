"""What confines a session: one folder for each mechanism of a system."""
