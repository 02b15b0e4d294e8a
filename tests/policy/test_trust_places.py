"""Where programs look for CAs."""

from __future__ import annotations

import pytest

from netsandbox.policy.trust_places import BUNDLES, NPM, VARIABLES, java_options, trust_variables


def test_each_variable_names_the_bundle() -> None:
    made = trust_variables(b"/bundle.pem")
    assert all(made[name] == b"/bundle.pem" for name in VARIABLES)
    assert made[b"UV_SYSTEM_CERTS"] == b"true"


@pytest.mark.parametrize(
    ("given", "settings", "wanted"),
    [
        ((), b"", ()),
        ((), b"registry=https://registry.test/\n; cafile=x\ncache=/x", ()),
        ((b"NPM_CONFIG_CAFILE",), b"", (b"NPM_CONFIG_CAFILE",)),
        ((), b"x=1\n cafile = /corp.pem", (NPM,)),
        ((), b"ca[]=x", (NPM,)),
    ],
)
def test_npm_is_told_only_if_it_has_cas_of_its_own(
    given: tuple[bytes, ...], settings: bytes, wanted: tuple[bytes, ...]
) -> None:
    made = trust_variables(b"/bundle.pem", given, settings)
    assert tuple(name for name in made if name.lower() == NPM) == wanted


def test_every_place_is_absolute() -> None:
    assert all(place.startswith("/") for place in BUNDLES)


def test_java_options_are_added_to_those_of_the_user() -> None:
    assert java_options(b"", b"/store") == b"-Djavax.net.ssl.trustStore=/store"
    assert java_options(b"-Xmx1g", b"/store") == b"-Xmx1g -Djavax.net.ssl.trustStore=/store"
