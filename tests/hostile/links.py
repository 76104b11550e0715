"""The addresses that a page holds, and which of them lead out of a path."""

import re
from html.parser import HTMLParser

# Static files are below the same path where a program starts with it: here they were named before.
_ELSEWHERE = ("/static/",)
_LEADS = re.compile("href|src|action|formaction|poster|content|hx-(get|post|push-url)|data-.*")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attributes if _LEADS.fullmatch(name)]


def out_of(path: str, html: str) -> list[str]:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    paths = [each for each in reader.found if re.match("/[^/]|/$", each)]
    return [each for each in paths if not each.startswith((path, *_ELSEWHERE))]
