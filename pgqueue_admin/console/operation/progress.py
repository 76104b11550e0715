"""How far an operation is: figures of the row, drawn alike by the page and by the stream."""

from dataclasses import dataclass

from django.conf import settings
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.console import operation_words
from pgqueue_admin.console.numbers import whole
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.operations import service
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
    """``finishing``: it is cancelled, and a chunk of it still runs, so no figure is the last one."""

    operation: Operation
    finishing: bool = False

    @property
    def running(self) -> bool:
        return self.operation.state in RUNNING

    @property
    def moves(self) -> bool:
        return self.running or self.finishing

    @property
    def acts_class(self) -> str:
        """Of the button that cancels: on an open page it goes when nothing is left to cancel."""
        return "b bad" if self.running else "off"

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
        return operation_words.FINISHING if self.finishing else operation_words.ended(self.operation)

    @property
    def live_left(self) -> SafeString:
        """The number that is left, where a button or a question names it: it goes on there, too."""
        return format_html('<span data-live="op.{}.left">{}</span>', self.operation.pk, f"{self.left:,}")

    @property
    def question(self) -> str:
        return operation_words.cancel_question(self.operation, settings.PGQUEUE["ENVIRONMENT"])

    @property
    def button(self) -> SafeString:
        where = settings.PGQUEUE["ENVIRONMENT"] or "unnamed"
        return format_html("Cancel the remaining {} in {}", self.live_left, where)


def of(operation: Operation) -> Progress:
    try:
        return Progress(operation, service.in_hand(operation))
    except DatabaseError:  # what is known is shown
        return Progress(operation)


def live(number: str) -> dict[str, str]:
    """For an open page: the whole section, and what is spoken when it ends."""
    operation = Operation.objects.filter(pk=whole(number) or 0).first()
    if operation is None:
        return {}
    progress = of(operation)
    about = {"operation": operation, "progress": progress}
    drawn: dict[str, str] = {f"op.{number}.progress": render_to_string("pgqueue_admin/operations/progress.html", about)}
    drawn[f"op.{number}.state"] = render_to_string("pgqueue_admin/operations/state.html", about)
    drawn[f"op.{number}.left"], drawn[f"op.{number}.acts"] = f"{progress.left:,}", progress.acts_class
    ended = "" if progress.moves else f"Operation {number} has ended: {progress.verdict}"
    return {**drawn, "@say": ended}
