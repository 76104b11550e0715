"""Helpers for tests of pages: requests, answers and searches in them."""

import json
import re
from collections.abc import Callable
from html import unescape
from typing import TYPE_CHECKING, Any

from django.test import Client

from pgqueue_admin.dialects import Connection

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse

    Answer = _MonkeyPatchedWSGIResponse  # the answer of a Client; only type checkers have a name for it
else:
    from django.http import HttpResponse

    Answer = HttpResponse

Connect = Callable[..., Connection]
Page = Callable[..., str]


def shown(client: Client, address: str) -> str:
    """The page's text with plain spaces."""
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode().replace("\u00a0", " ")


def drawn(page: str) -> dict[str, Any]:
    """The data behind the charts of Trends."""
    found: dict[str, Any] = json.loads(unescape(matched(r'data-trends="([^"]*)"', page)))
    return found


def matched(pattern: str, page: str, flags: int = 0) -> str:
    """The first match of the pattern's first group."""
    match = re.search(pattern, page, flags)
    assert match, pattern
    return match[1]
