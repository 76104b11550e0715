"""A conversation as its page shows it: its state, the next steps, and a line for each copy of a message."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from pgqueue_admin.console.conversations.sources import FoundConversation, SourceCoverage
from pgqueue_admin.formatting.conversations import clocks, conversation, flow, headline, sequence, steps
from pgqueue_admin.formatting.conversations.conversation import Conversation
from pgqueue_admin.formatting.conversations.copy import MessageCopy
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.names import listed
from pgqueue_admin.formatting.numbers import pluralize, times

DEEPEST = 4  # levels of a line's indentation
ACTS = 5  # buttons of next steps
# state: the state whose icon and colour it has in components.state
_DRAWN = {
    "failed": "dead", "ready": "waiting", "in flight": "waiting", "handled": "succeeded", "died again": "retried",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NextStep:
    label: str
    link: str


@dataclass(frozen=True, slots=True)
class CopyRow:
    copy: MessageCopy
    is_focus: bool
    now: datetime

    @property
    def indent(self) -> int:
        return min(self.copy.depth, DEEPEST)

    @property
    def which(self) -> str:
        return _DRAWN.get(self.copy.state, self.copy.state)

    @property
    def is_stuck(self) -> bool:
        return self.copy.is_dead or self.copy.state in {"overdue", "expired"}

    @property
    def wait(self) -> float | None:
        return _seconds(self.copy.wait(self.now))

    @property
    def run(self) -> float | None:
        return _seconds(self.copy.run)

    @property
    def notes(self) -> str:
        """Remarks beside the name."""
        found = [
            f"died {times(self.copy.deaths)}" if self.copy.deaths and not self.copy.is_dead else "",
            f"also {listed(self.copy.also)}" if self.copy.also else "",
            "edited" if self.copy.was_edited else "",
            "by what it sent" if self.copy.is_concluded and self.copy.is_over else "",
            "names a message as its cause that it caused itself" if self.copy.in_circle else "",
        ]
        return " · ".join(filter(None, found))


class ConversationPage:
    """Everything that the page shows, derived from what was found."""

    def __init__(self, found: FoundConversation, now: datetime):
        self.known: Conversation = conversation.build(found.seen, found.focus)
        self.covered: list[SourceCoverage] = found.covered
        self.now = now

    @property
    def sentence(self) -> str:
        return headline.sentence(self.known)

    @property
    def tone(self) -> tuple[str, str]:
        """A conversation is not over while an unread source may have more of it."""
        word, tone = headline.tone(self.known)
        return ("not known to be over", "") if word == "over" and self.unread else (word, tone)

    @property
    def unread(self) -> str:
        """Names of the sources that were not read, or not completely."""
        return listed([each.source for each in self.covered if each.failed], 6)

    @property
    def figures(self) -> str:
        """``9 messages, 11 copies, 7 endpoints, 49 min 58 s so far``."""
        copies, endpoints = len(self.known.copies), len(self.known.endpoints)
        said = [
            pluralize(self.known.messages, "message"),
            pluralize(copies, "copy", "copies") if copies != self.known.messages else "",
            pluralize(endpoints, "endpoint"),
            self._took,
        ]
        return ", ".join(filter(None, said))

    @property
    def _took(self) -> str:
        is_open = bool(self.known.dead or self.known.waiting)
        begin, end = self.known.begins(), self.now if is_open else self.known.ends()
        if begin is None or end is None or end < begin:
            return ""
        return f"{duration((end - begin).total_seconds())}{' so far' if is_open else ''}"

    @cached_property
    def next_steps(self) -> list[NextStep]:
        """Dead messages first: each message's page has its actions."""
        dead = [NextStep(f"Open {_name(each)}, dead in {_place(each)}", each.link) for each in self.known.dead]
        queues = {each.last.queue_link: each for each in self.known.waiting if each.last.queue_link}
        stuck = [NextStep(f"See who receives in {_place(each)}", link) for link, each in queues.items()]
        return [step for step in [*dead, *stuck] if step.link][:ACTS]

    @cached_property
    def rows(self) -> list[CopyRow]:
        focus = self.known.focus
        return [
            CopyRow(each, bool(focus and each.message_id == focus.message_id), self.now) for each in self.known.shown
        ]

    @property
    def story_name(self) -> str:
        return _name(self.known.focus) if self.known.focus else ""

    @cached_property
    def steps(self) -> list[steps.ConversationStep]:
        return steps.of(self.known.of_focus, self.now)

    @property
    def story_summary(self) -> str:
        return steps.summary(self.known.of_focus, self.now)

    @cached_property
    def flow(self) -> flow.Flow:
        return flow.flow(self.known.shown, self.now, self.known.focus)

    @cached_property
    def sequence(self) -> sequence.SequenceDrawing:
        return sequence.sequence(self.known.shown, self.now)

    @cached_property
    def clocks(self) -> list[clocks.ClockGap]:
        return clocks.gaps(self.known.copies, self.now)[:5]

    @property
    def not_known(self) -> str:
        """The places of which no source reports what they did."""
        places = dict.fromkeys(
            each.place or "somebody" for each in self.known.copies if each.is_concluded or not _is_told(each)
        )
        return f"what {listed(list(places))} did: no source has it" if places else ""


def _is_told(copy: MessageCopy) -> bool:
    return copy.is_dead or copy.is_waiting or copy.is_over


def _name(copy: MessageCopy) -> str:
    return copy.type or "the message"


def _place(copy: MessageCopy) -> str:
    return copy.place or "a queue"


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()
