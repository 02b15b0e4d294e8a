"""One session: the gate, its doors, approvals and the control protocol."""
