#!python
from netsandbox.cli.main import main

main()
