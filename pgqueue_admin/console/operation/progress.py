"""How far an operation is: figures of the row, drawn alike by the page and by the stream."""

from dataclasses import dataclass

from django.template.loader import render_to_string

from pgqueue_admin.console import operation_words
from pgqueue_admin.console.numbers import whole
from pgqueue_admin.records.models import Operation
from pgqueue_admin.wording import acts

State = Operation.State
RUNNING = (State.WAITING, State.RUNNING)


@dataclass(frozen=True, slots=True)
class Bar:
    """Widths of the bar's parts, in messages; each has its own texture."""

    done: int
    failed: int
    skipped: int
    total: int

    @property
    def parts(self) -> list[tuple[str, int, int]]:
        """Class, start, width."""
        starts = (0, self.done, self.done + self.failed)
        widths = (self.done, self.failed, self.skipped)
        return list(zip(("ok", "deadf", "skip-f"), starts, widths, strict=True))


@dataclass(frozen=True, slots=True)
class Progress:
    operation: Operation

    @property
    def running(self) -> bool:
        return self.operation.state in RUNNING

    @property
    def acted(self) -> int:
        return self.operation.done + self.operation.skipped + self.operation.failed

    @property
    def left(self) -> int:
        return max(0, self.operation.count - self.acted)

    @property
    def percent(self) -> int:
        """Never 100 before all are acted on, and never 0 once one is."""
        if not self.left:
            return 100
        return min(99, max(1 if self.acted else 0, round(100 * self.acted / self.operation.count)))

    @property
    def bar(self) -> Bar:
        o = self.operation
        return Bar(o.done, o.failed, o.skipped, max(1, o.count))

    @property
    def past(self) -> str:
        return acts.past(self.operation.kind)

    @property
    def verdict(self) -> str:
        return operation_words.ended(self.operation)


def of(operation: Operation) -> Progress:
    return Progress(operation)


def live(number: str) -> dict[str, str]:
    """For an open page: the whole section, and what is spoken when it ends."""
    operation = Operation.objects.filter(pk=whole(number) or 0).first()
    if operation is None:
        return {}
    progress = of(operation)
    about = {"operation": operation, "progress": progress}
    drawn = {f"op.{number}.progress": render_to_string("pgqueue_admin/operations/progress.html", about)}
    drawn[f"op.{number}.state"] = render_to_string("pgqueue_admin/operations/state.html", about)
    ended = "" if progress.running else f"Operation {number} has ended: {progress.verdict}"
    return {**drawn, "@say": ended}
