"""How far a staged retry is: its stages, and every class of outcome with its count and texture."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.console.operations import labels
from pgqueue_admin.console.operations.plain_progress import OperationProgress, SettledCount
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import Operation, RetryPlan
from pgqueue_admin.models.retry_plan import Stage
from pgqueue_admin.services.operations import plans, runner, staged_retry
from pgqueue_admin.services.operations.queries import CurrentState

State = Operation.State
ENDED = (State.DONE, State.CANCELLED, State.LAPSED)
Counts = Mapping[str, Mapping[str, int]]  # by stage, by class
DEAD = ("same", "other", "dead")


class OutcomeClass(NamedTuple):
    """``fill``: class of its part of the bar; ``key``: of its legend; ``word`` names it, ``said`` fits a sentence."""

    name: str
    fill: str
    key: str
    word: str
    said: str
    note: str = ""

    @property
    def tone(self) -> str:
        return "hot" if self.name in DEAD else "mild" if self.name == "failed" else ""


CLASSES = (
    OutcomeClass("succeeded", "ok", "sw-ok", "Succeeded", "succeeded"),
    OutcomeClass("picked", "pick", "sw-pick", "Picked up", "picked up", "not heard of yet"),
    OutcomeClass("sent", "sent-f", "sw-sent", "Sent, waiting", "sent and waiting", "in the queue"),
    OutcomeClass("same", "deadf", "k-dead", "Dead, same", "dead again of the same cause", "same cause"),
    OutcomeClass("other", "other-f", "sw-other", "Dead, another", "dead again of another cause", "another cause"),
    OutcomeClass("dead", "other-f", "sw-other", "Dead, cause unknown", "dead again", "not grouped yet"),
    OutcomeClass("unknown", "unk-f", "sw-unk", "Not known", "not known", "no report"),
    OutcomeClass("skipped", "skip-f", "sw-skip", "Skipped", "skipped", "not dead any more"),
    OutcomeClass("failed", "fail-f", "sw-fail", "Failed", "failed and still dead where they were", "still dead"),
)
NAMES = tuple(each.name for each in CLASSES)
ROUGH = ("same", "other", "dead", "unknown", "skipped", "failed")  # classes that did not go smoothly


class Figure(NamedTuple):
    outcome: OutcomeClass
    number: int


class StageBox(NamedTuple):
    """A box of the stage strip. ``step``: done, now, held, or empty for a later one."""

    title: str
    says: str
    step: str


class StageRow(NamedTuple):
    title: str
    state: str
    size: int
    parts: list[tuple[str, int, int]]
    label: str
    succeeded: int
    on_the_way: int
    dead: int
    rest: int


@dataclass(frozen=True, slots=True)
class StagedProgress(OperationProgress):
    """``counts``: empty if unknown; ``is_known`` tells."""

    counts: Counts = field(default_factory=dict)
    is_known: bool = True

    @property
    def plan(self) -> RetryPlan:  # each staged retry has one
        return self.operation.plan

    @property
    def running(self) -> bool:
        """Whether there may be messages to send, also while it is paused or has stopped."""
        return self.operation.state in runner.STEERED

    @property
    def moves(self) -> bool:
        return self.running or self.operation.state == State.FOLLOWING

    def of(self, *classes: str) -> int:
        return sum(counted.get(each, 0) for counted in self.counts.values() for each in classes)

    @property
    def came(self) -> SettledCount | None:
        if not self.is_known:
            return None
        return SettledCount(self.of("succeeded"), self.of(*DEAD), self.of("sent", "picked", "unknown"))

    @property
    def acted(self) -> int:
        o = self.operation
        return self.of(*NAMES) if self.is_known else o.done + o.skipped + o.failed

    @property
    def figures(self) -> list[Figure]:
        """All figures; the rare one of an unknown cause only if it is not zero."""
        found = [Figure(each, self.of(each.name)) for each in CLASSES]
        return [each for each in found if each.number or each.outcome.name != "dead"]

    @property
    def bar(self) -> list[tuple[str, int, int]]:
        return list(_parts({each: self.of(each) for each in NAMES}))

    @property
    def label(self) -> str:
        return f"{self.acted:,} of {self.operation.count:,}: {self._listed()}; {self.left:,} not sent"

    def _listed(self) -> str:
        return ", ".join(f"{n:,} {each.said}" for each in CLASSES if (n := self.of(each.name))) or "none sent yet"

    @property
    def verdict(self) -> str:
        """Every class that is not zero, and what is left."""
        left = f", {self.left:,} not sent and still dead where they were" if self.left else ""
        return f"{self._listed()}{left}"

    @property
    def spoken(self) -> str:
        return self.verdict

    @property
    def state_word(self) -> str:
        plan, state = self.plan, self.operation.state
        if state == State.WAITING:
            return "waits for a receiver" if plan.says else "waits for a worker"
        if state == State.RUNNING:
            return "holding" if plan.held else f"running, {self._rate_now()}"
        if state == State.PAUSED:
            return f"paused by {plan.decided_by}"
        if state == State.STOPPED:
            return "stopped by itself"
        if state == State.FOLLOWING:
            sent = "the rest cancelled" if self.operation.cancelled_by else "sent"
            return f"{sent}; outcome of {self.of('sent', 'picked', 'unknown'):,} unknown"
        return self._ended_word()

    def _ended_word(self) -> str:
        if self.operation.state == State.LAPSED:
            return "lapsed, nobody received"
        word = "cancelled" if self.operation.state == State.CANCELLED else "ended"
        unknown = self.of("sent", "picked", "unknown")
        return f"{word}, {unknown:,} unknown" if unknown else word

    @property
    def state_drawn(self) -> str:
        """The state whose shape and colour it has."""
        if self.operation.state == State.RUNNING and self.plan.held:
            return "waiting"
        return "cancelled" if self.operation.state == State.FOLLOWING else str(self.operation.state)

    def _rate_now(self) -> str:
        stage = self._current()
        return f"{stage.rate:g}/s" if stage and stage.rate else "the trial"

    @property
    def plan_said(self) -> str:
        return plans.of(self.plan).said

    @property
    def limits(self) -> str:
        """The limits that stop and hold it, with present values."""
        plan, said = self.plan, []
        if plan.stop_dead:
            said.append(f"Stops by itself at {plan.stop_dead:,} dead of any {plan.stop_of:,}: now {plan.dead_now:,}.")
        if plan.hold_above is not None:
            now = "not known" if plan.ready_now is None else f"{plan.ready_now:,}"
            said.append(f"Holds above {plan.hold_above:,} ready: now {now}.")
        return " ".join(said)

    def _current(self) -> Stage | None:
        """The first stage with messages to send."""
        return next((each for each in self.plan.stages if self._left_of(each)), None)

    def _left_of(self, stage: Stage) -> int:
        return self.counts.get(stage.name, {}).get("open", 0)

    @property
    def boxes(self) -> list[StageBox]:
        return list(self._boxes())

    def _boxes(self) -> Iterator[StageBox]:
        plan, current = self.plan, self._current() if self.running else None
        ended = self.operation.state in ENDED
        watches = plan.says.startswith("Watch") and self.running
        for stage in plan.stages:
            here = stage is not None and current is not None and stage.name == current.name and not watches
            step = self._step(here, self._left_of(stage) == 0)
            yield StageBox(_title(stage), self._said_of(stage), step)
            if stage.name == "try":
                step = self._step(watches, current is None or current.name != "try")
                yield StageBox(f"Watch {duration(plan.watch_seconds)}", plan.says if watches else "", step)
        follows = "done" if ended else "now" if self.operation.state == State.FOLLOWING else ""
        yield StageBox("Follow", f"each to its end, {duration(plan.give_up_seconds)} at most", follows)

    def _step(self, here: bool, passed: bool) -> str:
        if here:
            return "held" if self.plan.held or self.operation.state in (State.PAUSED, State.STOPPED) else "now"
        return "done" if passed else ""

    def _said_of(self, stage: Stage) -> str:
        counted, left = self.counts.get(stage.name, {}), self._left_of(stage)
        if left == stage.count:
            return f"{left:,} {'to go' if self.running else 'not sent'}"
        dead = sum(counted.get(each, 0) for each in DEAD)
        parts = [
            f"{counted.get('succeeded', 0):,} succeeded",
            f"{dead:,} dead again" if dead else "",
            f"{left:,} {'to go' if self.running else 'not sent'}" if left else "",
        ]
        if left and stage.rate and self.operation.state == State.RUNNING:
            parts.append(f"≈ {duration(left / stage.rate)} left")
        return ", ".join(filter(None, parts))

    @property
    def rows(self) -> list[StageRow]:
        return [self._row(stage) for stage in self.plan.stages]

    def _row(self, stage: Stage) -> StageRow:
        counted, left = self.counts.get(stage.name, {}), self._left_of(stage)
        said = ", ".join(f"{counted[each.name]:,} {each.said}" for each in CLASSES if counted.get(each.name))
        return StageRow(
            _title(stage),
            self._state_of(stage),
            stage.count,
            list(_parts(counted)),
            f"{said or 'none sent'}; {left:,} to go",
            counted.get("succeeded", 0),
            counted.get("sent", 0) + counted.get("picked", 0),
            sum(counted.get(each, 0) for each in DEAD),
            sum(counted.get(each, 0) for each in ("unknown", "skipped", "failed")),
        )

    def _state_of(self, stage: Stage) -> str:
        if not self._left_of(stage):
            return "passed"
        if not self.running:
            return "not sent"
        return "now" if stage == self._current() else "to come"

    @property
    def question(self) -> str:
        where = settings.PGQUEUE["ENVIRONMENT"] or "unnamed"
        return (
            f"Cancel the unsent messages of operation {self.operation.pk}, {labels.what(self.operation)}, in {where}?"
        )

    @property
    def cancel_text(self) -> str:
        sent = pluralize(self.acted, "message")
        return f"{sent} stay as they are; unsent ones stay dead where they are. It takes effect within one chunk."

    @property
    def live_rate(self) -> SafeString:
        return format_html('<span data-live="op.{}.rate">{}</span>', self.operation.pk, f"{self.plan.rest_rate:g}")


def of(connection: Connection, operation: Operation, now: list[CurrentState]) -> StagedProgress:
    rows = staged_retry.tally(connection, operation.plan, given_up=operation.state in ENDED)
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        counts.setdefault(row.stage, {})[row.what] = row.count
    return StagedProgress(operation, now=now, counts=counts)


def _title(stage: Stage) -> str:
    return f"Try {stage.count:,}" if stage.rate is None else f"{stage.count:,} at {stage.rate:g}/s"


def _parts(counted: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Class, start and width of each part."""
    start = 0
    for each in CLASSES:
        width = counted.get(each.name, 0)
        yield each.fill, start, width
        start += width
