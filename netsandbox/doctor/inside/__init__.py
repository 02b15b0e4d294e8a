"""The probe program, which runs inside the session. It needs the standard library and `netsandbox.system` alone."""


class Prevented(Exception):
    """An attempt achieved nothing, and no error number says so; the text says why in a few words."""
