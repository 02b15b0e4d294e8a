"""The examination by `netsandbox doctor`: checks of the machine, and probes from inside a session."""
