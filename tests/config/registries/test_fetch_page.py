from __future__ import annotations

import base64

import pytest

from netsandbox.config.registries import fetch_page
from tests.config.registries.conftest import Scene
from tests.rig.certificates import CertificateAuthority
from tests.rig.package_index import PackageIndex

Reply = tuple[str, str, bytes] | None


def fetch(
    scene: Scene, ca: CertificateAuthority, url: str, pages: dict[str, tuple[int, str, bytes]]
) -> tuple[Reply, PackageIndex]:
    with PackageIndex(ca.issue("index.example", "other.example"), pages) as index:
        scene.environment.update(https_proxy=index.proxy, http_proxy=index.proxy, SSL_CERT_FILE=str(ca.cert))
        return scene.discovery().page(url, "text/html"), index


def test_a_page_comes_by_the_users_proxy(scene: Scene, ca: CertificateAuthority) -> None:
    reply, index = fetch(scene, ca, "https://index.example/a", {"/a": (200, "text/html; charset=x", b"two\nlines")})
    assert reply == ("https://index.example/a", "text/html", b"two\nlines")
    assert index.tunnels == ["index.example:443"]
    assert index.requests == [("/a", None)]


def test_credentials_are_for_the_host_they_were_given_for(scene: Scene, ca: CertificateAuthority) -> None:
    pages = {"/a": (302, "https://other.example/b", b""), "/b": (200, "text/html", b"there")}
    reply, index = fetch(scene, ca, "https://me:p%40ss@index.example/a", pages)
    assert reply == ("https://other.example/b", "text/html", b"there")
    assert index.requests == [("/a", "Basic " + base64.b64encode(b"me:p@ss").decode()), ("/b", None)]


@pytest.mark.parametrize(
    "target", ["http://other.example/b", "ftp://other.example/b", "file:///etc/passwd", "https://index.example/a"]
)
def test_a_redirect_away_from_tls_or_in_a_circle_is_no_page(
    scene: Scene, ca: CertificateAuthority, target: str
) -> None:
    reply, index = fetch(
        scene, ca, "https://index.example/a", {"/a": (302, target, b""), "/b": (200, "text/html", b"x")}
    )
    assert reply is None
    assert set(index.tunnels) == {"index.example:443"}
    assert len(index.requests) <= fetch_page.MAX_REDIRECTS + 1


@pytest.mark.parametrize(
    ("redirects", "there"), [(fetch_page.MAX_REDIRECTS, True), (fetch_page.MAX_REDIRECTS + 1, False)]
)
def test_a_few_redirects_are_followed(scene: Scene, ca: CertificateAuthority, redirects: int, there: bool) -> None:
    pages = {f"/{at}": (302, f"https://index.example/{at + 1}", b"") for at in range(redirects)}
    reply, _ = fetch(scene, ca, "https://index.example/0", {**pages, f"/{redirects}": (200, "text/html", b"x")})
    assert (reply is not None) is there


def test_a_long_page_is_cut(scene: Scene, ca: CertificateAuthority) -> None:
    reply, _ = fetch(scene, ca, "https://index.example/a", {"/a": (200, "text/html", b"x" * (fetch_page.MAX_PAGE + 1))})
    assert reply is not None
    assert len(reply[2]) == fetch_page.MAX_PAGE


@pytest.mark.parametrize(
    "url", ["http://index.example/a", "file:///etc/passwd", "https://index.example/none", "https://[broken/", "x"]
)
def test_everything_else_is_no_page(scene: Scene, ca: CertificateAuthority, url: str) -> None:
    reply, index = fetch(scene, ca, url, {"/a": (200, "text/html", b"x")})
    assert reply is None
    assert len(index.requests) <= 1


def test_a_server_that_nobody_vouches_for_is_no_page(scene: Scene, ca: CertificateAuthority) -> None:
    reply, index = fetch(scene, ca, "https://third.example/a", {"/a": (200, "text/html", b"x")})
    assert reply is None
    assert index.tunnels == ["third.example:443"]
    assert index.requests == []
