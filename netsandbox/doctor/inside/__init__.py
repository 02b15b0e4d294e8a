"""The probe program: what runs inside the session. It uses nothing but the standard library."""
