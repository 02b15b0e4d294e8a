"""Java's list of CAs, read by Java's own tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.session.java_key_store import found_stores, key_store
from tests.rig.certificates import CertificateAuthority
from tests.rig.world import need


def test_java_reads_it_with_the_usual_password(ca: CertificateAuthority, tmp_path: Path) -> None:
    keytool = need("keytool", "default-jdk-headless")
    bundle = ca.cert.read_bytes()
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\n"
    store = tmp_path / "store"
    store.write_bytes(key_store(b"# a comment\n" + bundle + broken + ca.issue("a.test").cert.read_bytes()))
    command = [keytool, "-list", "-v", "-keystore", store, "-storepass", "changeit"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "contains 2 entries" in said, said
    assert said.count("trustedCertEntry") == 2
    assert "CN=netsandbox test authority" in said
    assert subprocess.run([*command[:-1], "another"], capture_output=True, check=False).returncode != 0


@given(st.binary(), st.lists(st.sampled_from([b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----", b"MAAA"])))
def test_anything_makes_a_store(noise: bytes, parts: list[bytes]) -> None:
    made = key_store(noise.join(parts))
    assert made.startswith(bytes.fromhex("feedfeed00000002"))
    assert len(made) >= 12 + 20


def test_stores_are_found_by_the_home_and_by_the_program(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "lib" / "security").mkdir(parents=True)
        (tmp_path / name / "lib" / "security" / "cacerts").touch()
        (tmp_path / name / "bin").mkdir()
        (tmp_path / name / "bin" / "java").touch()
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(tmp_path / "two" / "bin" / "java")
    environment = {b"JAVA_HOME": str(tmp_path / "one").encode(), b"PATH": b"bin:" + str(tmp_path / "links").encode()}
    found = found_stores(environment)
    assert found[-2:] == tuple(str(tmp_path / name / "lib/security/cacerts") for name in ("one", "two"))
    assert len(found_stores({})) <= len(found) - 2
