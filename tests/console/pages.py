"""What tests of pages share: how they are asked for, what answers, and what is found in one."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pgqueue_admin.dialects import Connection

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse

    Answer = _MonkeyPatchedWSGIResponse  # what a Client gives; it has a name for type checkers only
else:
    from django.http import HttpResponse

    Answer = HttpResponse

Connect = Callable[..., Connection]
Page = Callable[..., str]


def matched(pattern: str, page: str, flags: int = 0) -> str:
    """What the pattern's first group finds first."""
    match = re.search(pattern, page, flags)
    assert match, pattern
    return match[1]
