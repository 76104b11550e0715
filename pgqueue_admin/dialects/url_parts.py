"""Parses a database's URL, for drivers that do not. Errors show none of it: it may be a part of a password."""

from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from pgqueue_admin.dialects.errors import UrlUnreadable


class UrlParts(NamedTuple):
    host: str
    port: int | None
    user: str
    password: str
    path: str
    more: dict[str, str]


def read(dsn: str, parameters: Collection[str]) -> UrlParts:
    """Raises ValueError, which does not show the unreadable part."""
    try:
        parts = urlsplit(dsn)
        more = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        port = parts.port
    except ValueError:
        raise ValueError(UrlUnreadable().sentence) from None
    if parts.fragment or "@" in parts.query:  # a password with # or ? in it: the rest was parsed as these
        raise ValueError(UrlUnreadable().sentence)
    if unknown := sorted(more.keys() - set(parameters)):
        raise ValueError(f"{unknown[0]} is no parameter of a {parts.scheme}:// URL: there are {', '.join(parameters)}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return UrlParts(parts.hostname or "localhost", port, user, password, unquote(parts.path.lstrip("/")), more)
