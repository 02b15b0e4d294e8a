"""What pytest loads in every run of an environment with netsandbox: options, a mark, and the way to the rest.

`--netsandbox` runs all tests in one session, and `@pytest.mark.netsandbox` a single test in one of its own. In both, a
pytest inside watches the denials (`denial_watch`) and fails the test that caused them.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

INSIDE = "NETSANDBOX_PYTEST"  # in a session of ours: the path of its denials
ALLOWED = "NETSANDBOX_PYTEST_ALLOW"  # and the hosts that the run or the mark allows

OF_SANDBOX = ("--netsandbox-allow", "--netsandbox-options")
MISTAKE = pytest.StashKey[str]()
ADVICE = "add --netsandbox to run all tests in a sandbox, or @pytest.mark.netsandbox to a test"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("netsandbox", "run tests in a sandbox (netsandbox)")
    group.addoption("--netsandbox", action="store_true", help="run all tests in a sandbox; one that reaches out fails")
    group.addoption("--netsandbox-allow", action="append", default=[], metavar="HOST", help="what tests may reach")
    group.addoption("--netsandbox-options", default="", metavar="OPTIONS", help="more options of `netsandbox run`")
    parser.addini("netsandbox_allow", "hosts that sandboxed tests may reach", type="linelist", default=[])
    parser.addini("netsandbox_options", "options of `netsandbox run` for sandboxed tests", type="args", default=[])


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before pytest captures the standard streams
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    chosen = early_config.known_args_namespace
    if chosen.netsandbox and INSIDE not in os.environ and not (chosen.help or chosen.version):
        from netsandbox.testing.whole_run import run_again

        run_again(early_config)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "netsandbox(allow=[HOST]): run in a sandbox; a test that reaches out fails")
    if INSIDE in os.environ:
        from netsandbox.testing.denial_watch import DenialWatch

        config.pluginmanager.register(DenialWatch(os.environ[INSIDE], os.environ.get(ALLOWED, "").split()))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Options of a sandbox that no test would run in are a mistake: the tests would reach out freely."""
    config = session.config
    given = [name for name in OF_SANDBOX if config.getoption(name)]
    is_sandboxed = INSIDE in os.environ or any(item.get_closest_marker("netsandbox") for item in session.items)
    if not given or not session.items or is_sandboxed:
        return
    text = f"netsandbox: {given[0]} is given without --netsandbox, and no test has the mark; {ADVICE}"
    if not hasattr(config, "workerinput"):
        raise pytest.UsageError(text)
    config.stash[MISTAKE] = text  # a worker of pytest-xdist that raises here would only crash


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    text = item.config.stash.get(MISTAKE, None)
    if text is not None:
        pytest.fail(text, pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    marker = item.get_closest_marker("netsandbox")
    if marker is None or INSIDE in os.environ:
        return None
    from netsandbox.testing.marked_test import run_marked

    run_marked(item, marker, nextitem)
    return True
