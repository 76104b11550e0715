"""Whether a page holds an element, an attribute or a link that somebody's text made."""

from html.parser import HTMLParser
from typing import NamedTuple

THEIRS = "periodic-task-overrides"  # of django-celery-beat's own form; the policy of every page keeps it from running
LOADING = {"iframe", "object", "embed", "base"}
TURNING = {*"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.text: list[str] = []
        self._data = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.found += [f"<{tag} {name}={value}>" for name, value in attributes if _bad(tag, name, value or "")]
        self._data = tag == "script" and given.get("type") == "application/json"
        written_here = tag == "script" and not given.get("src") and not self._data and given.get("id") != THEIRS
        if tag in LOADING or written_here:
            self.found.append(f"<{tag}> {given}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self._data and "<" in data:
            self.found.append(f"markup in data: {data[:80]}")

    def handle_endtag(self, tag: str) -> None:
        self._data = False


def _bad(tag: str, name: str, value: str) -> bool:
    if name.startswith("on") or name.startswith("hx-on") or not name.replace("-", "").replace(":", "").isalnum():
        return True
    if name in {"href", "src", "action", "formaction"}:
        return ":" in value.split("/")[0].split("?")[0].split("#")[0] and not value.startswith(("http:", "https:"))
    return name == "style" or (name == "id" and value == "pwned") or (tag == "img" and value == "x")


class Found(NamedTuple):
    foreign: list[str]  # what would run, load or lead where we did not mean it
    turned: list[str]  # text in which a character got through that turns what stands beside it around


def read(page: str) -> Found:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return Found(reader.found, [text for text in reader.text if TURNING & set(text)])
