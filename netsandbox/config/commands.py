"""What the name of the command means: it selects a profile, or it is an agent that would start a sandbox in ours.

Only a bare name on the command line selects a profile, as `npx` in an empty folder: the user has typed it, while a path
may lead into the project; `python -m pip` is pip. What a shell or a script runs is not examined. Every launch loads
this module.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NAMES = {
    "bun": "bun bunx",
    "go": "go",
    "gradle": "gradle",
    "java": "mvn",
    "node": "npm npx",
    "pdm": "pdm",
    "pipenv": "pipenv",
    "pnpm": "pnpm pnpx",
    "poetry": "poetry",
    "python": "pip pip3 pipx",
    "ruby": "bundle gem",
    "rust": "cargo",
    "uv": "uv uvx",
    "yarn": "yarn yarnpkg",
}
# An agent's own sandbox cannot be made in a session, and it would blame the kernel. The arguments come first, so that
# those of the user win.
_WITHOUT_OWN_SANDBOX = {
    "claude": ("--settings", '{"sandbox":{"enabled":false}}'),
    "codex": ("-c", 'sandbox_mode="danger-full-access"'),
    "copilot": ("--no-sandbox",),
}
PROFILES = {name: profile for profile, names in _NAMES.items() for name in names.split()}


def selecting_name(command: Sequence[str] | None) -> str:
    """The name in *command* that selects a profile; empty if it selects none (pure)."""
    first, option, module, *_ = (*(command or ()), "", "", "")
    name = module if option == "-m" and first.rstrip("0123456789.") == "python" else first
    return name if name in PROFILES else ""


def without_own_sandbox(command: list[str], profiles: Iterable[str]) -> list[str]:
    """*command* with the arguments that keep an agent from starting its own sandbox, if its profile is used (pure)."""
    name = command[0].rpartition("/")[2] if command else ""
    if name not in _WITHOUT_OWN_SANDBOX or name not in profiles:
        return command
    return [command[0], *_WITHOUT_OWN_SANDBOX[name], *command[1:]]
