"""Fetches one page by HTTP, in a separate process: `python -I page.py`, URL and accepted types on two lines of stdin.

It is a process because a name lookup cannot be stopped in any other way. It imports nothing of this project, takes
proxy and certificates from its variables as every program does, and prints the final URL, the type and the page.
"""

from __future__ import annotations

import sys

MAX_PAGE = (1 << 20) - 8192  # with the two lines before it, less than what is read of a program
MAX_REDIRECTS = 4


def main() -> int:
    """0 if there is a page."""
    import base64
    from http.client import HTTPException
    from typing import IO
    from urllib.parse import unquote, urlsplit
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Careful(HTTPRedirectHandler):
        """Follows a few redirects, by TLS only."""

        max_redirections = MAX_REDIRECTS

        def redirect_request(
            self, req: Request, fp: IO[bytes], code: int, msg: str, headers: object, newurl: str
        ) -> Request | None:
            if urlsplit(newurl).scheme != "https":
                return None
            return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]

    url, accept = sys.stdin.read(4096).split("\n")[:2]
    try:
        parts = urlsplit(url)
        if parts.scheme != "https":
            return 1
        request = Request(  # noqa: S310 (https, as was just seen)
            parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), headers={"Accept": accept}
        )
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
        with build_opener(Careful).open(request, timeout=5) as reply:
            head = f"{reply.url}\n{reply.headers.get_content_type()}\n"
            sys.stdout.buffer.write(head.encode() + reply.read(MAX_PAGE))
    except (OSError, ValueError, HTTPException):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
