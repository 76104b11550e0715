"""Progress of an operation without a plan: its figures, and the words around them."""

from dataclasses import dataclass

from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.console.operations import labels
from pgqueue_admin.formatting import audit_verbs
from pgqueue_admin.models import Operation, RetryPlan
from pgqueue_admin.services.operations.queries import CurrentState

State = Operation.State
RUNNING = (State.WAITING, State.RUNNING)


@dataclass(frozen=True, slots=True)
class SettledCount:
    """Outcomes of retried messages, as far as known; ``rest``: no outcome was reported yet."""

    succeeded: int
    dead_again: int
    rest: int


@dataclass(frozen=True, slots=True)
class OperationProgress:
    """``finishing``: it is cancelled but a chunk still runs, so no figure is final."""

    operation: Operation
    finishing: bool = False
    now: list[CurrentState] | None = None  # current states of the set; None if unknown

    @property
    def came(self) -> SettledCount | None:
        """Outcomes of a retry; None for other kinds: discarded or restored messages have no outcome."""
        if self.now is None or self.operation.kind != Operation.Kind.RETRY:
            return None
        of = {now.state: now.of_this for now in self.now}
        succeeded, dead_again = of.get("succeeded", 0), of.get("dead_again", 0)
        return SettledCount(succeeded, dead_again, max(0, self.operation.done - succeeded - dead_again))

    @property
    def plan(self) -> RetryPlan | None:
        """None: only a staged retry has a plan."""
        return None

    @property
    def running(self) -> bool:
        return self.operation.state in RUNNING

    @property
    def moves(self) -> bool:
        return self.running or self.finishing

    @property
    def acts_class(self) -> str:
        """Class of the cancel button: an open page hides it when nothing is left to cancel."""
        return "b bad" if self.running else "off"

    @property
    def acted(self) -> int:
        return self.operation.done + self.operation.skipped + self.operation.failed

    @property
    def left(self) -> int:
        return max(0, self.operation.count - self.acted)

    @property
    def percent(self) -> int:
        """Progress in per cent: never 100 before all are acted on, and never 0 once one is."""
        if not self.left:
            return 100
        return min(99, max(1 if self.acted else 0, round(100 * self.acted / self.operation.count)))

    @property
    def bar(self) -> list[tuple[str, int, int]]:
        """Class, start and width of each part, in messages; each has its own texture."""
        o, came = self.operation, self.came
        said = [("ok", o.done)]
        if came:
            said = [("ok", came.succeeded), ("deadf", came.dead_again), ("k-flight", came.rest)]
        parts, start = [], 0
        for name, width in (*said, ("deadf", o.failed), ("skip-f", o.skipped)):
            parts.append((name, start, width))
            start += width
        return parts

    @property
    def past(self) -> str:
        return audit_verbs.past(self.operation.kind)

    @property
    def title(self) -> str:
        """The title of its page: progress, and outcomes so far."""
        o, came = self.operation, self.came
        far = f"{self.percent} %, " if self.running else ""
        again = f", {came.dead_again:,} dead again" if came and came.dead_again else ""
        return f"{labels.what(o)}: {far}{o.state}{again}"

    @property
    def verdict(self) -> str:
        if self.finishing:
            return labels.FINISHING
        came = self.came
        return labels.ended(self.operation, *((came.succeeded, came.dead_again) if came else ()))

    @property
    def spoken(self) -> str:
        """Announced once at the end, and again when each outcome is known: not with every count between."""
        known = self.finishing or not (self.came and self.came.rest)
        return self.verdict if known else labels.ended(self.operation)

    @property
    def live_left(self) -> SafeString:
        """The number that is left, in a button or a question: it is updated there, too."""
        return format_html('<span data-live="op.{}.left">{}</span>', self.operation.pk, f"{self.left:,}")

    @property
    def question(self) -> str:
        return labels.cancel_question(self.operation, settings.PGQUEUE["ENVIRONMENT"])

    @property
    def button(self) -> SafeString:
        where = settings.PGQUEUE["ENVIRONMENT"] or "unnamed"
        return format_html("Cancel the remaining {} in {}", self.live_left, where)
