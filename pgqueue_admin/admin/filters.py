"""Filters of the archive: each on an indexed column, their choices from counts of the dead."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest

from pgqueue_admin.archive import store
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import ArchivedMessage
from pgqueue_admin.models.queue_database import queue_database

_MOST = 40


class _Exactly(SimpleListFilter):
    column: ClassVar[str]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        try:
            found = sorted({name for name in self.names() if name})[:_MOST]
        except DatabaseError:
            found = []
        chosen = self.value()
        return [(name, name) for name in ([chosen] if chosen and chosen not in found else []) + found]

    def names(self) -> Iterable[str | None]:
        raise NotImplementedError

    def queryset(self, request: HttpRequest, queryset: QuerySet[ArchivedMessage]) -> QuerySet[ArchivedMessage]:
        return queryset.filter(**{self.column: self.value()}) if self.value() else queryset


class QueueFilter(_Exactly):
    title = "queue"
    parameter_name = column = "queue"

    def names(self) -> Iterable[str | None]:
        with queue_database().reading() as connection:
            return [each.queue for each in store.counts(connection)]


class ExceptionFilter(_Exactly):
    title = "exception"
    parameter_name = column = "exception_type"

    def names(self) -> Iterable[str | None]:
        with queue_database().reading() as connection:
            return [each.exception_type for each in store.causes(connection)]
