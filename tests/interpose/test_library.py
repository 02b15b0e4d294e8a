"""Where the library is, and what injecting it does to an environment."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st
from netsandbox_interpose import library

words = st.binary(max_size=12).filter(lambda text: b"\0" not in text)
environments = st.dictionaries(st.sampled_from([b"A", b"PATH", library.PRELOAD, library.PORT_MAP_VARIABLE]), words)


def test_the_library_and_the_place_for_the_map_are_there() -> None:
    assert os.path.isfile(library.LIBRARY), "pip install -e . builds it"
    assert os.path.isfile(library.PORT_MAP)
    assert os.path.getsize(library.PORT_MAP) == 0


def test_the_users_own_entries_stay_behind_ours() -> None:
    ours = os.fsencode(library.LIBRARY)
    assert library.inject({library.PRELOAD: b"a.so:b.so c.so"})[library.PRELOAD] == ours + b":a.so:b.so:c.so"


@given(environments)
def test_injecting_is_pure_and_twice_is_once(environment: dict[bytes, bytes]) -> None:
    before = dict(environment)
    once = library.inject(environment)
    assert environment == before
    assert library.inject(once) == once
    assert once[library.PORT_MAP_VARIABLE] == os.fsencode(library.PORT_MAP)
    assert once[library.PRELOAD].split(b":")[0] == os.fsencode(library.LIBRARY)
    assert {key: value for key, value in once.items() if key in (b"A", b"PATH")} == {
        key: value for key, value in before.items() if key in (b"A", b"PATH")
    }


def test_a_copy_of_the_library_is_taken_in_its_place() -> None:
    assert library.inject({library.PRELOAD: b"a.so"}, "/signed/library")[library.PRELOAD] == b"/signed/library:a.so"
