"""`netsandbox` with the same view of files and no record of refused ones. Usage: unrecorded.py MAIN [ARGUMENT…]

The product has no such option. The measurement replaces the function that says which calls are observed.
"""

import sys

sys.argv[:] = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/netsandbox/")[0])
from netsandbox.runtime import imports  # noqa: E402 (the product's folder comes from the command line)

del sys.path[0]
imports.start(["run"])
from netsandbox.backends.namespaces.backend import NamespacesBackend  # noqa: E402
from netsandbox.cli.main import main  # noqa: E402

NamespacesBackend._file_calls = lambda _self: ((), None)
sys.exit(main())
