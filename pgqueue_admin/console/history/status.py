"""The state of reading history: off, no process, libraries being installed, failing, nothing read yet, or well."""

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.history.freshness import HistoryFreshness
from pgqueue_admin.history.runtime.installation import UNDER_WAY
from pgqueue_admin.models import HistoryBatch, processes

OFF, NOBODY, DEAD, INSTALLING, FAILING, NOTHING, WELL = "off", "nobody", "dead", "installing", "failing", "nothing", ""


Opened = tuple[HistoryBatch, bool]


class Notices(NamedTuple):
    """Notices about what holds history back: why nothing is read, open batches, tables that are behind."""

    why: str
    opened: Sequence[Opened]
    stalled: Sequence[Finding]


class HistoryState:
    def __init__(self, freshness: HistoryFreshness):
        self._freshness = freshness

    @cached_property
    def why(self) -> str:
        """Why nothing is read: the first reason that holds. A running process counts more than our own setting."""
        if not self.runs:
            return OFF if not self._freshness.is_on else DEAD if self.process else NOBODY
        if self.process.last_error:
            return INSTALLING if self.process.last_error == UNDER_WAY else FAILING
        return WELL if self.batches or self.has_read else NOTHING

    def notices(self, stalled: Sequence[Finding]) -> Notices:
        """Before the first batch has ended, only the gravest notice: each of the others would repeat it."""
        if self.has_read:
            return Notices(self.why, self.opened, stalled)
        if self.why in {OFF, NOBODY, DEAD, INSTALLING, FAILING}:
            return Notices(self.why, (), ())
        if stalled:
            return Notices(WELL, (), stalled[:1])
        return Notices(self.why, self.opened[:1], ())

    @property
    def has_looked(self) -> bool:
        """Whether a process has searched for tables. Before that, no known table does not mean that there is none."""
        return self.why in {WELL, NOTHING}

    @cached_property
    def has_read(self) -> bool:
        """Also true if there was nothing to read: history is then complete up to a time without any batch."""
        done = HistoryBatch.objects.filter(state=HistoryBatch.State.DONE)
        return self._freshness.watermark is not None or done.exists()

    @cached_property
    def process(self) -> Any:
        """The process with the latest heartbeat, annotated as by ``models.processes``; None: there never was one."""
        return processes.known().filter(role="history").order_by("-heartbeat_at").first()

    @property
    def runs(self) -> bool:
        return bool(self.process and self.process.ended_at is None and not self.process.heartbeat_lost)

    @property
    def silent_since(self) -> datetime:
        """When a process that does not run ended, or sent its last heartbeat."""
        since: datetime = self.process.ended_at or self.process.heartbeat_at
        return since

    @cached_property
    def has_supervisor(self) -> bool:
        return processes.heard_of().filter(role="supervisor").exists()

    @cached_property
    def batches(self) -> list[HistoryBatch]:
        """Batches begun and not ended: being read now, or left behind by a process that is gone."""
        running = HistoryBatch.objects.filter(state=HistoryBatch.State.RUNNING)
        return list(running.select_related("source").order_by("started_at"))

    @property
    def opened(self) -> list[Opened]:
        """Each with whether it is read now.

        Batches begun before the process started were left behind by another one.
        """
        return [(batch, self.runs and _is_later(batch.started_at, self.process.started_at)) for batch in self.batches]


def _is_later(batch: datetime | None, process: datetime) -> bool:
    return batch is None or batch >= process
