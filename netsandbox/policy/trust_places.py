"""Where programs look for the CAs that they trust: files of the system, and variables (pure; docs/inspection.md)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NPM = b"npm_config_cafile"
BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, OpenSSL
    "/etc/pki/tls/cacert.pem",
    "/usr/lib/ssl/cert.pem",
)
JAVA_STORES = (
    "/etc/ssl/certs/java/cacerts",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/ca-trust/extracted/java/cacerts",  # Fedora, RHEL
    "/var/lib/ca-certificates/java-cacerts",  # openSUSE
)
VARIABLES = (
    *(b"SSL_CERT_FILE", b"CURL_CA_BUNDLE", b"GIT_SSL_CAINFO", b"NODE_EXTRA_CA_CERTS"),
    *(b"REQUESTS_CA_BUNDLE", b"PIP_CERT", b"AWS_CA_BUNDLE", b"CARGO_HTTP_CAINFO", b"DENO_CERT"),
    b"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
)


def trust_variables(bundle: bytes, given: Iterable[bytes] = (), npm_settings: bytes = b"") -> dict[bytes, bytes]:
    """Variables by which programs use *bundle*. *given* are the variables of the command, *npm_settings* the text of
    its .npmrc files."""
    names = [*VARIABLES, *(name for name in given if name.lower() == NPM)]
    if _has_npm_cas(npm_settings):
        names.append(NPM)
    return {**dict.fromkeys(names, bundle), b"UV_SYSTEM_CERTS": b"true"}


def _has_npm_cas(settings: bytes) -> bool:
    """Whether npm has CAs of its own, which take the place of all others. Without them it trusts those of node, and
    faster: it would read the file for each connection."""
    return any(line.partition(b"=")[0].strip() in (b"cafile", b"ca", b"ca[]") for line in settings.splitlines())


def java_options(given: bytes, store: bytes) -> bytes:
    """JAVA_TOOL_OPTIONS, by which Java uses the key store *store*; *given* is its value so far."""
    return b" ".join(filter(None, (given, b"-Djavax.net.ssl.trustStore=" + store)))
