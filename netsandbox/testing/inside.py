"""The pytest inside of a session that runs one marked test: `python inside.py FOLDER`. It writes reports to a file."""

from __future__ import annotations

import json
import os
import pickle
import sys
from typing import IO, Any

REQUEST, REPORTS = "request", "reports"


def main(folder: str) -> int:
    with open(os.path.join(folder, REQUEST), "rb") as file:
        sys.path[:], options, node, worker = pickle.load(file)  # noqa: S301 (of the pytest that started us)
    from _pytest.config import Config

    config: Any = Config.fromdictargs(options, [node])
    config.workerinput = worker  # as in a worker of pytest-xdist, plugins leave the reports to the outer run
    with open(os.path.join(folder, REPORTS), "w", encoding="utf-8", buffering=1) as file:
        config.pluginmanager.register(Reporter(config, file))
        return int(config.hook.pytest_cmdline_main(config=config))


class Reporter:
    """A plugin that writes each report as a line."""

    def __init__(self, config: Any, file: IO[str]) -> None:
        self._config = config
        self._file = file

    def pytest_runtest_logreport(self, report: Any) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._file.write(f"{json.dumps(data)}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
