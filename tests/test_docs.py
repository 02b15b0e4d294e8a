"""The documents say what the code does: options, reasons, events, keys, system calls, places and links."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox import Policy
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.cli import (
    apply,
    approve,
    audit,
    changes,
    completion,
    config,
    deny,
    discard,
    doctor,
    exec,
    explain,
    init,
    learn,
    logs,
    man,
    open,
    pending,
    ports,
    profile,
    ps,
    run,
    stop,
    trust,
    uninstall,
)
from netsandbox.cli.main import COMMANDS
from netsandbox.cli.run_options import POLICY_OPTIONS
from netsandbox.config.keys import KEYS
from netsandbox.errors import UsageError
from netsandbox.policy import reasons
from netsandbox.policy.shown_files import PROTECTED
from netsandbox.runtime.option_parser import Option
from netsandbox.settings import RunSettings
from tests.rig.in_process import run_here

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")])
SOURCES = ("netsandbox", "proxy", "dns", "portmap", "interpose")
OWN = (
    *(path.name for path in ROOT.glob("*.md")),
    ".gitignore",
    "Makefile",
    "pyproject.toml",
    ".ci",
    ".github",
    "bench",
    "docs",
    "scripts",
    "tests",
    *SOURCES,
)
NAMED_PATH = re.compile(
    r"(?<![\w/.$}~*>-])((?:tests|scripts|docs|bench|netsandbox|proxy|dns|portmap|interpose|\.github|\.ci)/[\w./*<>{}…-]*\w(?:\.?[*{])?)"
)
PATTERN = re.compile(r"[*<>{}…]|\bNAME\b")  # in a path that stands for several
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
MAC_MARK = re.compile(
    r"^(?:@pytest\.mark\.macos| *pytest\.mark\.macos,|pytestmark = on_a_mac|.*marks=\[pytest\.mark\.macos)",
    re.MULTILINE,
)
TEXT = {".md", ".py", ".c", ".h", ".toml", ".yml", ".yaml", ".json", ".txt", ""}


@cache
def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def section(text: str, heading: str) -> str:
    """From one heading of the second level to the next."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no section {heading!r}"
    return found.group(1)


def spellings(options: tuple[Option, ...]) -> set[str]:
    return {f"--{option.name}" for option in options} | {f"-{option.letter}" for option in options if option.letter}


def documented(text: str) -> set[str]:
    """The options in the first cells of a section's tables."""
    cells = re.findall(r"^\| (`-[^|]*)\|", text, re.MULTILINE)
    return {word for cell in cells for word in re.findall(r"(?<![\w-])--?[A-Za-z][a-z-]*", cell)}


OWN_OF_RUN = tuple(option for option in run.OPTIONS if option not in POLICY_OPTIONS)
OWN_OF_LEARN = learn.OPTIONS[-2:]  # the others are those of run
OWN_OF_EXPLAIN = tuple(option for option in explain.OPTIONS if option not in POLICY_OPTIONS)


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("Options that make a policy", spellings(POLICY_OPTIONS)),
        ("run", spellings(OWN_OF_RUN)),
        ("ps", spellings(ps.OPTIONS)),
        ("ports", spellings(ports.OPTIONS)),
        ("open", spellings(open.OPTIONS)),
        ("stop", spellings(stop.OPTIONS)),
        ("pending", spellings(pending.OPTIONS)),
        ("approve", spellings(approve.OPTIONS)),
        ("deny", spellings(deny.OPTIONS)),
        ("changes", spellings(changes.OPTIONS)),
        ("apply", spellings(apply.OPTIONS)),
        ("discard", spellings(discard.OPTIONS)),
        ("explain", spellings(OWN_OF_EXPLAIN)),
        ("audit", spellings(audit.OPTIONS)),
        ("doctor", spellings(doctor.OPTIONS)),
        ("profile", spellings(profile.OPTIONS)),
        ("config", spellings(config.OPTIONS)),
        ("trust", spellings(trust.OPTIONS)),
        ("init", spellings(init.OPTIONS)),
        ("learn", spellings(OWN_OF_LEARN)),
        ("completion", spellings(completion.OPTIONS)),
        ("man", spellings(man.OPTIONS)),
        ("exec", spellings(exec.OPTIONS)),
        ("logs", spellings(logs.OPTIONS)),
        ("uninstall", spellings(uninstall.OPTIONS)),
    ],
)
def test_each_command_documents_its_options_and_no_others(heading: str, known: set[str]) -> None:
    assert documented(section(page("docs/cli.md"), heading)) == known


