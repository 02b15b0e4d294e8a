from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.ruby import source_in
from tests.config.registries.conftest import Scene
from tests.config.registries.test_node import Expected, Files, check

USER, OWN, RC = "~/.bundle/config", ".bundle/config", "~/.gemrc"
ALL = '---\nBUNDLE_MIRROR__ALL: "https://{}.example"\n'
ONE = 'BUNDLE_MIRROR__HTTPS://X__EXAMPLE/: "https://{}.example"\n'
GEMFILE = "source 'https://project.example'\ngem 'a', source: \"https://b.example\"\n"
RUBY: list[tuple[str, Files, dict[str, str], Expected]] = [
    ("gem", {}, {}, {"default": False}),
    ("gem", {RC: "---\n:sources:\n- https://a.example\n- https://b.example/\n"}, {}, {"a": False, "b": False}),
    ("gem", {"~/own": ":sources:\n- https://a.example"}, {"GEMRC": "~/own"}, {"a": False}),
    ("gem", {"own": ":sources:\n- https://a.example"}, {"GEMRC": "own"}, {"a": True, "default": False}),
    ("gem", {"/etc/gemrc": ":sources:\n- https://a.example"}, {}, {"a": False}),
    ("gem", {"/etc/gemrc": ":sources:\n- https://a.example", RC: ":sources:\n- https://b.example"}, {}, {"b": False}),
    ("gem", {"Gemfile": GEMFILE}, {}, {"default": False}),
    ("bundle", {}, {}, {"default": False}),
    ("bundle", {"Gemfile": GEMFILE}, {}, {"project": True, "b": True, "default": False}),
    ("bundle", {"gems.rb": GEMFILE}, {}, {"project": True, "b": True, "default": False}),
    ("bundle", {USER: ALL.format("user"), "Gemfile": GEMFILE}, {}, {"user": False}),
    ("bundle", {USER: ONE.format("user")}, {}, {"user": False, "default": False}),
    ("bundle", {OWN: ALL.format("mine")}, {}, {"mine": True, "default": False}),
    ("bundle", {OWN: ALL.format("mine"), USER: ALL.format("user")}, {}, {"mine": True, "user": False}),
    ("bundle", {USER: ALL.format("user")}, {"BUNDLE_MIRROR__ALL": "https://env.example"}, {"env": False}),
    ("bundle", {USER: "BUNDLE_PATH: https://no.example"}, {}, {"default": False}),
]


@pytest.mark.parametrize(("tool", "files", "variables", "wanted"), RUBY)
def test_gem_and_bundle(scene: Scene, tool: str, files: Files, variables: dict[str, str], wanted: Expected) -> None:
    scene.tool("gem", "echo '*** CURRENT SOURCES ***'; echo; echo https://default.example/")
    check(scene, tool, files, {key: value.replace("~", str(scene.home)) for key, value in variables.items()}, wanted)


@pytest.mark.parametrize(
    ("line", "url"),
    [
        ('source "https://a.example"', "https://a.example"),
        ("source('https://a.example') do", "https://a.example"),
        ('  source "https://a.example"', "https://a.example"),
        ('gem "x", :source => "https://a.example"', "https://a.example"),
        ('# source "https://a.example"', ""),
        ('gem "x" # source "https://a.example"', ""),
        ('source "https://#{secret}.example"', ""),
        ('my_source "https://a.example"', ""),
        ("source ENV['X']", ""),
    ],
)
def test_only_a_plain_source_is_read(line: str, url: str) -> None:
    assert source_in(line) == url


@given(
    st.lists(st.sampled_from(["source", " ", "(", ":", "=>", "'", '"', "https://a.example", "#", "{"])).map("".join)
    | st.text()
)
def test_a_source_is_in_its_line(line: str) -> None:
    assert source_in(line) in line
