"""What is known of a queue without a table: its dead messages, endpoint, warnings and acts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from pgqueue_admin.archive import search_query, store
from pgqueue_admin.archive.messages import ArchivedMessage, ArchiveFilter
from pgqueue_admin.console import query_errors
from pgqueue_admin.console.overview import activity as changes
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import Alert, AuditEntry, Endpoint, Queue
from pgqueue_admin.models.queue_database import is_watched
from pgqueue_admin.services.queues import subject

LATEST = 10


@dataclass(frozen=True, slots=True)
class Archived:
    dead: store.CappedCount
    all: store.CappedCount
    newest: ArchivedMessage | None


@dataclass
class KnownQueue:
    """A queue by its address, whether or not the sampler has ever seen its table."""

    address: Address

    @property
    def canonical(self) -> str:
        return subject(self.address)

    @property
    def is_watched(self) -> bool:
        return is_watched(self.address)

    @property
    def is_anything(self) -> bool:
        """Whether anything is known of it. An archive that could not be read counts: it may know it."""
        died_here = self.archived and self.archived.all.number
        return bool(died_here or self.archive_trouble or self.endpoint or self.warnings or self.changes)

    @cached_property
    def in_archive(self) -> tuple[Archived | None, query_errors.QueryError | None]:
        return query_errors.read(self._archived)

    @property
    def archived(self) -> Archived | None:
        return self.in_archive[0]

    @property
    def archive_trouble(self) -> query_errors.QueryError | None:
        """None also without an archive: then it holds nothing of the queue."""
        problem = self.in_archive[1]
        return None if problem and problem.kind == "gone" else problem

    @property
    def dead_path(self) -> str:
        return _archive(f"state:dead {search_query.died_in(self.canonical)}")

    @property
    def all_path(self) -> str:
        return _archive(search_query.died_in(self.canonical))

    @property
    def trends_path(self) -> str:
        asked = {"endpoint": self.endpoint.name} if self.endpoint else {"queue": self.canonical}
        return f"{reverse('trends')}?{urlencode(asked)}"

    @cached_property
    def endpoint(self) -> Endpoint | None:
        return Endpoint.objects.filter(schema=self.address.schema, table=self.address.table).first()

    @cached_property
    def warnings(self) -> Sequence[Alert]:
        return list(Alert.objects.filter(queue=self.canonical).order_by("-opened_at")[:LATEST])

    @cached_property
    def changes(self) -> list[changes.RecentChange]:
        about = AuditEntry.objects.filter(noun="queue", subject=self.canonical)
        return [changes.of_entry(entry) for entry in about.order_by("-id")[:LATEST]]

    @cached_property
    def namesakes(self) -> list[Address]:
        """Existing queues with its name in another schema, or in other capitals."""
        named = Queue.objects.filter(table__iexact=self.address.table, gone_since=None)
        return [each for row in named[:LATEST] if (each := Address(row.schema, row.table)) != self.address]

    def _archived(self, connection: Connection) -> Archived:
        died_here = ArchiveFilter(state="", queue=self.canonical)
        page = store.page(connection, died_here, limit=1)
        cap = settings.PGQUEUE["CAP"]
        dead = store.count(connection, ArchiveFilter(queue=self.canonical), cap)
        return Archived(dead, store.count(connection, died_here, cap), next(iter(page.messages), None))


def _archive(q: str) -> str:
    return f"{reverse('archive')}?{urlencode({'q': q})}"
