"""What the environment moves is opened and closed where it is, as its place at home is; what names too much is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.profile.mac_paths import ALL_TOOLCHAINS, CACHES
from netsandbox.backends.seatbelt.profile.profile_settings import ProfileSettings, resolve
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from netsandbox.policy import home_paths
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.home_paths import LISTS, OF_LINUX, VARIABLES, moved, moved_secrets, moves, touches
from netsandbox.policy.home_paths import OF_MAC as HOME_SECRETS
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import Profile, load
from tests.seatbelt_model.request import file

HOME, APP = "/Users/me", "/Users/me/src/app"


def profile(environment: dict[str, str], *switches: str) -> Profile:
    planned = ProfileSettings(
        APP, HOME, read=(HOME, "/opt/secret"), switches=switches, moves=moves(environment, HOME, APP)
    )
    return load(session_profile(resolve(planned, str, lambda path: True)))


def test_a_moved_toolchain_is_run_its_cache_written_and_its_credentials_closed() -> None:
    judged = profile({"CARGO_HOME": "/opt/cargo/"}, "tool-caches")
    assert allowed_under_all(judged, file("process-exec*", "/opt/cargo/bin/cargo"))
    assert allowed_under_all(judged, file("file-read-data", "/opt/cargo/config.toml"))
    assert allowed_under_all(judged, file("file-write-create", "/opt/cargo/registry/x"))
    assert denied_under_all(judged, file("file-write-create", "/opt/cargo/bin/x"))
    assert denied_under_all(judged, file("file-read-data", "/opt/cargo/credentials.toml"))
    assert denied_under_all(profile({"CARGO_HOME": "/opt/cargo"}), file("file-write-create", "/opt/cargo/registry/x"))
    assert denied_under_all(profile({}), file("process-exec*", "/opt/cargo/bin/cargo"))


@pytest.mark.parametrize(
    ("variable", "path"),
    [
        ("GOCACHE", "/Volumes/fast/go"),
        ("PIP_CACHE_DIR", "/opt/pip"),
        ("XDG_CACHE_HOME", "/opt/cache"),
        ("UV_CACHE_DIR", "/u"),
    ],
)
def test_a_moved_cache_is_written(variable: str, path: str) -> None:
    judged = profile({variable: path}, "tool-caches")
    assert allowed_under_all(judged, file("file-write-create", f"{path}/x"))
    assert denied_under_all(judged, file("file-write-unlink", path))


@pytest.mark.parametrize(
    ("variable", "path"),
    [
        ("KUBECONFIG", f"{HOME}/k8s.yaml"),
        ("GNUPGHOME", f"{HOME}/keys"),
        ("AWS_SHARED_CREDENTIALS_FILE", f"{HOME}/aws"),
        ("HISTFILE", f"{HOME}/.local/share/zsh/history"),
        ("GOOGLE_APPLICATION_CREDENTIALS", f"{APP}/key.json"),
    ],
)
def test_a_moved_secret_is_closed_where_it_is(variable: str, path: str) -> None:
    """INV-6."""
    assert denied_under_all(profile({variable: path}), file("file-read-data", path))
    assert allowed_under_all(profile({}), file("file-read-data", path))


def test_a_list_is_followed_path_by_path() -> None:
    assert moves({"KUBECONFIG": "/a/x::/b/y:c"}, HOME, APP) == ((".kube/config", "/a/x"), (".kube/config", "/b/y"))


@pytest.mark.attack(151)
@pytest.mark.parametrize(
    "path", ["", "/", "//", HOME, "/Users", f"{HOME}/", "relative", "~/x", f"{HOME}/src", APP, "/dev/null"]
)
def test_a_variable_that_names_too_much_or_no_path_is_not_followed(path: str) -> None:
    for variable in VARIABLES:
        assert moves({variable: path}, HOME, APP) == ()


def test_every_variable_stands_for_a_place_that_has_rules() -> None:
    places = (*ALL_TOOLCHAINS, *CACHES, *HOME_SECRETS)
    for variable, place in VARIABLES.items():
        assert any(is_within(each, place) or is_within(place, each) for each in places), variable
    assert set(LISTS) <= set(VARIABLES)


@given(st.dictionaries(st.sampled_from(sorted(VARIABLES)), st.text("/ab:.", max_size=8), max_size=4))
def test_any_value_moves_to_absolute_paths_only(environment: dict[str, str]) -> None:
    pairs = moves(environment, HOME, APP)
    for path in moved((*ALL_TOOLCHAINS, *CACHES, *HOME_SECRETS), pairs):
        assert path.startswith("/")
        assert not is_within(HOME, path)


@pytest.mark.attack(230)
@pytest.mark.parametrize("folder", [APP, HOME, "/", f"{APP}/.config"])
def test_secrets_below_a_variable_that_holds_the_working_folder_are_named(folder: str) -> None:
    found = moved_secrets(OF_LINUX, {"XDG_CONFIG_HOME": folder, "AWS_CONFIG_FILE": APP}, HOME, APP)
    base = folder.rstrip("/")
    assert f"{base}/gh" in found
    assert not any(is_within(kept, path) for kept in (HOME, APP) for path in found)


@pytest.mark.attack(230)
@given(
    st.dictionaries(
        st.sampled_from(sorted(VARIABLES)), st.sampled_from(["", "/", HOME, APP, "/x/y", "rel", "/dev/null"])
    )
)
def test_no_variable_hides_the_home_or_the_working_folder(environment: dict[str, str]) -> None:
    for path in moved_secrets(OF_LINUX, environment, HOME, APP):
        assert path.startswith("/")
        assert not is_within(HOME, path)
        assert not is_within(APP, path)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/h/.ssh", True),
        ("/h/.ssh/keys", True),
        ("/h/.config", True),
        ("/h/.sshd", False),
        ("/h", False),
        ("/x", False),
    ],
)
def test_a_path_touches_a_place_that_it_holds_or_lies_in(path: str, found: bool) -> None:
    assert touches(path, "/h", (".ssh/", ".config/gh/")) is found


@pytest.mark.attack(273)
@pytest.mark.parametrize(
    ("named", "is_closed"),
    [
        ((), True),
        (("/h",), True),
        (("/",), True),
        (("/h/.claude.json",), True),
        (("/h/.claude",), False),
        (("/h/.claude/projects",), False),
    ],
)
def test_the_place_of_an_agent_is_closed_until_a_rule_names_something_in_it(
    named: tuple[str, ...], is_closed: bool
) -> None:
    assert (".claude" in home_paths.closed_agents(named, "/h")) == is_closed
