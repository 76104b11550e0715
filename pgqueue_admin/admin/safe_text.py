"""Text that others wrote, on Django admin's own tables: what turns text around, or has no shape, is marked."""

import re
from typing import Any

from django.http import HttpResponse
from django.template.response import TemplateResponse

from pgqueue_admin.formatting import escape_invisible

_TEXT = re.compile(r">[^<]+")  # never an attribute: a form would send the marks back


def marked(response: HttpResponse) -> HttpResponse:
    """As console pages mark it, once the page is drawn: the templates are Django's."""
    if isinstance(response, TemplateResponse):
        response.add_post_render_callback(_mark)
    return response


def _mark(response: Any) -> None:
    response.content = _TEXT.sub(lambda text: escape_invisible.plain(text[0]), response.content.decode())
