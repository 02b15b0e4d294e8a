"""The two TLS contexts of a worker: one towards clients, one towards servers, both made before the worker is sealed.

A context holds a callback, whose memory must be executable, so none is made later. What differs between connections,
the certificate and the protocols, is set on each connection.
"""

from __future__ import annotations

from OpenSSL import SSL, crypto

from netsandbox_proxy.inspect.tls_connection import TlsConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.inspect.authority import Authority

MAX_CERTIFICATES = 1024
HTTP1, HTTP2 = b"http/1.1", b"h2"
_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
_OPTIONS = SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION | SSL.OP_CIPHER_SERVER_PREFERENCE
_RELEASE_BUFFERS = 0x10  # SSL_MODE_RELEASE_BUFFERS: an idle connection keeps no buffer


class TlsContexts:
    """*trust* is a bundle of certificates in PEM; servers must have one that leads to them."""

    def __init__(self, authority: Authority, trust: bytes) -> None:
        self._authority = authority
        self._leaf_key = crypto.PKey.from_cryptography_key(authority.leaf_key)
        self._certificates: dict[str, crypto.X509] = {}
        self._to_clients = _context(SSL.TLS_SERVER_METHOD)
        self._to_clients.set_alpn_select_callback(_choose)
        self._to_servers = _context(SSL.TLS_CLIENT_METHOD)
        self._to_servers.set_verify(SSL.VERIFY_PEER, None)
        self.trusted = _load(self._to_servers, trust)

    def to_client(self, host: str, protocol: bytes | None) -> TlsConnection:
        """Our side of a client's connection to *host*; *protocol* is the only one that is agreed to."""
        made = TlsConnection(self._to_clients)
        # `use_certificate` and `use_privatekey` would make copies of both for each connection, 7 KB.
        SSL._lib.SSL_use_certificate(made._ssl, self._certificate(host)._x509)
        if SSL._lib.SSL_use_PrivateKey(made._ssl, self._leaf_key._pkey) != 1:
            raise ValueError("the certificate is not of this key")
        made.set_app_data(protocol)
        made.set_accept_state()
        return made

    def _certificate(self, host: str) -> crypto.X509:
        found = self._certificates.get(host)
        if found is None:
            if len(self._certificates) >= MAX_CERTIFICATES:
                self._certificates.clear()
            found = self._certificates[host] = crypto.X509.from_cryptography(self._authority.leaf(host))
        return found

    def to_server(self, host: str, protocol: bytes) -> TlsConnection:
        """Our side of a connection to the server *host*, whose certificate must be for that name."""
        made = TlsConnection(self._to_servers)
        name = host.encode("ascii")
        parameters = SSL._lib.SSL_get0_param(made._ssl)
        strict = SSL._lib.X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | SSL._lib.X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
        SSL._lib.X509_VERIFY_PARAM_set_hostflags(parameters, strict)
        if SSL._lib.X509_VERIFY_PARAM_set1_host(parameters, name, len(name)) != 1:
            raise ValueError("the name cannot be checked")
        made.set_tlsext_host_name(name)
        made.set_alpn_protos([protocol])
        made.set_connect_state()
        return made


def _context(method: int) -> SSL.Context:
    made = SSL.Context(method)
    made.set_min_proto_version(SSL.TLS1_2_VERSION)
    made.set_options(_OPTIONS)
    made.set_mode(_RELEASE_BUFFERS)
    made.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    return made


def _choose(connection: SSL.Connection, offered: list[bytes]) -> bytes | object:
    wanted = connection.get_app_data()
    return wanted if wanted in offered else SSL.NO_OVERLAPPING_PROTOCOLS


def _load(context: SSL.Context, trust: bytes) -> int:
    """Add each certificate of the bundle; how many there are. One that OpenSSL cannot read is left out."""
    store = context.get_cert_store()
    assert store is not None
    count = 0
    for part in trust.split(_BEGIN)[1:]:
        body, end, _ = part.partition(_END)
        if not end:
            continue
        try:
            store.add_cert(crypto.load_certificate(crypto.FILETYPE_PEM, _BEGIN + body + end + b"\n"))
            count += 1
        except (crypto.Error, ValueError):
            continue
    return count
