"""Programs that know no proxy, under a Mac's library on Linux: each finds its name and its page through the doors."""

from __future__ import annotations

import shutil
import sys

import pytest

from tests.rig.mac_doors import BODY, MacDoors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")

NAME, ADDRESS = "shop.test", "198.18.0.9"
URL = f"http://{NAME}:8080/"
NODE = {
    "http": f"require('http').get('{URL}', r => r.on('data', d => process.stdout.write(d)))",
    "fetch": f"fetch('{URL}').then(r => r.text()).then(body => process.stdout.write(body))",
}


@pytest.fixture
def shop(doors: MacDoors) -> MacDoors:
    doors.authority.answer(NAME, ADDRESS)
    return doors


def needs(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing (package {package})")
    return found


def gets(shop: MacDoors, *command: str) -> None:
    done = shop.run(*command)
    assert (done.returncode, done.stdout) == (0, BODY.decode()), done.stderr
    assert shop.meant == [(ADDRESS, 8080)]
    assert set(shop.authority.names) == {NAME}


def test_curl(shop: MacDoors) -> None:
    gets(shop, needs("curl", "curl"), "-sS", "--noproxy", "*", URL)


def test_wget(shop: MacDoors) -> None:
    gets(shop, needs("wget", "wget"), "--no-proxy", "-qO-", "-t1", URL)


@pytest.mark.parametrize("way", NODE)
def test_node(shop: MacDoors, way: str) -> None:
    gets(shop, needs("node", "nodejs"), "-e", NODE[way])


def test_python(shop: MacDoors) -> None:
    code = (
        f"import urllib.request as r; o = r.build_opener(r.ProxyHandler({{}})); print(o.open('{URL}').read().decode())"
    )
    gets(shop, sys.executable, "-c", code.replace("print(", "import sys; sys.stdout.write("))


def test_curl_says_what_is_wrong(shop: MacDoors) -> None:
    """A name that is refused, and a door that is gone."""
    curl = (needs("curl", "curl"), "-sS", "--noproxy", "*")
    done = shop.run(*curl, "http://other.test/")
    assert (done.returncode, "Could not resolve host" in done.stderr) == (6, True)
    shop.close()
    done = shop.run(*curl, URL)
    assert done.returncode == 7, done.stderr


def test_node_asks_a_server_of_its_own_choice(shop: MacDoors) -> None:
    """c-ares speaks DNS itself, by UDP."""
    code = f"""
const dns = require('dns');
dns.setServers(['192.0.2.53']);
dns.resolve4('{NAME}', (error, found) => {{ console.log(error ? error.code : found[0]);
  dns.resolve4('other.test', error => {{ console.log(error.code);
    dns.lookup('{NAME}', (error, found) => console.log(found)); }}); }});
"""
    done = shop.run(needs("node", "nodejs"), "-e", code)
    assert done.stdout.splitlines() == [ADDRESS, "ENOTFOUND", ADDRESS], done.stderr
    assert set(shop.authority.names) == {NAME, "other.test"}


@pytest.mark.parametrize(("option", "transport"), [("+notcp", "udp"), ("+tcp", "tcp")])
def test_dig_asks_a_server_of_its_own_choice(shop: MacDoors, option: str, transport: str) -> None:
    dig = (needs("dig", "bind9-dnsutils"), "+short", "+tries=1", "+noedns", option)
    done = shop.run(*dig, "@192.0.2.53", NAME, "A")
    assert done.stdout == f"{ADDRESS}\n", done.stderr
    assert {query.transport for query in shop.authority.queries} == {transport}
