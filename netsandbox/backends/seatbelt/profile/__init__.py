"""Writes the Seatbelt profile of a session from its settings (docs/seatbelt-profile.md) and reads the refusals of the
kernel. Nothing is imported here, since the profile is on the path to exec.
"""
