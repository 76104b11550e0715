"""Archived messages in Django admin: find them, then retry, discard or restore through an operation (C4)."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin import SimpleListFilter
from django.contrib.admin.utils import display_for_value
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from pgqueue_admin.admin import engine_table, list_cells
from pgqueue_admin.admin.engine_table import EngineTableAdmin
from pgqueue_admin.archive import schema, store
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.out_of_range_times import Beyond
from pgqueue_admin.models import ArchivedMessage
from pgqueue_admin.models.queue_database import queue_database, through_django
from pgqueue_admin.services import content_access
from pgqueue_admin.services.masking import reveals
from pgqueue_admin.services.operations import selection
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.operations.kinds import kind_of
from pgqueue_admin.services.permissions import database_lets, refusal_for

# Filters of the archive: each on an indexed column, with choices from counts of dead messages.
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
        with queue_database().read_session() as connection:
            return [each.queue for each in store.counts(connection)]


class ExceptionFilter(_Exactly):
    title = "exception"
    parameter_name = column = "exception_type"

    def names(self) -> Iterable[str | None]:
        with queue_database().read_session() as connection:
            return [each.exception_type for each in store.causes(connection)]


Chosen = QuerySet[ArchivedMessage]
_TIMES = {"sent_at": "sent", "died_at": "died", "resolved_at": "decided", "ended_at": "ended"}  # shown as these
_LONG = ("headers", "stack_trace", "details")
_CONTENT = {"headers", "exception_message", "stack_trace", "details"}


def _time(field: Any) -> Callable[[Any, ArchivedMessage], str]:
    """Show a time beyond Python's calendar as itself: Django would show the calendar's end."""

    @admin.display(description=field.verbose_name)
    def said(_: Any, message: ArchivedMessage) -> str:
        instant = getattr(message, field.name)
        return str(instant) if isinstance(instant, Beyond) else display_for_value(instant, "-")

    return said


@admin.register(ArchivedMessage)
class ArchiveAdmin(EngineTableAdmin):
    title = "Archived messages"
    console_page = "archived_message"
    list_display = ("id", "state", "died", "in_queue", "type", "exception", "handled", "decided_by")
    list_filter = ("state", QueueFilter, ExceptionFilter)  # each served by an index
    search_fields = ("message_id",)  # accepts any copied id: see get_search_results
    search_help_text = (
        "An id, exactly: archive, message, row, or conversation in the headers of the newest "
        f"{store.HEADERS_READ:,}; else a message type, whole or its last part."
    )
    actions = ("retry", "discard", "restore")
    fields = (
        *(_TIMES.get(each.name, each.name) for each in ArchivedMessage._meta.fields if each.name != "seq"),
        "history",
    )
    readonly_fields = (*_TIMES.values(), "history", "withheld", "masked")
    sent, died, decided, ended = map(_time, map(ArchivedMessage._meta.get_field, _TIMES))

    @admin.display(description="queue")
    def in_queue(self, message: ArchivedMessage) -> SafeString:
        return list_cells.table(message.queue)

    @admin.display(description="type")
    def type(self, message: ArchivedMessage) -> SafeString:
        return list_cells.type_name(message.message_type)

    @admin.display(description="exception")
    def exception(self, message: ArchivedMessage) -> SafeString:
        return list_cells.type_name(message.exception_type) or list_cells.fitting(message.retry_blocked_reason)

    @admin.display(description="endpoint")
    def handled(self, message: ArchivedMessage) -> SafeString:
        return list_cells.fitting(message.endpoint)

    @admin.display(description="decided by")
    def decided_by(self, message: ArchivedMessage) -> SafeString:
        return list_cells.fitting(message.resolved_by, 20)

    @admin.display(description="what was done to it")
    def history(self, message: ArchivedMessage) -> SafeString | str:
        with queue_database().read_session() as connection:
            events = store.events(connection, message.pk)
        lines = ((f"{each.at:%Y-%m-%d %H:%M:%S %Z}", each.who, each.verb, each.target or "") for each in events)
        return format_html_join("\n", "<p>{} {}: {} {}</p>", lines) or "Nothing yet."

    @admin.action(description="Retry…", permissions=["retry"])
    def retry(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self._freeze("retry", request, chosen)

    @admin.action(description="Discard…", permissions=["discard"])
    def discard(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self._freeze("discard", request, chosen)

    @admin.action(description="Restore…", permissions=["restore"])
    def restore(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self._freeze("restore", request, chosen)

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return refusal_for(request.user, "retry") is None

    def has_discard_permission(self, request: HttpRequest) -> bool:
        return refusal_for(request.user, "discard") is None

    def has_restore_permission(self, request: HttpRequest) -> bool:
        return refusal_for(request.user, "restore") is None

    @admin.display(description="content")
    def withheld(self, _: ArchivedMessage) -> str:
        return content_access.REFUSED

    @admin.display(description="content")
    def masked(self, _: ArchivedMessage) -> str:
        return content_access.MASKED

    def get_fields(self, request: HttpRequest, obj: ArchivedMessage | None = None) -> Any:
        """Hide content that is withheld or masked: admin shows a text whole or not at all."""
        access = content_access.of(request.user)
        if not access.withheld:
            return self.fields
        return [*(name for name in self.fields if name not in _CONTENT), "withheld" if access.refusal else "masked"]

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> ArchivedMessage | None:
        found: ArchivedMessage | None = super().get_object(request, object_id, from_field)
        if found is not None:
            reveals.opened_archived(request.user, found.pk, found.queue, "admin")
        return found

    def get_actions(self, request: HttpRequest) -> Any:
        """Offer no actions if the queue database would refuse them."""
        return {} if database_lets("retry") else super().get_actions(request)

    def get_queryset(self, request: HttpRequest) -> Chosen:
        """Defer long columns: lists show only short ones."""
        found: Chosen = super().get_queryset(request)
        return found.defer(*_LONG)

    def get_search_results(self, request: HttpRequest, queryset: Chosen, search_term: str) -> tuple[Chosen, bool]:
        if not search_term.strip():
            return queryset, False
        found = _sightings(search_term)
        if not found.rows:
            return queryset.filter(_of_type(search_term.strip().replace("\0", ""))), False
        if found.more:
            self.message_user(request, f"The newest {store.SIGHTINGS} are looked through.", messages.WARNING)
        return queryset.filter(pk__in=[each.id for each in found.rows]), False

    def is_there(self, connection: Connection) -> bool:
        return schema.version(connection) is not None

    def _list(self, request: HttpRequest, extra_context: dict[str, Any] | None) -> HttpResponse:
        if refusal := database_lets("retry"):
            said = f"Nothing can be retried, discarded or restored: {refusal}."
            self.message_user(request, said, messages.WARNING)
        return super()._list(request, extra_context)

    def _freeze(self, kind: str, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        """Freeze the chosen messages into an operation: nothing is done before its confirmation page."""
        try:
            with through_django():
                ids = list(chosen.order_by().values_list("pk", flat=True))
            operation = selection.freeze(kind, ids, request.user, "admin")
            return redirect("admin:pgqueue_operation_confirm", operation.pk)
        except OperationRefused as error:
            why = str(error)
        except DatabaseError as error:
            why = f"Nothing was {kind_of(kind).past}: {engine_table.said(error)}"
        self.message_user(request, why, messages.ERROR)
        return None


def _sightings(text: str) -> store.Sightings:
    """Search by any id; if no message has it, by conversation."""
    with queue_database().read_session() as connection:
        found = store.sightings(connection, text)
        return found if found.rows else store.conversation(connection, text)


def _of_type(name: str) -> Q:
    """Match a whole type name or its last part, as the console's search does."""
    return Q(message_type=name) | Q(message_type__endswith=f".{name}") | Q(message_type__endswith=f"+{name}")
