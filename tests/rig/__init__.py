"""The test rig: real servers on loopback, the real command line, real accounts. tests/conftest.py loads it."""
