"""Which registries a tool uses, so that a profile allows these hosts and no others: `lookup.hosts`.

No registry is known here by name: where no file and no variable of the user names it, the tool is queried.
"""
