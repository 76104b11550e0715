"""A search as a tree of terms and operators."""

from dataclasses import dataclass

Bound = int | str | float | None  # a number, an instant as ISO 8601 with a zone, or (float) so many seconds ago

Key = tuple[str, int]  # time of death, as the database writes it, and seq


@dataclass(frozen=True, slots=True)
class Lane:
    """Messages older than ``newest``, down to ``oldest`` inclusive. ``which``: dead, others, or all of a search.

    Lane ``after``: the messages following ``newest``, nearest first. ``most`` is twice a window, because new messages
    arrive meanwhile.
    """

    which: str
    newest: Key | None = None
    oldest: Key | None = None
    most: int = 100_000


@dataclass(frozen=True, slots=True)
class Term:
    """``how``: has (a part, or as the field defines), is (exactly), starts. Empty field: anywhere in a message.

    ``path``: a header's name, or the keys in a body. ``keys``: what the value was resolved to in this archive, such as
    an owner's fingerprints.
    """

    field: str
    value: str
    how: str = "has"
    path: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """From ``low`` inclusive to ``high`` exclusive; for died, sent, attempts and size. ``text``: as typed."""

    field: str
    text: str
    low: Bound = None
    high: Bound = None


@dataclass(frozen=True, slots=True)
class Excluded:
    node: "Node"


@dataclass(frozen=True, slots=True)
class AllOf:
    nodes: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    nodes: tuple["Node", ...]


Node = Term | Span | Excluded | AllOf | AnyOf

_TEXTS = {"", "message", "headers", "header", "body", "conversation"}


def reads_text(node: Node) -> bool:
    """Whether the search scans texts row by row, not columns alone."""
    match node:
        case Term(field=field):
            return field in _TEXTS
        case Excluded(node=inner):
            return reads_text(inner)
        case AllOf(nodes=nodes) | AnyOf(nodes=nodes):
            return any(map(reads_text, nodes))
    return False


def reads_json(node: Node) -> bool:
    """Whether it parses bodies as JSON, which servers before 16 cannot attempt without an error."""
    match node:
        case Term(field="body", path=path):
            return bool(path)
        case Excluded(node=inner):
            return reads_json(inner)
        case AllOf(nodes=nodes) | AnyOf(nodes=nodes):
            return any(map(reads_json, nodes))
    return False
