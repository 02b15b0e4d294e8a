"""The command line, as the program `netsandbox` starts it (cli/native/launcher.c): python -I -S netsandbox/__main__.py

`python -m netsandbox` finds this file by the environment: PYTHONPATH and the working directory may hold another package
of our name, and no code of ours can prevent that. It is meant for development; here it starts again, isolated.
This file is compiled at each start, so it holds no more than must be here.
"""

import sys

if sys.flags.isolated and sys.flags.no_site:
    from _frozen_importlib_external import SourceFileLoader

    # By its path, since the search for a first module would read the folders of the standard library.
    _loader = SourceFileLoader("netsandbox.runtime.imports", __file__.replace("__main__.py", "runtime/imports.py"))
    sys.modules[_loader.name] = _bundle = type(sys)(_loader.name)
    _bundle.__file__ = _loader.path
    _loader.exec_module(_bundle)
    _bundle.start(sys.argv[1:2])
    from netsandbox.cli.main import main

    main()
else:
    import os

    _kept = ["-B"] if sys.dont_write_bytecode else []
    if sys.pycache_prefix is not None:
        _kept += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    os.execv(sys.executable, [sys.executable, "-I", "-S", *_kept, os.path.abspath(__file__), *sys.argv[1:]])  # noqa: S606
