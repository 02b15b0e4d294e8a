from __future__ import annotations

import pytest

from netsandbox.config.registries.cargo import replacement
from netsandbox.config.registries.discovery import Setting
from tests.config.registries.conftest import Scene
from tests.config.registries.test_node import Expected, Files, check
from tests.rig.certificates import CertificateAuthority
from tests.rig.package_index import PackageIndex

USER, OWN = "~/.cargo/config.toml", ".cargo/config.toml"


def named(name: str, registry: str = "mine") -> str:
    return f'[registries.{registry}]\nindex = "sparse+https://{name}.example/index/"\n'


def mirror(name: str) -> str:
    return f'[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "sparse+https://{name}.example/"\n'


CARGO: list[tuple[Files, dict[str, str], Expected]] = [
    ({USER: named("user")}, {}, {"user": False}),
    ({"~/.cargo/config": named("user")}, {}, {"user": False}),
    ({"~/c/config.toml": named("user")}, {"CARGO_HOME": "~/c"}, {"user": False}),
    ({OWN: named("project")}, {}, {"project": True}),
    ({OWN: named("project"), USER: named("user")}, {}, {"project": True, "user": False}),
    ({"../.cargo/config.toml": named("above")}, {}, {"above": True}),
    ({OWN: named("project")}, {"CARGO_REGISTRIES_MINE_INDEX": "sparse+https://env.example/"}, {"env": False}),
    ({}, {"CARGO_REGISTRIES_MINE_TOKEN": "https://no.example/"}, {}),
    ({USER: mirror("mirror")}, {}, {"mirror": False}),
    ({OWN: mirror("project")}, {}, {"project": True}),
    ({OWN: mirror("project"), USER: mirror("mirror")}, {}, {"project": True, "mirror": False}),
    (
        {OWN: '[source.m]\nregistry = "https://project.example"', USER: mirror("mirror")},
        {},
        {"project": True, "mirror": False},
    ),
    ({USER: '[source.unused]\nregistry = "https://no.example"'}, {}, {}),
    ({USER: named("user") + '[source.crates-io]\nreplace-with = "mine"\n'}, {}, {"user": False}),
    ({USER: '[source.crates-io]\nreplace-with = "v"\n[source.v]\ndirectory = "vendor"\n'}, {}, {}),
    ({USER: '[registries.git]\nindex = "https://git.example/index.git"\n'}, {}, {"git": False}),
    ({USER: "registries = 3\nsource.x = 4\n"}, {}, {}),
]


@pytest.mark.parametrize(("files", "variables", "wanted"), CARGO)
def test_cargo(scene: Scene, files: Files, variables: dict[str, str], wanted: Expected) -> None:
    check(scene, "cargo", files, {key: value.replace("~", str(scene.home)) for key, value in variables.items()}, wanted)


def test_a_circle_of_sources_ends() -> None:
    said = [
        Setting(f"source.{a}.replace-with", b, "o", project=False)
        for a, b in (("crates-io", "a"), ("a", "b"), ("b", "a"))
    ]
    assert replacement(said) == ([], False)


def test_a_source_that_the_project_chooses_is_the_projects() -> None:
    said = [
        Setting("source.crates-io.replace-with", "m", "o", project=True),
        Setting("source.m.registry", "https://m.example", "o", project=False),
    ]
    assert [each.project for each in replacement(said)[0]] == [True]
    assert replacement(said[1:]) == ([], True)


HEAR = """
proxy=${CARGO_HTTP_PROXY#http://}; pair=${proxy%@*}; place=${proxy#*@}
exec /usr/bin/env python3 -I -c '
import base64, socket, sys
host, _, port = sys.argv[2].partition(":")
with socket.create_connection((host, int(port))) as stream:
    token = base64.b64encode(sys.argv[1].encode()).decode()
    stream.sendall(f"CONNECT default.example:443 HTTP/1.1\\r\\nProxy-Authorization: Basic {token}\\r\\n\\r\\n".encode())
    stream.recv(99)
' "$pair" "$place"
"""


@pytest.mark.parametrize(("text", "asked"), [("", True), (named("user"), True), (mirror("mirror"), False)])
def test_cargo_is_overheard_unless_its_registry_is_replaced(scene: Scene, text: str, asked: bool) -> None:
    scene.real("python3")
    tool = scene.tool("cargo", HEAR)
    scene.environment["PATH"] = f"{tool.parent}:{scene.environment['PATH']}"
    scene.write(USER, text)
    assert ("default.example:443" in scene.discover("cargo").patterns()) is asked


def test_the_real_cargo_names_its_index(scene: Scene) -> None:
    scene.real("cargo")
    answer = scene.discover("cargo")
    (registry,) = answer.registries
    assert registry.origin == "cargo search"
    assert not registry.project
    assert any("could not be asked where its crates are" in note for note in answer.notes)


def test_an_index_is_queried_for_the_host_of_its_crates(scene: Scene, ca: CertificateAuthority) -> None:
    pages = {
        "/index/config.json": (200, "application/json", b'{"dl": "https://dl.example/x", "api": "https://api.example"}')
    }
    with PackageIndex(ca.issue("user.example", "project.example"), pages) as index:
        scene.environment.update(https_proxy=index.proxy, SSL_CERT_FILE=str(ca.cert))
        scene.write(OWN, named("project", "other"))
        scene.write(USER, named("user"))
        assert scene.discover("cargo").patterns() == ("user.example:443", "dl.example:443", "api.example:443")
        assert index.tunnels == ["user.example:443"]
