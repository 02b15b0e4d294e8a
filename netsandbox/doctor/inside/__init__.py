"""The probe program, which runs inside the session. It needs only the standard library and `netsandbox.system`."""


class Prevented(Exception):
    """An attempt achieved nothing, and there is no error number; the text is the reason in a few words."""
