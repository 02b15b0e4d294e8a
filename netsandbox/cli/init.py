"""`netsandbox init`: writes a first configuration file for this project, with the detected profiles."""

from __future__ import annotations

from collections.abc import Mapping

from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import print_text
from netsandbox.config.document import layer_of
from netsandbox.config.profiles.selection import detected_here
from netsandbox.errors import UsageError
from netsandbox.learn.project_text import ProjectText, project_file_path
from netsandbox.runtime.option_parser import FLAG, Option, parse
from netsandbox.text import single_line

OPTIONS = (
    Option("force", FLAG, "f", "", "replace an existing file"),
    Option("help", FLAG, "h", "", "this text"),
)
USAGE = """\
usage: netsandbox init [--force]

Write .netsandbox.toml for this project, with the detected profiles and the most common settings to fill in. An \
existing file is kept unless you add --force. The file opens nothing before `netsandbox trust`."""
NEXT = """\
{path} is written.
Next: read it, then `netsandbox trust` puts it into effect; it asks again whenever the file changes.
`netsandbox learn -- CMD` adds the hosts and paths that a command needs. `netsandbox explain` shows what holds."""
TEXT = """\
# What programs of this project may reach when they run under `netsandbox run`.
# It may close anything at once; what it opens counts after `netsandbox trust`.
# `netsandbox man` has every key. `netsandbox config validate` checks the file.

[sandbox]
{profiles}

[network]
# Hosts that are let through: "example.com", "*.example.com" for all below it, "example.com:8443".
# `netsandbox learn -- CMD` finds out which ones a command needs and adds them here.
allow_domains = [
]
# Hosts that are never let through, whatever other rules allow:
# deny_domains = ["telemetry.example.com"]

[localhost]
# Ports of this machine's own localhost that it may reach, such as a database:
# connect_host = [5432]

[filesystem]
# It sees the system, toolchains, this project and a private home; of your files nothing else. It writes this project.
# More that it sees, and more that it writes; * stands for any name, a folder with / at its end is made:
# allow_read = ["~/datasets/*/public"]
# allow_write = ["~/.local/share/mytool/"]
# What it may not read or change inside of that:
# deny_read = [".env"]
# deny_write = ["migrations"]

[shell]
# Variables that look like secrets are withheld from it, but for these:
# pass_env = ["NPM_TOKEN"]
"""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox init")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if parsed.command is not None or parsed.words:
        raise UsageError("init takes no words; go to the project's folder and write `netsandbox init`")
    project = ProjectText(project_file_path())
    try:
        if project.exists and "force" not in parsed.flags:
            raise UsageError(
                f"{project.path!a} is there already; edit it, or replace it with `netsandbox init --force`"
            )
        text = first_text(_found())
        layer_of(project.path, text.encode("ascii"))
        project.write(text)
    finally:
        project.close()
    print_text(NEXT.format(path=single_line(project.path)))
    return 0


def first_text(found: Mapping[str, str]) -> str:
    """*found*: the detected profiles, each with the file of the project that selects it (pure)."""
    if not found:
        profiles = (
            '# Profiles open what a tool needs; `netsandbox profile list` has them:\n# profiles = ["node", "git"]'
        )
    else:
        names = ", ".join(f'"{name}"' for name in found)
        why = ", ".join(f"{name} by {file}" for name, file in found.items())
        profiles = f"# Profiles open what a tool needs; `netsandbox profile list` has more. Found: {why}."
        profiles += f"\nprofiles = [{names}]"
    return TEXT.format(profiles=profiles)


def _found() -> dict[str, str]:
    return {name: file for name, file in detected_here().items() if file.isascii() and file.isprintable()}