def test_no_page_names_an_option_of_netsandbox_that_it_does_not_have() -> None:
    commands = (
        *(init, learn, run, explain, audit, doctor, ps, ports, stop, open, profile, config, trust, completion),
        *(pending, approve, deny, changes, apply, discard, man, uninstall, exec, logs),
    )
    known = {"--version"}.union(*(spellings(command.OPTIONS) for command in commands))
    own_words = re.sub(r"^netsandbox: .*$", "", page("docs/cli.md"), flags=re.MULTILINE)  # messages quote slips
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", own_words))
    for name in (
        "README.md",
        "docs/policy.md",
        "docs/audit-log.md",
        "docs/localhost.md",
        "docs/seatbelt-profile.md",
        "docs/configuration.md",
        "docs/shells.md",
    ):
        for line in re.findall(rf"netsandbox (?:{'|'.join(COMMANDS)})\b([^\n`]*)", page(name)):
            used |= set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", line.partition(" -- ")[0]))
    assert used <= known


def test_every_reason_is_explained_to_users() -> None:
    """INV-11."""
    rows = "\n".join(section(page(name), "Reasons") for name in ("docs/policy.md", "docs/audit-log.md"))
    assert {reason for reason in reasons.ALL if f"`{reason}`" not in rows} == set()


def test_every_configuration_key_is_documented_and_no_other() -> None:
    rows = section(page("docs/configuration.md"), "Keys")
    tables = re.findall(r"^### `\[(\w+)\]`\n(.*?)(?=^###|\Z)", rows, re.MULTILINE | re.DOTALL)
    named = {table: re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE) for table, text in tables}
    assert named == {table: list(keys) for table, keys in KEYS.items()}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_refused_system_call_is_listed_with_its_errno(machine: str) -> None:
    abi = syscall_table(machine)
    rows = section(page("docs/platform-linux.md"), "System calls").splitlines()
    for errno, names in (("EPERM", abi.refused), ("ENOSYS", abi.absent)):
        listed = {name for row in rows if errno in row for name in re.findall(r"`(\w+)`", row)}
        assert set(names) <= listed


def written_events() -> Iterator[str]:
    """First arguments of every `….write("event", …)` on a log."""
    for path in (ROOT / "netsandbox").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "write":
                first = node.args[0] if node.args else None
                if "log" in ast.unparse(node.func.value) and isinstance(first, ast.Constant):
                    yield str(first.value)


def test_every_event_that_is_written_is_documented() -> None:
    events = set(written_events())
    assert {"egress", "dns", "session.start"} <= events
    rows = section(page("docs/audit-log.md"), "Events")
    assert {event for event in events if f"`{event}`" not in rows} == set()


