"""What nobody has said yes to is told file by file, with the words to say it."""

from __future__ import annotations

from netsandbox.cli.ignored import ignored_lines


def test_a_line_a_file_with_what_to_do() -> None:
    assert ignored_lines(
        [
            ("network.allow_domains", "/p/.netsandbox.toml:3"),
            ("shell.set_env", "/p/.netsandbox.toml:5"),
            ("network.allow_domains", "/p/.netsandbox.toml:3"),
            ("evil.test:443", "/p/.npmrc:1"),
        ]
    ) == [
        "/p/.netsandbox.toml would open network.allow_domains, shell.set_env; ignored until you run `netsandbox trust`",
        "/p/.npmrc would open evil.test:443; ignored until you run `netsandbox trust /p/.npmrc`",
    ]


def test_a_hostile_path_is_printed_harmlessly() -> None:
    (line,) = ignored_lines([("x.test:443", "/p\x1b[2J/.npmrc:1")])
    assert line.isprintable()
