"""Operations in Django admin: their list, and the confirmation page before one starts."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.admin import list_cells
from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.admin.list_cells import marked
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import confirmations, edit_words
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import content_access
from pgqueue_admin.services.operations import confirmation, edits, lifecycle, plans, queries, staged_controls
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.operations.kinds import kind_of
from pgqueue_admin.services.permissions import database_lets, refusal_for

State = Operation.State
SAMPLES = 10


@admin.register(Operation)
class OperationAdmin(ReadOnlyAdmin):
    console_page = "operation"
    list_display = ("id", "kind", "state", "who", "count", "done", "skipped", "failed", "why", "created_at")
    list_filter = ("state", "kind")
    actions = ("pause", "resume", "cancel_rest")

    @admin.display(description="reason")
    def why(self, operation: Operation) -> SafeString:
        return list_cells.fitting(operation.reason, 60)

    @admin.action(description="Pause", permissions=["retry"])
    def pause(self, request: HttpRequest, chosen: QuerySet[Operation]) -> None:
        self._steer(request, chosen, staged_controls.pause, "paused")

    @admin.action(description="Resume", permissions=["retry"])
    def resume(self, request: HttpRequest, chosen: QuerySet[Operation]) -> None:
        self._steer(request, chosen, staged_controls.go_on, "resumed")

    @admin.action(description="Cancel the rest", permissions=["act"])
    def cancel_rest(self, request: HttpRequest, chosen: QuerySet[Operation]) -> None:
        self._steer(request, chosen, lifecycle.cancel, "cancelled")

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return refusal_for(request.user, "retry") is None

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Whether the user may act on any kind of operation; the service checks the right for each chosen one."""
        return any(refusal_for(request.user, kind) is None for kind in ("retry", "discard"))

    def _steer(
        self, request: HttpRequest, chosen: QuerySet[Operation], act: Callable[[int, Any], Any], past: str
    ) -> None:
        """Act on each alone: report one that is refused and continue with the others."""
        done = []
        for operation in chosen.order_by("pk"):
            try:
                act(operation.pk, request.user)
                done.append(str(operation.pk))
            except (OperationRefused, DatabaseError) as error:
                self.message_user(request, str(error), messages.ERROR)
        if done:
            self.message_user(request, f"Operations {past}: {', '.join(done)}.", messages.SUCCESS)

    def get_exclude(self, request: HttpRequest, obj: Operation | None = None) -> Any:
        """Exclude the edit, and the search if content is withheld; the console shows what the user may read."""
        return ("edit", "selection") if content_access.of(request.user).withheld else ("edit",)

    def get_urls(self) -> list[URLPattern]:
        asks = path("<int:pk>/confirm/", self.admin_site.admin_view(self.confirm), name="pgqueue_operation_confirm")
        return [asks, *super().get_urls()]

    def confirm(self, request: HttpRequest, pk: int) -> HttpResponse:
        """GET asks for confirmation, naming count, queues and environment; POST decides."""
        operation = get_object_or_404(Operation, pk=pk)
        if refusal_for(request.user, operation.kind):
            raise PermissionDenied
        if request.method == "POST":
            fault = _fault(request, operation)
            return self._ask(request, operation, fault) if fault else self._answer(request, operation)
        if operation.state != State.FROZEN:
            return redirect("admin:pgqueue_operation_change", pk)
        return self._ask(request, operation)

    def _ask(self, request: HttpRequest, operation: Operation, fault: str = "") -> HttpResponse:
        about = {**self._asked(request, operation), "fault": fault, "plan": confirmation.plan(operation)}
        about |= {"staging": _staging(operation), "edited": _edited(request, operation), "seen": edits.seen(operation)}
        page = TemplateResponse(request, "pgqueue_admin/admin/confirm.html", about, status=422 if fault else 200)
        return marked(page)

    def _answer(self, request: HttpRequest, operation: Operation) -> HttpResponse:
        try:
            self._decide(request, operation)
        except OperationRefused as error:
            self.message_user(request, str(error), messages.ERROR)
        return redirect("admin:pgqueue_archivedmessage_changelist")

    def _decide(self, request: HttpRequest, operation: Operation) -> None:
        if "keep" in request.POST:
            lifecycle.cancel(operation.pk, request.user)
            return self.message_user(request, "Nothing was done.", messages.INFO)
        if refusal := database_lets(operation.kind):
            return self.message_user(request, f"Nothing was {kind_of(operation.kind).past}: {refusal}.", messages.ERROR)
        reason = confirmation.reason(request.POST.get("reason", ""))
        planned = _planned(operation, request.POST.get("plan", ""))
        seen = request.POST.get("edit", "") if operation.kind == Operation.Kind.RETRY else None
        lifecycle.start(operation.pk, request.user, reason, request.POST.getlist("target"), planned, edit=seen)
        self.message_user(request, _started(operation), messages.SUCCESS)

    def _asked(self, request: HttpRequest, operation: Operation) -> dict[str, Any]:
        kind, environment = operation.kind, settings.PGQUEUE["ENVIRONMENT"]
        return {
            **self.admin_site.each_context(request),
            **_looked(operation),
            "title": confirmations.question(kind, operation.count, environment),
            "effect": confirmations.effect(kind, settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"]),
            "operation": operation,
            "verb": confirmations.VERBS[kind],
            "keep": confirmations.KEEP[kind],
            "minutes": round(lifecycle.lapses_in(operation).total_seconds() / 60),
            "opts": self.opts,
        }


PLANS = {"careful": plans.careful, "flat": plans.flat}


def _staging(operation: Operation) -> list[tuple[str, str, bool]]:
    """Plans on offer: name, text, and whether it suits the size. The console sets a plan's single values."""
    if operation.kind != Operation.Kind.RETRY:
        return []
    needed = plans.is_needed(operation)
    offered = [(name, plan(operation)) for name, plan in PLANS.items()]
    staged = [(name, f"{each.said}; {each.limits_said}", needed and name == "careful") for name, each in offered]
    return [*staged, ("", "at once, as fast as it goes", not needed)]


def _planned(operation: Operation, name: str) -> plans.Planned | None:
    return PLANS[name](operation) if name in PLANS else None


def _edited(request: HttpRequest, operation: Operation) -> str:
    """The edit of each message, as proposed in the console; empty if there is none."""
    kept = edits.of(operation)
    if kept is None:
        return ""
    edit, access = kept.edit, content_access.of(request.user)
    is_hidden = access.hides_edited(edit.part, edit.name)
    return edit_words.said(edit.part, edit.name, edit.way, edit.old, edit.new, is_hidden=is_hidden)


def _fault(request: HttpRequest, operation: Operation) -> str:
    """The missing input; empty if the messages are kept, or once the operation is decided."""
    if "keep" in request.POST or operation.state != State.FROZEN:
        return ""
    reason = confirmation.reason(request.POST.get("reason", ""))
    return confirmation.plan(operation).fault(reason, request.POST.get("count", ""))


def _looked(operation: Operation) -> dict[str, Any]:
    """Samples of the set, and changes since the freeze; without the database only the error."""
    retry = operation.kind == "retry"
    try:
        with queue_database().read_session() as connection:
            samples = queries.samples(connection, operation, SAMPLES)
            kept, removed = queries.header_changes(connection, samples) if retry else ([], [])
            return {
                "targets": queries.retry_targets(connection, operation) if retry else None,
                "changed": queries.changed(connection, operation),
                "samples": [list_cells.Sample.of(row) for row in samples],
                "kept": pluralize(len(kept), "other header"),
                "removed": removed,
            }
    except DatabaseError as error:
        return {"trouble": str(error)}


def _started(operation: Operation) -> SafeString:
    where = reverse("admin:pgqueue_operation_change", args=[operation.pk])
    number = pluralize(operation.count, "message")
    return format_html('<a href="{}">Operation {}</a> was started: {} {}.', where, operation.pk, operation.kind, number)
