"""Base admin of engine tables: the table may be missing, or its database may not answer."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError, Locked, TimedOut
from pgqueue_admin.dialects.postgresql.connect_options import LOOK_SECONDS
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.models.queue_database import queue_database, through_django

_NO_TABLES = "The engine's tables are not in this database. They are made by: manage.py engine_schema"


class EngineTableAdmin(ReadOnlyAdmin):
    """Each view returns its page, or the reason why the queue database fails: nothing has been done then."""

    title = ""

    def is_there(self, connection: Connection) -> bool:
        """Whether the table exists."""
        raise NotImplementedError

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return self._asked(request, partial(self._list, request, extra_context))

    def _list(self, request: HttpRequest, extra_context: dict[str, Any] | None) -> HttpResponse:
        return super().changelist_view(request, extra_context)

    def change_view(self, request: HttpRequest, object_id: str, *more: Any, **options: Any) -> HttpResponse:
        return self._asked(request, partial(super().change_view, request, object_id, *more, **options))

    def history_view(self, request: HttpRequest, object_id: str, *more: Any, **options: Any) -> HttpResponse:
        return self._asked(request, partial(super().history_view, request, object_id, *more, **options))

    def delete_view(self, request: HttpRequest, *more: Any, **options: Any) -> HttpResponse:
        return self._asked(request, partial(super().delete_view, request, *more, **options))

    def _asked(self, request: HttpRequest, page: Callable[[], HttpResponse]) -> HttpResponse:
        try:
            with queue_database().read_session() as connection:
                there = self.is_there(connection)
            if not there:
                return self._away(request, _NO_TABLES)
            with through_django():
                answer = page()
                return answer.render() if isinstance(answer, TemplateResponse) else answer  # rendering queries, too
        except DatabaseError as error:
            return self._away(request, said(error))

    def _away(self, request: HttpRequest, trouble: str) -> HttpResponse:
        shown = {**self.admin_site.each_context(request), "title": self.title, "trouble": trouble}
        return TemplateResponse(request, "pgqueue_admin/admin/away.html", shown)


def said(error: DatabaseError) -> str:
    if not isinstance(error, TimedOut) or isinstance(error, Locked):
        return str(error)
    limit = duration(LOOK_SECONDS)
    return f"The queue database was too slow: what is asked here is stopped after {limit}. {error.detail}"
