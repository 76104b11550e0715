"""Headers too long for a page: senders choose their number and length."""

from itertools import islice

from pgqueue_admin.transport.wire import headers as wire
from pgqueue_admin.transport.wire.headers import Headers, HeadersUnreadable

LONGEST = 65_536  # characters read for a page
MOST = 500  # headers shown
_TRIES = 50  # a value may contain what looks like its end


def read(text: str | None, length: int | None) -> tuple[Headers, str]:
    """The headers, and why they cannot be read. If ``text`` is only the start of ``length`` characters: those it
    contains."""
    try:
        return wire.parse(text), ""
    except HeadersUnreadable as error:
        found = start_of(text or "") if is_cut(text, length) else {}
        return found, "" if found else str(error)


def is_cut(text: str | None, length: int | None) -> bool:
    return len(text or "") < (length or 0)


def start_of(text: str) -> Headers:
    end = len(text)
    for _ in range(_TRIES):
        end = _end_of_value(text, end)
        if end < 0:
            break
        try:
            return wire.parse(text[: end + 1] + "}")
        except HeadersUnreadable:
            continue
    return {}


def _end_of_value(text: str, before: int) -> int:
    end = text.rfind('",', 0, before)
    while end > 0 and text[end - 1] == "\\":  # a quotation mark within a value
        end = text.rfind('",', 0, end)
    return end


def shown(headers: Headers) -> Headers:
    return dict(islice(headers.items(), MOST))
