"""Builds the tree of message copies by cause; of too many, keeps those nearest to the requested one."""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pgqueue_admin.formatting.conversations.copy import MessageCopy
from pgqueue_admin.formatting.conversations.sighting import Sighting, SightingSource

MOST, NEAREST = 200, 50


@dataclass(frozen=True, slots=True)
class Conversation:
    """``copies``: all, each after its cause; ``shown``: those that fit on a page."""

    copies: list[MessageCopy]
    shown: list[MessageCopy]
    focus: MessageCopy | None
    folded: list[tuple[str, int]]  # hidden copies by type, most first

    @property
    def messages(self) -> int:
        return len({each.message_id for each in self.copies})

    @property
    def endpoints(self) -> list[str]:
        """Endpoints that sent or handled any of it."""
        return list(dict.fromkeys(name for each in self.copies for name in (each.sender, each.place) if name))

    @property
    def dead(self) -> list[MessageCopy]:
        return [each for each in self.copies if each.is_dead]

    @property
    def waiting(self) -> list[MessageCopy]:
        return [each for each in self.copies if each.is_waiting]

    @property
    def open_ended(self) -> list[MessageCopy]:
        """Copies whose outcome no source tells."""
        return [each for each in self.copies if not (each.is_dead or each.is_waiting or each.is_over)]

    @property
    def of_focus(self) -> list[MessageCopy]:
        """All copies of the message in focus."""
        return [each for each in self.copies if self.focus and each.message_id == self.focus.message_id]

    def begins(self) -> datetime | None:
        """By the senders' clocks."""
        return min((each.sent_at for each in self.copies if each.sent_at), default=None)

    def ends(self) -> datetime | None:
        return max((each.ends for each in self.copies if each.ends), default=None)


def build(sightings: Iterable[Sighting], focus: Collection[str] = ()) -> Conversation:
    """``focus``: ids of the requested message; without it, the focus is a message that needs attention."""
    copies = _copies(sightings)
    _connect(copies)
    ordered = _in_order(copies)
    chosen = _chosen(ordered, focus)
    shown = ordered if len(ordered) <= MOST else _nearest(ordered, chosen)
    visible = set(map(id, shown))
    rest = Counter(each.type for each in ordered if id(each) not in visible)
    return Conversation(ordered, shown, chosen, rest.most_common())


def _copies(sightings: Iterable[Sighting]) -> dict[tuple[str, str], MessageCopy]:
    found: dict[tuple[str, str], MessageCopy] = {}
    for each in sightings:
        key = each.message_id, each.place
        if key in found:
            found[key].sightings.append(each)
        else:
            found[key] = MessageCopy(*key, [each])
    return found


def _connect(copies: dict[tuple[str, str], MessageCopy]) -> None:
    """Link each copy to its cause; if no source has the cause, infer it."""
    by_id: dict[str, list[MessageCopy]] = {}
    for each in copies.values():
        by_id.setdefault(each.message_id, []).append(each)
    for each in list(copies.values()):
        if each.related_to and each.related_to != each.message_id:
            each.parent = _cause(each, copies, by_id)
    for each in copies.values():
        if each.is_concluded and each.related_to != each.message_id:
            each.parent = next(iter(by_id.get(each.related_to, [])), None)
    _break_circles(list(copies.values()))
    for each in copies.values():
        if each.parent:
            each.parent.children.append(each)


def _cause(
    of: MessageCopy, copies: dict[tuple[str, str], MessageCopy], by_id: dict[str, list[MessageCopy]]
) -> MessageCopy:
    """A message is sent while its cause is handled, so the cause's copy is at its sender."""
    same = by_id.get(of.related_to, [])
    if at_sender := copies.get((of.related_to, of.sender)):
        return at_sender
    if same and (of.was_edited or not of.sender or not any(each.is_event for each in same)):
        return same[0]
    made = _concluded(of, same)
    copies[made.message_id, made.place] = made
    by_id.setdefault(made.message_id, []).append(made)
    return made


def _concluded(of: MessageCopy, same: Sequence[MessageCopy]) -> MessageCopy:
    """Inferred: the cause was handled by the sender of its effect; without a known sender, nothing more is known."""
    known = same[0].sightings[0] if same else None
    seen = Sighting(
        SightingSource.CONCLUDED,
        of.related_to,
        of.sender,
        "handled" if of.sender and not of.was_edited else "not known",
        type=known.type if known else "",
        is_event=known.is_event if known else False,
        sender=known.sender if known else "",
        sender_host=known.sender_host if known else "",
        related_to=known.related_to if known else "",
        sent_at=known.sent_at if known else None,
    )
    return MessageCopy(of.related_to, of.sender, [seen])


def _break_circles(copies: list[MessageCopy]) -> None:
    """If messages name each other as their cause, the earliest becomes the root."""
    done: set[int] = set()
    for start in copies:
        path: dict[int, MessageCopy] = {}
        each: MessageCopy | None = start
        while each is not None and id(each) not in done and id(each) not in path:
            path[id(each)] = each
            each = each.parent
        if each is not None and id(each) in path:
            way = list(path.values())
            first = min(way[way.index(each) :], key=_by_time)
            first.parent, first.in_circle = None, True
        done.update(path)


def _by_time(copy: MessageCopy) -> tuple[bool, float, str, str]:
    at = copy.sent_at
    return at is None, at.timestamp() if at else 0.0, copy.message_id, copy.place


def _in_order(copies: dict[tuple[str, str], MessageCopy]) -> list[MessageCopy]:
    """Each before its effects, in order of sending."""
    ordered, stack = list[MessageCopy](), sorted((c for c in copies.values() if not c.parent), key=_by_time)[::-1]
    while stack:
        each = stack.pop()
        each.depth = each.parent.depth + 1 if each.parent else 0
        ordered.append(each)
        stack.extend(sorted(each.children, key=_by_time, reverse=True))
    return ordered


def _chosen(copies: list[MessageCopy], focus: Collection[str]) -> MessageCopy | None:
    asked = [each for each in copies if each.message_id in focus]
    dead = [each for each in asked or copies if each.is_dead]
    waiting = [each for each in asked or copies if each.is_waiting]
    seen = [each for each in copies if not each.is_concluded]
    return next(iter([*dead, *waiting, *asked, *seen, *copies]), None)


def _nearest(copies: list[MessageCopy], chosen: MessageCopy | None) -> list[MessageCopy]:
    """Breadth-first along causes and effects; when exhausted, continue from the beginning."""
    found, near, others = dict[int, MessageCopy](), deque([chosen] if chosen else []), iter(copies)
    while len(found) < NEAREST:
        each = near.popleft() if near else next(others, None)
        if each is None:
            break
        if id(each) not in found:
            found[id(each)] = each
            near.extend([*([each.parent] if each.parent else []), *each.children])
    return [each for each in copies if id(each) in found]
