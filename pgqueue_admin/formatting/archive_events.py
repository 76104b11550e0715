"""An archived message's events, from people or by itself, as lines of its story."""

from typing import NamedTuple


class EventWords(NamedTuple):
    """``title``, an icon, and a tone: good, crit or none."""

    title: str
    icon: str
    tone: str


_WORDS = {
    "retried": ("Retried by {who}", "back", ""),
    "edited and retried": ("Edited and retried by {who}, as a new message", "back", ""),
    "discarded": ("Discarded by {who}", "quiet", ""),
    "restored": ("Restored by {who}", "back", ""),
    "called back": ("Called back by {who} before anybody had received it", "back", ""),
    "moved": ("Moved by {who} into another queue, while it waited", "back", ""),
    "moved out": ("Moved to the dead by {who}, while it waited", "back", ""),
    "copied": ("Copied by {who}, as a new message", "back", ""),
    "succeeded": ("Succeeded in {who}", "ok", "good"),
    "died again": ("Died again, as a new dead message", "dead", "crit"),
}


def words(verb: str, who: str) -> EventWords:
    """Also for verbs that only another version writes."""
    title, icon, tone = _WORDS.get(verb, (f"{verb.capitalize()} by {{who}}", "info", ""))
    return EventWords(title.replace("{who}", who), icon, tone)
