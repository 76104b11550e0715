"""Downloads what a search of the archive finds, as a file that is sent while it is read."""

import logging
from collections.abc import Generator
from time import monotonic, sleep
from typing import Any

import django.db
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import path, reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from pgqueue_admin.archive.export_reader import ArchiveWalk
from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.archive import export, search
from pgqueue_admin.console.archive.export import Exported
from pgqueue_admin.console.chunked_download import FromThread
from pgqueue_admin.console.messages import columns, payload_columns
from pgqueue_admin.dialects import errors
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import database_clock, outage, search_turns, session_shares
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import audit_exports, content_access
from pgqueue_admin.services.masking import reveals

log = logging.getLogger(__name__)

MOST = 1_000_000  # messages in one file
SECONDS = 600.0  # for one file
QUIET = 15.0  # seconds without a byte: proxies close an idle connection after a minute
TURN = 2 * search_turns.BETWEEN  # seconds after a text search, in which a page of the same person gets its turn


@require_POST
def exported(request: HttpRequest) -> HttpResponseBase:
    """POST, though it reads: it writes an audit entry, and no link or prefetch may start one."""
    access = content_access.of(request.user)
    query = search.read(request.POST.get("q"), access)
    refusal = permissions.refusal_on_page(request.user, "export")
    if refusal or query.error:
        why = f"it {refusal}." if refusal else f"{query.error.wrong}: {query.error.why}"  # type: ignore[union-attr]
        return _refused(request, why)
    fields = [] if access.refusal else payload_columns.asked(request.POST) or []
    file = export.FORMATS.get(request.POST.get("format", ""), export.CsvFile)(access, fields)
    pieces = ArchiveExport(request.user, query, file).pieces()
    try:
        first = next(pieces)
    except errors.DatabaseError as error:
        told = query_errors.query_error(error)
        return _refused(request, f"{told.sentence} {told.detail}")
    answer = StreamingHttpResponse(FromThread(first, pieces), content_type=file.content_type)
    answer["Content-Disposition"] = f'attachment; filename="archive.{file.name}"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


def _refused(request: HttpRequest, why: str) -> HttpResponseBase:
    responses.refused(request, f"Nothing was exported: {why}")
    return responses.back(request, f"{reverse('archive')}?{urlencode({'q': request.POST.get('q', search.DEAD)})}")


class ArchiveExport:
    """One person's export of one search. The consumer closes ``pieces``."""

    def __init__(self, person: Any, query: search.ArchiveSearch, file: export.Format):
        self._person, self._query, self._file = person, query, file
        self._walk = ArchiveWalk(query.filter)
        self._ends_at = monotonic() + SECONDS
        self._access = content_access.of(person)
        self._is_revealed = self._access.revealed_until is not None
        self._count = 0
        self._said_at = monotonic()

    def pieces(self) -> Generator[bytes]:
        """One piece per read. Raises DatabaseError before the first piece; a later error is written into the file.

        A piece is empty if its read found nothing, so that the export can be closed in between. If the reader
        disconnects, the file has no last line, and the audit entry says how far it got.
        """
        with queue_database().exporting():
            messages = self._read()
            noted = audit_exports.begin(self._person, self._query.text, self._file.name, self._file.fields)
            ended = "the connection was lost"
            try:
                began = export.Began(noted.who, database_clock.now(), self._query.text)
                yield self._file.head(began).encode("utf-8", "replace") + self._lines(messages)
                why = ""
                while not (self._walk.is_over or why):
                    messages, why = self._next()
                    yield self._lines(messages) if messages else self._nothing_yet()
                end = export.Ended(self._count, why)
                yield self._file.end(end).encode()
                ended = why or "whole"
            except Exception:
                ended = "an error of this program, which its log has"
                raise
            finally:
                audit_exports.end(noted, self._count, ended)

    def _next(self) -> tuple[list[Exported], str]:
        """The next messages, and the reason if there are no more."""
        if monotonic() > self._ends_at:
            return [], f"It stopped after {SECONDS:.0f} s."
        try:
            if self._is_revealed and not reveals.lasts(self._person):
                return [], "What had been revealed is hidden again."
            found, room = self._read(), MOST - self._count
        except errors.Busy:
            return [], ""  # another search of this person is running: the read waited for it, and waits again
        except errors.DatabaseError as error:
            return [], error.sentence
        except django.db.Error as error:  # the console's database keeps search turns and reveals
            log.warning("An export of %s ended: %s", self._person, error)
            return [], f"The console's database {outage.describe(error)}."
        return found[:room], "" if len(found) <= room else f"It stopped at {pluralize(MOST, 'message')}."

    def _read(self) -> list[Exported]:
        """Read on the person's behalf: each piece is read after the page's middleware has cleared the person."""
        before, searches = session_shares.person.set(self._person.pk), self._walk.searches
        try:
            with queue_database().read_session(searching=searches) as connection:
                messages = self._walk.read(connection)
                ids = [each.id for each in messages] if self._file.fields else []
                found = columns.archived(connection, ids, self._access) if ids else {}
        finally:
            session_shares.person.reset(before)
        if searches:
            sleep(TURN)
        return [Exported(each, found[each.id][1] if each.id in found else None) for each in messages]

    def _nothing_yet(self) -> bytes:
        if monotonic() - self._said_at < QUIET:
            return b""
        self._said_at = monotonic()
        return self._file.reading(self._count).encode()

    def _lines(self, messages: list[Exported]) -> bytes:
        self._count += len(messages)
        self._said_at = monotonic()
        return self._file.lines(messages).encode("utf-8", "replace")


urlpatterns = [path("archive/export/", exported, name="archive_export")]
