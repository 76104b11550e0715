"""The registry of live topics. The console registers renderers when the web process starts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# A renderer gets what stands behind the colon of "queue:12" and answers with the inner HTML by key. Keys that start
# with @ are not places on the page: @at (the sample's instant), @title, @say (what the live region speaks).
Render = Callable[[str], Mapping[str, str]]
# What an address says after its colon, in one spelling; None where there is no such thing. What is rendered for one is
# rendered for all who mean the same, however they write it. Asked on the event loop: it may ask no database.
Argument = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    render: Render
    argument: Argument
    woken_by: frozenset[str]  # NOTIFY channels
    narrowed: bool = False  # whether it is rendered of the queues that a person may see; else it is not for these


_topics: dict[str, Topic] = {}


def nothing(_: str) -> str:
    """Of a topic that is about one thing alone."""
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
    """Every channel that any topic wants to be woken by."""
    return {channel for topic in _topics.values() for channel in topic.woken_by}
