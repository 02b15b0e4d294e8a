from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.tool_settings import without_credentials

SECRET = "CANARY0secret0CANARY"
KEPT = {
    ".npmrc": ("ignore-scripts=true\n//r.test/:_authToken=§\n_auth = §\n", "ignore-scripts = true\n"),
    "a/.npmrc": ("ignore-scripts\n§\n", "ignore-scripts\n"),
    ".config/pnpm/rc": ("minimum-release-age=10\n; token §\nkeyfile=§\n", "minimum-release-age = 10\n"),
    ".config/pip/pip.conf": (
        "[global]\nrequire-hashes = true\nindex-url = https://u:§@h/simple\nextra-index-url =\n    https://§@h/a\n"
        "password =\n    §\n",
        "[global]\nrequire-hashes = true\nindex-url = https://h/simple\nextra-index-url =\n    https://h/a\n",
    ),
    ".yarnrc.yml": (
        "enableScripts: false\nnpmAuthToken: §\nnpmScopes:\n  own:\n    npmAuthToken: '§'\n"
        'npmRegistries:\n  "//h:8080":\n    npmAuthIdent: u:§\nunsafeHttpWhitelist:\n  - a.test\n',
        "enableScripts: false\nunsafeHttpWhitelist:\n  - a.test\n",
    ),
    ".yarnrc": ('ignore-scripts true\n"//h/:_authToken" §\nregistry "https://u:§@h"\n', None),
    ".bundle/config": (
        '---\nBUNDLE_FROZEN: "true"\nBUNDLE_GEMS__A__COM: "u:§"\nBUNDLE_BUILD__PG: "--x"\n',
        '---\nBUNDLE_FROZEN: "true"\nBUNDLE_BUILD__PG: "--x"\n',
    ),
    ".gemrc": ("gem: --no-document\n:sources:\n- https://u:§@h/\n:rubygems_api_key: §\n", None),
    ".config/uv/uv.toml": (
        'exclude-newer = "2024-01-01"\n'
        '[[index]]\nurl = "https://u:§@h/"\npassword = "§"\n[pip]\nno-build-package = [\n"a"]\n',
        '"exclude-newer" = "2024-01-01"\n"index" = [{"url" = "https://h/"}]\n"pip" = {"no-build-package" = ["a"]}\n',
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_settings_stay_and_credentials_go(name: str) -> None:
    text, kept = KEPT[name]
    found = without_credentials(f"/home/me/{name}", text.replace("§", SECRET))
    assert SECRET not in found
    if kept is not None:
        assert found == kept
    assert found, "the twin: something stays"


KEYS = st.sampled_from(
    (
        "_auth",
        "_authToken",
        "_password",
        "//h.test/:_authToken",
        "//h/:username",
        "email",
        "cert",
        "key",
        "keyfile",
        "otp",
    )
)
NESTED = st.sampled_from(("npmAuthToken", "npmAuthIdent", "password", "BUNDLE_A__TEST", "api_key", "client-cert"))
PLAIN = st.sampled_from(("ignore-scripts", "enableScripts", "prefix", "exclude-newer", "a"))
URLS = st.sampled_from(
    (f"https://u:{SECRET}@h/x", f"http://{SECRET}@h", f"https://u:a/{SECRET}@h", f"https://h/?t={SECRET}")
)
QUOTES = st.sampled_from(("", '"', "'"))


@given(st.lists(st.tuples(st.booleans(), KEYS, PLAIN, URLS, st.integers(0, 3), QUOTES), max_size=8))
def test_no_credential_of_an_ini_file_survives(rows: list[tuple[bool, str, str, str, int, str]]) -> None:
    lines = ["[global]"]
    for is_key, key, plain, url, spaces, quote in rows:
        gap = " " * spaces
        lines.append(f"{gap}{key}{gap}={gap}{quote}{SECRET}{quote}" if is_key else f"{plain}{gap}={quote}{url}{quote}")
        lines += [f"    {SECRET}"] * (is_key and spaces == 0)
    for name in (".npmrc", "pip.conf"):
        assert SECRET not in without_credentials(name, "\n".join(lines))


TREES = st.recursive(
    st.one_of(URLS, st.booleans(), st.just("plain")),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(st.one_of(PLAIN, NESTED), below, max_size=3)),
    max_leaves=12,
)


def hidden(value: object) -> object:
    """*value* with the canary as every value of a credential's key."""
    if isinstance(value, dict):
        names = ("npmAuthToken", "npmAuthIdent", "password", "BUNDLE_A__TEST", "api_key", "client-cert")
        return {key: SECRET if key in names else hidden(each) for key, each in value.items()}
    return [hidden(each) for each in value] if isinstance(value, list) else value


@given(st.dictionaries(st.one_of(PLAIN, NESTED), TREES, max_size=4))
def test_no_credential_of_a_toml_file_survives_and_it_can_be_read(tree: dict[str, object]) -> None:
    def written(value: object) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {written(each)}" for key, each in value.items()) + "}"
        return "[" + ", ".join(map(written, value)) + "]" if isinstance(value, list) else json.dumps(value)

    text = "".join(f"{json.dumps(key)} = {written(value)}\n" for key, value in dict(hidden(tree)).items())  # type: ignore[call-overload]
    found = without_credentials("uv.toml", text)
    assert SECRET not in found
    tomllib.loads(found)


@given(st.dictionaries(st.one_of(PLAIN, NESTED), TREES, max_size=4), QUOTES)
def test_no_credential_of_a_yaml_file_survives(tree: dict[str, object], quote: str) -> None:
    def written(value: object, indent: int) -> list[str]:
        gap = " " * indent
        if isinstance(value, dict):
            return [
                line
                for key, each in value.items()
                for line in (f"{gap}{quote}{key}{quote}:", *written(each, indent + 2))
            ]
        if isinstance(value, list):
            return [line for each in value for line in (f"{gap}-", *written(each, indent + 2))]
        return [f"{gap}{json.dumps(value)}"]

    def flat(value: object) -> list[str]:
        pairs = value.items() if isinstance(value, dict) else ()
        return [f"{key}: {json.dumps(each)}" for key, each in pairs]

    for lines in (written(hidden(tree), 0), flat(hidden(tree))):
        assert SECRET not in without_credentials(".yarnrc.yml", "\n".join(lines))


@pytest.mark.parametrize("text", ["a = [", "a\0b", 'a = "\n'])
def test_what_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        without_credentials("uv.toml", text)


@pytest.mark.parametrize(
    "text",
    [
        f'npmAuthToken: "a\n  {SECRET}"\n',
        f"note: |\n  {SECRET}\n",
        f"a: &x {SECRET}\n",
        f"npmScopes: {{own: {{npmAuthToken: {SECRET}}}}}\n",
        f'"npmAuth\\u0054oken": {SECRET}\n',
        f"? npmAuthToken\n: {SECRET}\n",
        f"a: npm_{SECRET}\n",
        f"httpProxy: Bearer {SECRET}\n",
    ],
)
def test_odd_yaml_shows_nothing(text: str) -> None:
    assert SECRET not in without_credentials(".yarnrc.yml", text)
