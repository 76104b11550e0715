"""A body in a text area: the text shown, and back to the bytes that are sent."""

import json
import re
from dataclasses import dataclass

from pgqueue_admin.archive.message_edit import BOM, MOST_BYTES
from pgqueue_admin.formatting import body_views, escape_invisible, pretty_print

_LONE_LF = re.compile(r"(?<!\r)\n")
_PROLOG = 200  # characters in which XML declares its encoding
_ENCODING = re.compile(r"""^\s*<\?xml[^>]*?\bencoding\s*=\s*["']([\w.:-]{1,40})["']""")
_CHARSET = re.compile(r"""\bcharset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_UTF8 = {"utf-8", "utf8", "us-ascii", "ascii"}


@dataclass(frozen=True, slots=True)
class EditableBody:
    """``shown``: the text area's first content; None if it cannot be edited: see ``blocking_reason``. ``stored``: the
    text as archived, if it can be edited.
    """

    shown: str | None
    blocking_reason: str = ""
    kind: str = "text"  # JSON, XML, text, binary
    has_bom: bool = False
    line_end: str = "\n"
    stored: str = ""

    def sent(self, typed: str) -> bytes | None:
        """The bytes to send; None if nothing was changed: then the stored bytes are sent."""
        text = _one_line_end(typed)
        if self.shown is None or text in {_one_line_end(self.shown), _one_line_end(self.stored)}:
            return None
        return (BOM if self.has_bom else b"") + text.replace("\n", self.line_end).encode("utf-8", "replace")


def of(raw: bytes | None, content_type: str | None) -> EditableBody:
    """``raw`` may be one byte longer than the limit: then it is too long to edit."""
    if raw is None:
        return EditableBody("", kind=body_views.kind_of(b"", content_type))
    kind = body_views.kind_of(raw, content_type)
    if len(raw) > MOST_BYTES:
        return EditableBody(None, f"It has more than {MOST_BYTES:,} bytes: it is sent as it was.", kind)
    try:
        text = raw.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError:
        return EditableBody(None, "It is no UTF-8 text: it is sent as it was.", kind)
    shown = _shown(text, kind)
    if why := _blocking_reason(shown, text, content_type):
        return EditableBody(None, f"{why}: it is sent as it was.", kind)
    return EditableBody(shown, "", kind, raw.startswith(BOM), "\r\n" if "\r\n" in text else "\n", text)


def _blocking_reason(shown: str, text: str, content_type: str | None) -> str:
    """What a text area would lose, or a reader would misread; empty if nothing."""
    if escape_invisible.has_any(shown):
        return "It has characters without a shape, which nobody would see here"
    if "\r\n" in shown and _LONE_LF.search(shown):
        return "It has line ends of two kinds, of which a text area keeps one"
    said = _ENCODING.search(text[:_PROLOG]) or _CHARSET.search(content_type or "")
    return (
        "" if said is None or said[1].lower() in _UTF8 else f"It says that it is {said[1]}, and what is typed is UTF-8"
    )


def fault(text: str, kind: str) -> str:
    """Why a text is not of its kind; empty if it is, or if that cannot be checked."""
    if kind != "JSON":
        return ""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"{error.msg}, line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def lines(text: str, kind: str) -> list[str]:
    """Lines to compare. JSON is indented first, so that a change of layout alone is none."""
    indented = pretty_print.indented_json(text) if kind == "JSON" and not fault(text, kind) else None
    return ("".join(span.text for span in indented) if indented else _one_line_end(text)).splitlines()


def _shown(text: str, kind: str) -> str:
    if kind != "JSON" or fault(text, kind):
        return text
    indented = pretty_print.indented_json(text)
    # only if indented: between two values such a character is whitespace, and an escape there is invalid JSON
    return escape_invisible.in_json("".join(span.text for span in indented)) if indented else text


def _one_line_end(text: str) -> str:
    """Browsers send CR LF for every line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
