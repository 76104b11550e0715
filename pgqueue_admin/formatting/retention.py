"""Sentences on how long data is kept. ``days`` is a retention setting; 0 means for ever."""

from pgqueue_admin.formatting.numbers import pluralize


def kept(days: int) -> str:
    return pluralize(days, "day") if days else "for ever"


def removed(days: int) -> str:
    if not days:
        return "Nothing is removed from the archive by itself."
    return f"What was decided more than {pluralize(days, 'day')} ago is removed from the archive; what is dead stays."


def restorable(days: int) -> str:
    how_long = f"for {pluralize(days, 'day')}" if days else "at any time"
    return f"Restore brings it back {how_long}."
