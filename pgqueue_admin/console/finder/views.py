"""Finds a message by whatever id a person has copied: message, row, conversation, archive number.

What else is typed is a search of the archive, by its grammar.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from pgqueue_admin.archive import search_query, store, text_search
from pgqueue_admin.archive.messages import ArchiveFilter, archive_id_of
from pgqueue_admin.console import query_errors
from pgqueue_admin.console.archive import search as archive_search
from pgqueue_admin.console.leases.lookup import lease_table
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, SchemaMissing, TableMissing
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import QueueDatabase, looked_at, queue_database
from pgqueue_admin.monitor import browse, discovery, lease_messages
from pgqueue_admin.monitor.message import WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess

SHORTEST, MOST_ALIKE = 2, 20  # one letter is in most names


class SearchHit(NamedTuple):
    url: str
    where: str
    state: str
    type: str
    at: Any


class HeadersRead(NamedTuple):
    """``of`` so many of the newest archived messages; the problem says why of none."""

    of: int
    problem: query_errors.QueryError | None = None


class TextsRead(NamedTuple):
    """Of all archived messages, by index: about so many; 0 where the server has not counted them."""

    of: int


class SearchResult(NamedTuple):
    sightings: list[SearchHit]
    more: bool  # older ones, in the archive
    tables: int  # how many queues were asked for the row id
    unread: list[str]  # and which could not be
    archive: query_errors.QueryError | None = None  # why it could not be searched
    headers: HeadersRead | None = None  # in which a conversation's id was looked for, when no message had the id
    texts: TextsRead | None = None  # in which it was looked for, when no conversation had it either

    @property
    def number(self) -> store.CappedCount:
        return store.CappedCount(len(self.sightings), self.more)


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """The box on top of every page: an id, a queue's name, or a search of the archive."""
    q = request.GET.get("q", "").strip()
    if not q:
        return render(request, "pgqueue_admin/finder/page.html", {"any_id": ""})
    if archive_search.names_a_field(q):
        return redirect(_in_archive(q))
    if queue := _queue(q):
        return queue
    is_id = archive_search.is_one_word(q) or _is_id(q)
    return redirect("find_message", q) if is_id else redirect(_in_archive(q))


def _is_id(q: str) -> bool:
    """Of a text that is a search of its own: senders choose ids, and some have blanks. By indexes only."""
    known, problem = query_errors.read(lambda connection: _told(lambda: store.sightings(connection, q)))
    return bool(known and known[0].rows) or problem is not None


@require_safe
def find(request: HttpRequest, any_id: str) -> HttpResponse:
    found, problem = query_errors.read(lambda connection: _find(connection, any_id))
    found = _with_others(found, _uuid(any_id)) if found else None
    if found and not found.sightings and not found.archive:
        found = _with_texts(found, any_id, content_access.of(request.user))
    if found and len(found.sightings) == 1 and not found.texts:
        return redirect(found.sightings[0].url)
    known = {"any_id": any_id, "found": found, "trouble": problem, "is_uuid": _uuid(any_id) is not None}
    searches = {
        "texts_with_it": _in_archive(search_query.anywhere(any_id)),
        "bodies_with_it": _in_archive(search_query.in_body(any_id)),
    }
    about = {**known, "alike": _alike(any_id), **searches}
    status = 404 if found and not (found.sightings or found.archive) else 200
    return render(request, "pgqueue_admin/finder/page.html", about, status=status)


def _with_others(found: SearchResult, row_id: UUID | None) -> SearchResult:
    """And what waits in the databases that are only looked at; one that does not answer is named."""
    for database in looked_at() if row_id else []:
        look, trouble = query_errors.read(partial(_waiting, of=database, row_id=row_id), database=database)
        waiting, tables, unread = look or ([], 0, [f"all of {database.alias} ({trouble.sentence if trouble else ''})"])
        found = found._replace(
            sightings=[*waiting, *found.sightings], tables=found.tables + tables, unread=[*found.unread, *unread]
        )
    return found


def _with_texts(found: SearchResult, any_id: str, access: ContentAccess) -> SearchResult:
    """And what has it in a text, where an index says so of the whole archive; who may not read texts asks nothing."""
    query = archive_search.read(search_query.anywhere(any_id), access)
    if query.error or not query.reads_rows:
        return found
    look, _ = query_errors.read(lambda connection: _in_texts(connection, query.filter), searching=True)
    return found._replace(sightings=look[0].sightings, more=look[0].more, texts=look[1]) if look else found


