"""Inspection of requests: a process of its own, the engine, between a client and the host that was decided on.

    client ── door ── supervisor ──(two connected sockets)──► engine ── mitmproxy's layers
                          ▲  gate decides, dials, records        │
                          └───────────── channel ◄───────────────┘

| module | runs in | what it has |
|---|---|---|
| `channel` | both | the messages between the two, and the sockets that go with them |
| `installed`, `process` | supervisor | which mitmproxy is there; the start of the engine's process |
| `client` | supervisor | passes connections to the worker, answers its questions |
| `engine` | engine | its start: CA, imports, rehearsal; forks the worker that serves, and another one when that dies |
| `session_ca`, `ca_key` | engine | the CA and its key, made before anything else is imported |
| `absent`, `rehearsal` | engine | parts of mitmproxy that are left out; one exchange that imports all others |
| `unchanged` | engine | the check that no file which is imported was changed by the command |
| `worker`, `inspected`, `side` | worker | the loop, one connection, one of its sockets |
| `connection_requests` | worker | the requests of a connection, each with its decision and its end |
| `captured` | both | for a HAR file: the heads, and the beginnings of bodies |
| `layers`, `strict_http`, `speed` | worker | mitmproxy's layers for one host: changed, stricter, and faster |
| `tls_contexts`, `tls_connection` | worker | TLS to both sides |
| `authority` | engine, worker | the CA's certificates for clients |
| `request_check` | both | checks of a head that come before any rule |
| `heads`, `refusals` | worker | mitmproxy's messages, checked; our own answers |
| `secret_flow` | worker | secrets that are put into a request, and masked in its answer |
| `secret_places`, `stream_replace` | both | placeholders in heads and bodies |
| `allowance` | worker | how many bytes a connection with a budget may pass |
| `sealing` | worker | the limits and the seccomp filter, after which it can open nothing and dial nobody |

Rules:
1. Only the modules of the engine and the worker import mitmproxy; the supervisor never does.
2. The worker gets sockets that are connected. It never opens a file or a connection, even if an attacker controls it.
3. It asks before the first byte of a request goes on; the supervisor decides and records first (INV-3, INV-5).
4. The supervisor checks every message. One that is wrong, or an answer that does not come, ends the worker, and its
   connections are reset. Nothing is ever passed on without inspection instead (INV-1).
"""