def words_of(path: Path) -> Iterator[str]:
    """Every string of a module that is no docstring."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_no_message_names_a_page_that_an_installation_does_not_have() -> None:
    for path in (ROOT / "netsandbox").rglob("*.py"):
        assert [text for text in words_of(path) if "docs/" in text] == [], path


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        place, _, anchor = target.partition("#")
        found = (path.parent / place).resolve() if place else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_every_invariant_is_documented_and_every_tag_means_one() -> None:
    listed = set(re.findall(r"^\| (INV-\d+) \| \*\*", page("docs/invariants.md"), re.MULTILINE))
    assert listed == {f"INV-{number}" for number in range(1, 13)}
    for folder in (*SOURCES, "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            assert set(re.findall(r"INV-\d+", path.read_text("utf-8"))) <= listed, path


def own_files() -> Iterator[Path]:
    for name in OWN:
        place = ROOT / name
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.is_file() and path.suffix in TEXT and "__pycache__" not in path.parts:
                yield path


def prose_lines(path: Path, text: str) -> set[int]:
    """The lines that speak to a reader: of Python its comments and docstrings, all of other files."""
    if path.suffix != ".py":
        return set(range(1, text.count("\n") + 2))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            found.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return found


def missing_paths(path: Path, text: str) -> Iterator[str]:
    built = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    for match in NAMED_PATH.finditer(text):
        name = match.group(1)
        known = (ROOT / name).exists() or (path.parent / name).exists() or name in PROTECTED  # of anybody's project
        known = known or any(fnmatch(name, each) for each in built)
        if not (known or PATTERN.search(name)):
            yield f"{text.count(chr(10), 0, match.start()) + 1}: {name}"


def test_every_path_that_is_named_exists() -> None:
    """Of workflows, pages, comments and what is run: a file that moved takes its names with it."""
    wrong = []
    for path in own_files():
        text = path.read_text("utf-8", errors="replace")
        missing = list(missing_paths(path, text))
        lines = prose_lines(path, text) if missing else set()
        wrong += [f"{path.relative_to(ROOT)}:{each}" for each in missing if int(each.partition(":")[0]) in lines]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("x.yml", "run: pytest -q tests/policy tests/gone tests/*/x.py", ["1: tests/gone"]),
        ("x.md", "See\n`netsandbox/gone.py`, `tests/backends/NAME/`, `docs/cli.md`.", ["2: netsandbox/gone.py"]),
        ("x.c", "/* portmap/bind_rule.py, /etc/tests/gone, $HOME/docs/gone */", ["1: portmap/bind_rule.py"]),
        ("x.md", "`netsandbox/backends/seatbelt/native/netsandbox-apply` is built", []),
    ],
)
def test_a_path_that_is_not_there_is_found(name: str, text: str, wrong: list[str]) -> None:
    assert list(missing_paths(ROOT / name, text)) == wrong


def test_of_python_only_what_speaks_to_a_reader_counts() -> None:
    text = '"""Says\ntests/gone."""\nX = "tests/gone"\n# tests/gone\ndef f():\n    """tests/gone"""\n'
    assert prose_lines(Path("x.py"), text) == {1, 2, 4, 6}


def test_every_target_of_make_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", page("Makefile"), re.MULTILINE))
    named = re.compile(r"(?:`|\brun: |\bexec |\bsudo )make ([a-z][a-z-]*)", re.MULTILINE)
    texts = {path: path.read_text("utf-8", errors="replace") for path in own_files()}
    assert {
        (str(path), name) for path, text in texts.items() for name in named.findall(text) if name not in targets
    } == set()


def test_the_job_for_macs_runs_every_test_that_needs_one() -> None:
    workflow = page(".github/workflows/ci.yml")
    (chosen,) = re.findall(r"pytest -q -m macos ((?:tests/\S+ ?)+)\n", workflow)
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if MAC_MARK.search(path.read_text("utf-8"))]
    assert marked
    folders = (*chosen.split(), "tests/integration/test_rig.py")  # which tests the mark itself
    assert [path for path in marked if not str(path.relative_to(ROOT)).startswith(folders)] == []


def test_no_file_speaks_of_somebodys_home() -> None:
    home = re.compile(
        rb"/(?:home|Users)/(?!(?:linuxbrew|me|other|someone|user|you)/)[a-z][\w-]*/|(?<![\w.])/root[/][\w.]"
    )
    for path in own_files():
        data = path.read_bytes()
        found = None if b"\0" in data else home.search(data)
        assert found is None, f"{path}: {found}"


def test_the_page_on_macos_quotes_what_a_mac_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netsandbox.system.DEFAULT_BACKEND", "seatbelt")
    wanted = RunSettings(localhost=LocalhostSettings(strategy="isolate", chosen=True))
    with pytest.raises(UsageError) as refused:
        run_here(Policy(), ["true"], wanted)
    assert f"    netsandbox: {refused.value}\n" in page("docs/platform-macos.md")


def test_every_component_folder_has_a_page_of_its_own() -> None:
    for folder in SOURCES:
        text = (ROOT / folder / "README.md").read_text("utf-8")
        assert text.startswith("# "), folder


def test_the_table_of_the_inspection_package_names_each_module() -> None:
    folder = ROOT / "proxy/netsandbox_proxy/inspect"
    named = set(re.findall(r"`(\w+)`", (folder / "__init__.py").read_text("utf-8")))
    assert {path.stem for path in folder.glob("*.py")} - named == {"__init__"}
