"""Where an index sends its clients for files: the URLs in a page about one project (pure).

A page is the words of a server. Only http(s) links with a host of their own count, and only a few.
"""

from __future__ import annotations

MAX_HOSTS = 8


def index_links(kind: str, page: bytes, address: str) -> list[str]:
    """Scheme and authority of each link in a page of a Python index, HTML or JSON, that came from *address*."""
    urls = _json_urls(page) if kind.endswith("json") else _html_urls(page)
    return _places(urls, address)


def cargo_links(page: bytes) -> list[str]:
    """The same for `config.json` of a Cargo index: where crates and their search are."""
    document = _json(page)
    values = [document.get(key) for key in ("dl", "api")] if isinstance(document, dict) else []
    return _places([value for value in values if isinstance(value, str)], "")


def _places(urls: list[str], address: str) -> list[str]:
    from urllib.parse import urljoin, urlsplit

    found: dict[str, None] = {}
    for url in urls:
        try:
            parts = urlsplit(urljoin(address, url))
        except ValueError:
            continue
        if parts.scheme in ("http", "https") and parts.netloc:
            found[f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"] = None
        if len(found) >= MAX_HOSTS:
            break
    return list(found)


def _json_urls(page: bytes) -> list[str]:
    document = _json(page)
    files = document.get("files") if isinstance(document, dict) else None
    urls = [each.get("url") for each in files if isinstance(each, dict)] if isinstance(files, list) else []
    return [url for url in urls if isinstance(url, str)]


def _json(page: bytes) -> object:
    import json

    try:
        return json.loads(page)
    except (ValueError, RecursionError):
        return None


def _html_urls(page: bytes) -> list[str]:
    """What stands after `href=` in anchors; an index's pages are plain (PEP 503)."""
    from html import unescape

    urls = []
    for piece in page.decode("utf-8", "replace").split("<a ")[1:]:
        tag = piece.partition(">")[0]
        quoted = tag.partition("href=")[2]
        if quoted[:1] in ('"', "'") and quoted.find(quoted[0], 1) > 0:
            urls.append(unescape(quoted[1 : quoted.index(quoted[0], 1)]))
    return urls
