"""Plans of a staged retry: the defaults, and the limits of each value (CONSOLE 7)."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from pgqueue_admin.archive import schema_columns
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.models import Operation, RetryPlan, queue_lookup
from pgqueue_admin.models.queue_database import is_watched
from pgqueue_admin.services.operations.staged_figures import targets_of

FEW = 20  # a retry of so many messages or fewer needs no plan by default
CALMLY_READY = 100  # the lowest ceiling: five seconds of the rest
NO_PLAN = "Nothing was retried. The engine's tables know no stages yet: run manage.py engine_schema."
MOST_TRIED = 100
FASTEST = 10_000.0
SLOWEST = 0.01


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan as entered; rates in messages a second. ``hold_above``: ready messages in a target; None: never hold."""

    try_first: int = 5
    watch_seconds: int = 60
    then_some: int = 50
    some_rate: float = 5.0
    rest_rate: float = 20.0
    give_up_seconds: int = 1800
    stop_dead: int = 5
    stop_of: int = 50
    hold_above: int | None = None
    waits: bool = True

    def fault(self) -> str:
        """Why the plan is invalid, as a sentence; empty: it is valid."""
        for name, least, most, words in _LIMITS:
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                return f"{words}: {least:,} to {most:,}, you gave {value:,}. Nothing has started."
        if self.stop_dead > self.stop_of:
            return f"It cannot stop at {self.stop_dead:,} dead of any {self.stop_of:,}. Nothing has started."
        return ""

    @property
    def said(self) -> str:
        """``try 5, watch 1 min, 50 at 5/s, the rest at 20/s; give up after 30 min``."""
        tried = f"try {self.try_first:,}, watch {duration(self.watch_seconds)}, " if self.try_first else ""
        some = f"{self.then_some:,} at {self.some_rate:g}/s, the rest" if self.then_some else "all"
        return f"{tried}{some} at {self.rest_rate:g}/s; give up after {duration(self.give_up_seconds)}"

    @property
    def limits_said(self) -> str:
        """``stops at 5 dead of any 50; holds above 100 ready; waits for a receiver``."""
        found = [f"stops at {self.stop_dead:,} dead of any {self.stop_of:,}" if self.stop_dead else "never stops"]
        found.append("never holds" if self.hold_above is None else f"holds above {self.hold_above:,} ready")
        return "; ".join([*found, "waits for a receiver" if self.waits else "starts without a receiver, too"])

    def as_dict(self) -> dict[str, Any]:
        """For the audit."""
        return asdict(self)


_LIMITS: tuple[tuple[str, float, float, str], ...] = (
    ("try_first", 0, MOST_TRIED, "Messages to try first"),
    ("watch_seconds", 0, 86_400, "Seconds to watch"),
    ("then_some", 0, 1_000_000, "Messages in the second stage"),
    ("some_rate", SLOWEST, FASTEST, "Messages a second in the second stage"),
    ("rest_rate", SLOWEST, FASTEST, "Messages a second for the rest"),
    ("give_up_seconds", 10, 7 * 86_400, "Seconds until it gives up"),
    ("stop_dead", 0, 10_000, "Deaths that stop it"),
    ("stop_of", 1, 10_000, "Messages among which deaths are counted"),
    ("hold_above", 1, 100_000, "Ready messages above which it holds"),
)


def careful(operation: Operation) -> Planned:
    """Try 5, watch, 50 at 5/s, the rest at 20/s; the ceiling follows from depths and target depths of the queues."""
    return Planned(hold_above=_ceiling(operation))


def flat(operation: Operation) -> Planned:
    """All at 20/s, without a trial; it still stops and holds."""
    return Planned(try_first=0, watch_seconds=0, then_some=0, hold_above=_ceiling(operation))


def is_needed(operation: Operation) -> bool:
    """Whether a plan is offered by default."""
    return operation.kind == Operation.Kind.RETRY and operation.count > FEW


def are_kept(connection: Connection) -> bool:
    """Whether the engine's tables can store the data of plans."""
    return schema_columns.has(connection, "sent_as", "operation_item")


def of(plan: RetryPlan) -> Planned:
    return Planned(**{each.name: getattr(plan, each.name) for each in fields(Planned)})


def _ceiling(operation: Operation) -> int:
    """Return the largest of: target depths, twice what is ready now, a few seconds of the rest."""
    found = [CALMLY_READY]
    asked = set(filter(is_watched, targets_of(operation)))
    rows = queue_lookup.near(asked).values_list("schema", "table", "target_depth", "latest__ready")
    for schema, table, depth, ready in rows:
        if Address(schema, table) in asked:
            found += [depth or 0, 2 * (ready or 0)]
    return min(max(found), 100_000)
