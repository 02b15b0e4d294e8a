"""The options about requests: `--allow-http`, `--deny-http`, `--inspect`, `--inspect-except`. `run_options` loads this
module if a host is inspected, so that other launches do not load the rules for requests."""

from __future__ import annotations

from netsandbox.policy.inspection import inspection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.config.file_settings import FileSettings
    from netsandbox.policy.inspection import Inspection
    from netsandbox.runtime.option_parser import Parsed
    from netsandbox.runtime.session_secrets import SessionSecrets


def inspection_of(
    parsed: Parsed,
    file: FileSettings | None,
    opening: FileSettings | None,
    secrets: SessionSecrets | None,
    ports: tuple[int, ...],
) -> Inspection | None:
    """*opening*: the settings that allow something."""

    def given(name: str) -> list[tuple[str, str]]:
        return [(text, f"--{name}") for text in parsed.all(name)]

    return inspection(
        [*(opening.allow_http if opening else ()), *given("allow-http")],
        [*(file.deny_http if file else ()), *given("deny-http")],
        [*(file.inspect if file else ()), *given("inspect"), *(secrets.hosts if secrets else ())],
        [*(file.inspect_except if file else ()), *given("inspect-except")],
        ports,
        records_query="record-query" in parsed.flags or (file is not None and file.record_query),
    )
