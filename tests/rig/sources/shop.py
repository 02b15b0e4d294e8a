"""A development server as a page needs one: `shop.py NAME PORT [CERTIFICATE KEY]`. Sets a cookie, shows its name,
echoes a WebSocket. Without TLS it serves only who opened localhost:PORT, as JupyterLab does by Host and the origin of a
WebSocket, and Django by the Origin of a form.
"""

import base64
import hashlib
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME, PORT, CERTIFICATE = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
OWN = f"localhost:{PORT}"
PAGE = f"<!doctype html><title>{NAME}</title><h1>{NAME}</h1><script>window.ready = true</script>"
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Origin"] != f"http://{OWN}":
            self.send_error(403, "Origin checking failed")
            return
        self.send_response(303)
        self.send_header("Location", f"http://{OWN}/thanks")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        if self.headers["Host"] != OWN and not CERTIFICATE:
            self.send_error(403, "a foreign Host")
        elif self.headers.get("Upgrade") and self.headers.get("Origin") != f"http://{OWN}" and not CERTIFICATE:
            self.send_error(403, "a foreign Origin")
        elif self.headers.get("Upgrade", "").lower() == "websocket":
            self._echo()
        elif self.path == "/cookie":
            self._send(self.headers.get("Cookie", ""))
        elif self.path == "/host":
            self._send(self.headers["Host"])
        elif self.path == "/thanks":
            self._send("thanks")
        elif self.path == "/":
            self._send(PAGE, "text/html")
        else:
            self.send_error(404)

    def _send(self, text: str, kind: str = "text/plain") -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Set-Cookie", f"owner={NAME}; Path=/; Domain=localhost")
        self.send_header("Access-Control-Allow-Origin", f"http://{OWN}")
        self.send_header("Access-Control-Allow-Credentials", "true")
        self.end_headers()
        self.wfile.write(data)

    def _echo(self) -> None:
        """One message, masked as browsers send it, comes back with our name before it."""
        digest = hashlib.sha1((self.headers["Sec-WebSocket-Key"] + GUID).encode(), usedforsecurity=False).digest()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(digest).decode())
        self.end_headers()
        size = self.rfile.read(2)[1] & 0x7F
        mask = self.rfile.read(4)
        text = bytes(byte ^ mask[place % 4] for place, byte in enumerate(self.rfile.read(size)))
        reply = NAME.encode() + b":" + text
        self.wfile.write(bytes((0x81, len(reply))) + reply)
        self.rfile.read(2)
        self.close_connection = True

    def log_message(self, *words: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", PORT), Shop)
if CERTIFICATE:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*CERTIFICATE)
    server.socket = context.wrap_socket(server.socket, server_side=True)
print("serving", flush=True)
server.serve_forever()
