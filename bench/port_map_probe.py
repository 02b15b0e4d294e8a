"""Creates a port map as the supervisor does; runs on the installed product.

Usage: port_map_probe.py PATH STRATEGY DEVICE BASE COUNT [PORT=ASKED…]
"""

from __future__ import annotations

import sys

from netsandbox_interpose import _native
from netsandbox_portmap.port_map import PortMap

DOORS = (53, 1008, 1011)  # portmap/netsandbox_portmap/__init__.py


def main() -> None:
    path, strategy, device, base, count, *pairs = sys.argv[1:]
    table = PortMap.create(
        _native,
        path,
        strategy=int(strategy),
        device=device,
        window_base=int(base),
        window_count=int(count),
        door=DOORS[-1],
        passing=DOORS,
    )
    for pair in pairs:
        port, _, asked = pair.partition("=")
        table.set(int(port), int(asked))
    table.close()


if __name__ == "__main__":
    main()
