"""The rules for requests of the command line and of files."""

from __future__ import annotations

from netsandbox.cli import run
from netsandbox.cli.inspection_options import inspection_of
from netsandbox.config.file_settings import FileSettings
from netsandbox.policy.inspection import HttpRequest, Inspection
from netsandbox.runtime.option_parser import parse

FILE = FileSettings(
    allow_http=(("GET https://file.test/**", "file:1"),),
    deny_http=(("GET https://option.test/x", "file:2"),),
    inspect=(("seen.test", "file:3"),),
    record_query=True,
)


def made(words: list[str], file: FileSettings | None, opening: FileSettings | None) -> Inspection:
    found = inspection_of(parse(words, run.OPTIONS, "netsandbox run"), file, opening, None, (443,))
    assert found is not None
    return found


def allows(inspection: Inspection, host: str, target: str) -> bool:
    return inspection.decide(host, 443, HttpRequest("https", "GET", target)).allowed


def test_rules_of_files_and_options_add_up() -> None:
    both = made(["--allow-http", "GET https://option.test/**"], FILE, FILE)
    assert both.records_query
    assert allows(both, "file.test", "/a")
    assert allows(both, "option.test", "/a")
    assert not allows(both, "option.test", "/x"), "the file's deny wins"
    assert both.covers("seen.test", 443)


def test_in_a_closed_mode_files_only_deny() -> None:
    closed = made(["--allow-http", "GET https://option.test/**"], FILE, None)
    assert not closed.covers("file.test", 443)
    assert not allows(closed, "option.test", "/x")
    assert allows(closed, "option.test", "/a")


def test_an_option_keeps_a_host_from_inspection_and_records_queries() -> None:
    words = ["--inspect", "*", "--inspect-except", "pinned.test"]
    without = made(words, None, None)
    assert (without.covers("a.test", 443), without.covers("pinned.test", 443)) == (True, False)
    assert (without.records_query, made([*words, "--record-query"], None, None).records_query) == (False, True)
