"""A search as a tree: terms, and how they are joined."""

from dataclasses import dataclass

Bound = int | str | float | None  # a number, an instant as ISO 8601 with a zone, or (float) so many seconds ago

Key = tuple[str, int]  # when it died, as the database writes it, and its seq


@dataclass(frozen=True, slots=True)
class Lane:
    """Messages before ``newest`` and down to ``oldest``, it included: the dead ones, the others, or all of a search.

    Of ``after`` those next after ``newest``, the nearest first. No more than ``most``: twice of what one window is, for
    others come meanwhile.
    """

    which: str
    newest: Key | None = None
    oldest: Key | None = None
    most: int = 100_000


@dataclass(frozen=True, slots=True)
class Term:
    """``how``: has (a part, or as the field takes it), is (exactly), starts. No field: anywhere in a message.

    ``path``: of a header its name, in a body its keys.
    ``keys``: what the value stands for in this archive, where that was looked up: fingerprints of an owner.
    """

    field: str
    value: str
    how: str = "has"
    path: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """From ``low`` on and below ``high``; of died, sent, attempts and size. ``text`` is how it was typed."""

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
    """Whether it has to be looked for in texts, row by row, and not in columns alone."""
    match node:
        case Term(field=field):
            return field in _TEXTS
        case Excluded(node=inner):
            return reads_text(inner)
        case AllOf(nodes=nodes) | AnyOf(nodes=nodes):
            return any(map(reads_text, nodes))
    return False


def reads_json(node: Node) -> bool:
    """Whether a body has to be read as JSON, which servers before 16 cannot try without failing."""
    match node:
        case Term(field="body", path=path):
            return bool(path)
        case Excluded(node=inner):
            return reads_json(inner)
        case AllOf(nodes=nodes) | AnyOf(nodes=nodes):
            return any(map(reads_json, nodes))
    return False
