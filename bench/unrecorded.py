"""`netsandbox` with the same view of files and no record of refused ones. Usage: unrecorded.py MAIN [ARGUMENT…]

The product has no such option. The measurement replaces the function that says which calls are observed; if the product
has none of that name any more, the measurement ends with an error instead of comparing a thing with itself.
"""

import sys

sys.argv[:] = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/netsandbox/")[0])
from netsandbox.runtime import imports  # noqa: E402 (the product's folder comes from the command line)

del sys.path[0]
imports.start(["run"])
from netsandbox.backends.namespaces import file_calls  # noqa: E402
from netsandbox.cli.main import main  # noqa: E402

if not file_calls.observed_calls("x86_64"):
    sys.exit("unrecorded.py: the product observes no calls by this table any more")
file_calls.observed_calls = lambda _machine: {}
sys.exit(main())
