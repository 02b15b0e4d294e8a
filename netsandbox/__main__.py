"""`python -m netsandbox`."""

from netsandbox.cli.main import main

main()