def _in_texts(connection: Connection, asked: ArchiveFilter) -> tuple[SearchResult, TextsRead] | None:
    looked = text_search.by_index(connection, asked)
    if looked is None:
        return None
    page = store.page(connection, ArchiveFilter(state="", ids=looked.ids), limit=store.SIGHTINGS)
    hits = [_archived(each) for each in page.messages]
    return SearchResult(hits, page.after is not None, 0, []), TextsRead(text_search.estimate(connection))


def _find(connection: Connection, any_id: str) -> SearchResult:
    found, problem = _told(lambda: store.sightings(connection, any_id))
    waiting, tables, unread = _waiting(connection, queue_database(), _uuid(any_id))
    waiting += _leased(connection, any_id.strip())
    headers = None
    if not (waiting or found.rows or problem):
        found, why = _told(lambda: store.conversation(connection, any_id))
        headers = HeadersRead(store.HEADERS_READ, why)
    archived = [_archived(row) for row in found.rows]
    return SearchResult([*waiting, *archived], found.more, tables, unread, problem, headers)


def _told(look: Callable[[], store.Sightings]) -> tuple[store.Sightings, query_errors.QueryError | None]:
    """The archive may not be there: a database given by URL has no table of ours. One that is there may hold it."""
    try:
        return look(), None
    except (SchemaMissing, TableMissing):
        return store.Sightings([], False), None
    except DatabaseDown:
        raise
    except DatabaseError as error:
        return store.Sightings([], False), query_errors.plain(error)


def _waiting(connection: Connection, of: QueueDatabase, row_id: UUID | None) -> tuple[list[SearchHit], int, list[str]]:
    """By primary key only: headers are not indexed, and reading them all would be a load."""
    found: list[SearchHit] = []
    if row_id is None:
        return found, 0, []
    tables = [table for table in discovery.by_shape(connection, of.schemas) if table.is_counted]
    keyed = [table for table in tables if _is_keyed(table)]
    unread = [table.address.table for table in tables if not _is_keyed(table)]
    for table, message in zip(keyed, browse.messages(connection, keyed, row_id), strict=True):
        if isinstance(message, DatabaseError):
            unread.append(table.address.table)
        elif message:
            found.append(_waits(table.address, message))
    return found, len(keyed), unread


def _leased(connection: Connection, text: str) -> list[SearchHit]:
    """A message of the lease queue by its number; none where that cannot be read: the queue's own page says why."""
    number = archive_id_of(text)
    if number is None:
        return []
    try:
        table = lease_table(connection, QUEUE)
        found = lease_messages.message(connection, table, number) if table else None
    except DatabaseDown:
        raise
    except DatabaseError:
        return []
    url = reverse("lease_message", args=[QUEUE.schema, QUEUE.table, number])
    return [SearchHit(url, QUEUE.table, found.state, found.kind or "", found.created_at)] if found else []


def _is_keyed(table: QueueTable) -> bool:
    return table.has_messages and table.has_primary_key and not table.why_unread


def _waits(address: Address, message: WaitingMessage) -> SearchHit:
    url = reverse("waiting_message", args=[address.schema, address.table, message.id])
    return SearchHit(url, address.table, message.state, message.type, message.sent_at)


def _archived(row: Any) -> SearchHit:
    where = f"archive {row.id:,}"
    return SearchHit(reverse("archived_message", args=[row.id]), where, row.state, row.message_type or "", row.died_at)


def _in_archive(q: str) -> str:
    return f"{reverse('archive')}?{urlencode({'q': q})}"


def _queue(q: str) -> HttpResponse | None:
    """A queue's own name leads to the queue, the start of several to their list."""
    named = list(Queue.objects.filter(table__iexact=q)[:2])
    if len(named) == 1:
        return redirect("queue", schema=named[0].schema, table=named[0].table)
    if named or Queue.objects.filter(table__istartswith=q).exists():
        return redirect(f"{reverse('queues')}?{urlencode({'q': q})}")
    return None


def _alike(text: str) -> list[Address]:
    """Queues whose name contains what was typed."""
    if len(text) < SHORTEST or "\0" in text:
        return []
    found = Queue.objects.filter(table__icontains=text, gone_since=None)[:MOST_ALIKE]
    return [Address(each.schema, each.table) for each in found]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None


urlpatterns = [
    path("messages/", search, name="finder"),
    path("messages/<name:any_id>/", find, name="find_message"),
]
