"""Crashing messages: in flight at several crashes of a process, and not known to have left their queue."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count
from django.db.models.functions import Now

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.models import InFlightAtCrash

SHOWN = 50  # crashes on a message's page: an endpoint restarted for a day has thousands
LIMIT = 3  # a process can crash for many reasons; a third crash with the same message in flight is no accident


@dataclass(frozen=True)
class CrashingMessage:
    """``deaths``: crashes, newest first, never empty."""

    deaths: list[InFlightAtCrash]

    @property
    def newest(self) -> InFlightAtCrash:
        return self.deaths[0]

    @property
    def row_id(self) -> UUID:
        return self.newest.row_id

    @property
    def seq(self) -> int:
        return self.newest.seq

    @property
    def endpoint(self) -> str:
        return self.newest.endpoint

    @property
    def address(self) -> Address:
        return Address(self.newest.schema, self.newest.table)

    @property
    def count(self) -> int:
        return len(self.deaths)

    @property
    def shown(self) -> list[InFlightAtCrash]:
        return self.deaths[:SHOWN]

    @property
    def more(self) -> int:
        """Number of crashes that are not shown."""
        return self.count - len(self.shown)

    @property
    def alone(self) -> int:
        """Crashes with no other message in flight: either this message is to blame, or no message is."""
        return sum(not death.others_in_flight for death in self.deaths)

    @property
    def first_at(self) -> datetime:
        return self.deaths[-1].died_at


def suspects(endpoint: str = "") -> list[CrashingMessage]:
    """Of one endpoint or of all, the most recent first. Excludes the lease queue: its rows count their attempts, and
    the last attempt ends the message."""
    unsettled = InFlightAtCrash.objects.filter(resolved_at=None, **({"endpoint": endpoint} if endpoint else {}))
    unsettled = unsettled.exclude(schema=QUEUE.schema, table=QUEUE.table)
    often = unsettled.values("row_id").annotate(deaths=Count("pk")).filter(deaths__gte=LIMIT).values("row_id")
    return _grouped(unsettled.filter(row_id__in=often))


def suspect(row_id: UUID) -> CrashingMessage | None:
    """Also finds a message that has left its queue since."""
    found = _grouped(InFlightAtCrash.objects.filter(row_id=row_id))
    return found[0] if found else None


def settle(row_id: UUID) -> None:
    """Mark a message that has left its queue."""
    InFlightAtCrash.objects.filter(row_id=row_id, resolved_at=None).update(resolved_at=Now())


def _grouped(deaths: Iterable[InFlightAtCrash]) -> list[CrashingMessage]:
    found: dict[UUID, list[InFlightAtCrash]] = defaultdict(list)
    for death in sorted(deaths, key=lambda each: each.died_at, reverse=True):
        found[death.row_id].append(death)
    return [CrashingMessage(each) for each in found.values()]
