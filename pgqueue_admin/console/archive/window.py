"""The window that a text search covered, as URLs and forms carry it from page to page."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pgqueue_admin.archive import indexed_texts
from pgqueue_admin.archive.search_terms import Key, Lane
from pgqueue_admin.console import pagination
from pgqueue_admin.dialects import visible_queues

_LANES = ("dead", "others", "all", *indexed_texts.LANES)
_MOST = 3
_TIME = re.compile(r"-?infinity|[0-9]{4,6}-[0-9]{2}-[0-9]{2} [0-9:]{8}(\.[0-9]{1,6})?\+00( BC)?", re.ASCII)


def pack(lanes: tuple[Lane, ...]) -> str:
    return pagination.pack(*([lane.which, lane.newest, lane.oldest] for lane in lanes))


def unpack(text: str | None) -> tuple[Lane, ...] | None:
    """None for an invalid window. The statement bounds how many rows are read, not the window."""
    lanes = pagination.unpack(text)
    if lanes is None or len(lanes) > _MOST:
        return None
    found = [_lane(each) for each in lanes]
    return None if None in found or _is_of_all(found) else tuple(each for each in found if each)


def _is_of_all(lanes: Iterable[Lane | None]) -> bool:
    """Whether a person with scopes requests an index lane, which is never offered to them (text_search.by_index)."""
    return visible_queues.current() is not None and any(each and each.which in indexed_texts.LANES for each in lanes)


def covered(lanes: tuple[Lane, ...], state: str) -> str:
    """The window as search terms for an action on messages of this state: " died:>=…"; empty if it covers all."""
    which = "dead" if state == "dead" else "others"
    terms = ""
    for lane in lanes:
        if lane.which in (which, "all"):
            terms += _term("<=", lane.newest) + _term(">=", lane.oldest)
    return terms


def instant(key: Key | None) -> datetime | None:
    """None for a time beyond the calendar, which other programs may write."""
    try:
        return datetime.fromisoformat(key[0]) if key else None
    except ValueError:
        return None


def is_time(text: str) -> bool:
    """Whether this is a time as the database writes it."""
    return _TIME.fullmatch(text) is not None


def _term(compared: str, key: Key | None) -> str:
    at = instant(key)
    return f" died:{compared}{at.isoformat(timespec='microseconds')}" if at else ""


def _lane(given: Any) -> Lane | None:
    match given:
        case [str(which), newest, oldest] if which in _LANES:
            lane = Lane(which, _key(newest), _key(oldest))
            is_whole = (lane.newest or newest is None) and (lane.oldest or oldest is None)
            return lane if is_whole else None
    return None


def _key(given: Any) -> Key | None:
    match given:
        case [str(at), int(seq)] if is_time(at) and abs(seq) < 2**63 and not isinstance(seq, bool):
            return at, seq
    return None
