"""Which registries a toolchain uses, so that a profile allows these hosts and no others.

`lookup.hosts` is the whole of it. No registry is known to this package: what no file and no variable says, the tool is
asked.
"""
