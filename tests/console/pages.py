"""What tests of pages share: how they are asked for, what answers, and what is found in one."""

import json
import re
from collections.abc import Callable
from html import unescape
from typing import TYPE_CHECKING, Any

from django.test import Client

from pgqueue_admin.dialects import Connection

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse

    Answer = _MonkeyPatchedWSGIResponse  # what a Client gives; it has a name for type checkers only
else:
    from django.http import HttpResponse

    Answer = HttpResponse

Connect = Callable[..., Connection]
Page = Callable[..., str]


def shown(client: Client, address: str) -> str:
    """What the page there says, with plain spaces."""
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode().replace("\u00a0", " ")


def drawn(page: str) -> dict[str, Any]:
    """What the charts of Trends are drawn from."""
    found: dict[str, Any] = json.loads(unescape(matched(r'data-trends="([^"]*)"', page)))
    return found


def matched(pattern: str, page: str, flags: int = 0) -> str:
    """What the pattern's first group finds first."""
    match = re.search(pattern, page, flags)
    assert match, pattern
    return match[1]
