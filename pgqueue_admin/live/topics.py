"""The registry of live topics. The console registers renderers when the web process starts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# A renderer gets what follows the colon of "queue:12" and returns inner HTML by key. Keys that start with @ are not
# places on the page: @at (the sample's time), @title, @say (what the live region announces).
Render = Callable[[str], Mapping[str, str]]
# The part after an address's colon, in one spelling; None if invalid. Addresses that mean the same share one rendering,
# however they are written. Called on the event loop: it may query no database.
Argument = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    render: Render
    argument: Argument
    woken_by: frozenset[str]  # NOTIFY channels
    narrowed: bool = False  # whether it can show only visible queues; else a person with a queue scope does not get it


_topics: dict[str, Topic] = {}


def nothing(_: str) -> str:
    """For a topic about one thing alone."""
    return ""


def register(name: str, render: Render, *woken_by: str, argument: Argument = nothing, narrowed: bool = False) -> None:
    _topics[name] = Topic(name, render, argument, frozenset(woken_by), narrowed)


def find(address: str) -> tuple[Topic, str] | None:
    """The topic and its argument: ``queue:12`` is topic ``queue`` about ``12``."""
    name, _, said = address.partition(":")
    topic = _topics.get(name)
    argument = topic.argument(said) if topic else None
    return (topic, argument) if topic and argument is not None else None


def channels() -> set[str]:
    """Every channel that wakes a topic."""
    return {channel for topic in _topics.values() for channel in topic.woken_by}
