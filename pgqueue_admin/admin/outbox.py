"""Outboxes in Django admin: their pending and dispatched records, each record's sends, and dispatch by hand."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseNotFound
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode

from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.admin.list_cells import marked
from pgqueue_admin.alerts import outbox_dispatch
from pgqueue_admin.alerts import outboxes as states
from pgqueue_admin.alerts.outboxes import OutboxState
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import ForeignOutbox
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import outboxes
from pgqueue_admin.services import content_access
from pgqueue_admin.services.operations import confirmation
from pgqueue_admin.services.operations.errors import OperationRefused, OutcomeUnknown
from pgqueue_admin.services.outbox import content
from pgqueue_admin.services.permissions import refusal_for
from pgqueue_admin.transport.settings import SettingsRefused

ROWS = 50
NO_SUCH = "There is no such outbox that may be looked at."


@admin.register(ForeignOutbox)
class OutboxAdmin(ReadOnlyAdmin):
    """Lists all outbox tables, including those that nobody has configured."""

    def get_urls(self) -> list[URLPattern]:
        pages = {"records": self.records, "record": self.record, "dispatch": self.dispatch}
        made = [
            path(f"{name}/", self.admin_site.admin_view(page), name=f"pgqueue_outbox_{name}")
            for name, page in pages.items()
        ]
        return [*made, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Outboxes of other databases link to the console's pages, which only show them."""

        def look(connection: Connection) -> dict[str, Any]:
            return {"title": "Outboxes", "rows": states.load(connection), "elsewhere": states.load_elsewhere()}

        return self._page(request, "outboxes", look)

    def records(self, request: HttpRequest) -> HttpResponse:
        """``state=dispatched`` lists dispatched records, else pending; ``after``: the last id of the page before."""
        sent, after = request.GET.get("state") == "dispatched", request.GET.get("after", "")

        def look(connection: Connection) -> dict[str, Any] | None:
            state = _state(connection, request)
            if state is None:
                return None
            about = {"title": state.name, "row": state, "is_sent": sent}
            if state.figures.unread:
                return about
            listed = outboxes.dispatched if sent else outboxes.pending
            found: list[Any] = [*listed(connection, state.figures.table, ROWS + 1, after)]
            return {**about, "records": found[:ROWS], "next": _next(request, found)}

        return self._page(request, "outbox_records", look)

    def record(self, request: HttpRequest) -> HttpResponse:
        def look(connection: Connection) -> dict[str, Any] | None:
            state = _state(connection, request)
            table = state.figures.table if state else None
            shown = outboxes.record(connection, table, request.GET.get("id", "")) if table else None
            if state is None or shown is None:
                return None
            sends = content.operations_of(shown.operations, content_access.of(request.user))
            return {"title": f"Record of {state.name}", "row": state, "record": shown, "sends": sends}

        return self._page(request, "outbox_record", look)

    def dispatch(self, request: HttpRequest) -> HttpResponse:
        """POST asks for confirmation, naming count, outbox and environment; POST with ``go`` sends."""
        if refusal_for(request.user, "dispatch"):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        ids = request.POST.getlist("record")
        if "go" in request.POST and ids:
            return self._send(request, ids)
        if "keep" in request.POST or not ids:
            self.message_user(request, "Nothing was sent.", messages.INFO)
            return redirect(_records(request))
        return self._page(request, "outbox_dispatch", lambda connection: self._asked(connection, request, ids))

    def _asked(self, connection: Connection, request: HttpRequest, ids: list[str]) -> dict[str, Any] | None:
        state = _state(connection, request)
        if state is None:
            return None
        asked, environment = pluralize(len(ids), "record"), settings.PGQUEUE["ENVIRONMENT"]
        title = f"Send {asked} of {state.name} in {environment}?" if environment else f"Send {asked} of {state.name}?"
        refusal = outbox_dispatch.refusal(request.user, state)
        return {"title": title, "row": state, "ids": ids, "effect": outbox_dispatch.EFFECT, "refusal": refusal}

    def _send(self, request: HttpRequest, ids: list[str]) -> HttpResponse:
        reason = confirmation.reason(request.POST.get("reason", ""))
        try:
            with queue_database().read_session() as connection:
                state = _state(connection, request)
            if state is None or (why := outbox_dispatch.refusal(request.user, state)):
                raise OperationRefused(f"Nothing was sent: {why if state else 'that outbox is gone'}.")
            done = outbox_dispatch.send(state, ids, request.user, "admin", reason)
        except (OperationRefused, SettingsRefused, OutcomeUnknown, DatabaseError) as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            self.message_user(request, outbox_dispatch.said(done), messages.SUCCESS)
        return redirect(_records(request))

    def _page(
        self, request: HttpRequest, name: str, look: Callable[[Connection], dict[str, Any] | None]
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        context, status = {**self.admin_site.each_context(request), "opts": self.opts}, 200
        try:
            with queue_database().read_session() as connection:
                found = look(connection)
        except DatabaseError as error:
            name, found, status = "away", {"title": "Outboxes", "trouble": str(error)}, 503
        if found is None:
            return HttpResponseNotFound(NO_SUCH)
        return marked(
            TemplateResponse(request, f"pgqueue_admin/admin/{name}.html", {**context, **found}, status=status)
        )


def _state(connection: Connection, request: HttpRequest) -> OutboxState | None:
    asked = request.POST if request.method == "POST" else request.GET
    return states.one(connection, Address(asked.get("schema", ""), asked.get("table", "")))


def _next(request: HttpRequest, found: list[Any]) -> str:
    """The query of the next page; empty if there is none."""
    kept = {name: request.GET.get(name, "") for name in ("schema", "table", "state")}
    return urlencode({**kept, "after": found[ROWS - 1].id}) if len(found) > ROWS else ""


def _records(request: HttpRequest) -> str:
    of = {name: request.POST.get(name, "") for name in ("schema", "table")}
    return f"{reverse('admin:pgqueue_outbox_records')}?{urlencode(of)}"
