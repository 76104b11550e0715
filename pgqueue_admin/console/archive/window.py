"""What a search of texts has covered, as addresses and forms carry it from one page to the next."""

import re
from datetime import datetime
from typing import Any

from pgqueue_admin.archive.search_terms import Key, Lane
from pgqueue_admin.console import pagination

_LANES = ("dead", "others", "all")
_TIME = re.compile(r"-?infinity|[0-9]{4,6}-[0-9]{2}-[0-9]{2} [0-9:]{8}(\.[0-9]{1,6})?\+00( BC)?", re.ASCII)


def pack(lanes: tuple[Lane, ...]) -> str:
    return pagination.pack(*([lane.which, lane.newest, lane.oldest] for lane in lanes))


def unpack(text: str | None) -> tuple[Lane, ...] | None:
    """None for what is none, whoever wrote it. How many are read is bounded by the statement, not by these."""
    lanes = pagination.unpack(text)
    if lanes is None or len(lanes) > len(_LANES):
        return None
    found = [_lane(each) for each in lanes]
    return None if None in found else tuple(each for each in found if each)


def covered(lanes: tuple[Lane, ...], state: str) -> str:
    """As terms of a search, of what an act on messages of this state can find there: " died:>=…"; empty for all."""
    which = "dead" if state == "dead" else "others"
    terms = ""
    for lane in lanes:
        if lane.which in (which, "all"):
            terms += _term("<=", lane.newest) + _term(">=", lane.oldest)
    return terms


def instant(key: Key | None) -> datetime | None:
    """None where others wrote a time beyond the calendar."""
    try:
        return datetime.fromisoformat(key[0]) if key else None
    except ValueError:
        return None


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
        case [str(at), int(seq)] if _TIME.fullmatch(at) and abs(seq) < 2**63 and not isinstance(seq, bool):
            return at, seq
    return None
