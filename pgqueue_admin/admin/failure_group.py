"""Failure groups in Django admin: people's notes. Take and acknowledge them here; write on the console's page."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from pgqueue_admin.admin import list_cells
from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import FailureGroup
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import content_access, failure_groups
from pgqueue_admin.services.failure_groups import LASTS, AcknowledgementEnd, Assignment, FailureActRefused
from pgqueue_admin.services.permissions import refusal_for

Chosen = QuerySet[FailureGroup]


@admin.register(FailureGroup)
class FailureGroupAdmin(ReadOnlyAdmin):
    console_page = "failure"
    list_display = ("type", "at_frame", "owner", "for_ticket", "acknowledged", "first_at")
    list_filter = ("owner",)
    search_fields = ("exception", "fingerprint")
    actions = ("take", "acknowledge")

    @admin.display(description="exception")
    def type(self, group: FailureGroup) -> SafeString:
        return list_cells.type_name(group.exception)

    @admin.display(description="frame")
    def at_frame(self, group: FailureGroup) -> SafeString:
        return list_cells.fitting(group.frame, 44)

    @admin.display(description="acknowledged", ordering="acknowledged_until")
    def acknowledged(self, group: FailureGroup) -> str:
        """One text that wraps: two date columns would not fit beside the owner filter."""
        if group.acknowledged_at is None:
            return ""
        until = f" until {group.acknowledged_until:%d %b %Y %H:%M} UTC" if group.acknowledged_until else ""
        return f"by {group.acknowledged_by}{until}"

    @admin.display(description="ticket", ordering="ticket")
    def for_ticket(self, group: FailureGroup) -> SafeString:
        return list_cells.fitting(group.ticket)

    def get_list_display(self, request: HttpRequest) -> Any:
        return [name for name in self.list_display if name != "at_frame" or not self.get_exclude(request)]

    def get_exclude(self, request: HttpRequest, obj: FailureGroup | None = None) -> tuple[str, ...]:
        """Exclude exception text and frame if message content is withheld."""
        return ("message", "frame") if content_access.of(request.user).withheld else ()

    @admin.action(description="Take: you become the owner", permissions=["acknowledge"])
    def take(self, request: HttpRequest, chosen: Chosen) -> None:
        said = Assignment(owner=request.user.get_username())
        self._each(
            request,
            chosen,
            lambda session, digest: failure_groups.assign(session, digest, said, request.user, "admin"),
            "taken",
        )

    @admin.action(description=f"Acknowledge for {LASTS.days} days", permissions=["acknowledge"])
    def acknowledge(self, request: HttpRequest, chosen: Chosen) -> None:
        end = AcknowledgementEnd(LASTS)
        self._each(
            request,
            chosen,
            lambda session, digest: failure_groups.acknowledge(session, digest, end, request.user, "admin"),
            "acknowledged",
        )

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        return refusal_for(request.user, "acknowledge") is None

    def _each(self, request: HttpRequest, chosen: Chosen, do: Callable[[Connection, str], Any], past: str) -> None:
        done = 0
        try:
            with queue_database().read_session() as session:
                for digest in chosen.values_list("pk", flat=True):
                    do(session, digest)
                    done += 1
        except (FailureActRefused, DatabaseError) as error:
            self.message_user(request, str(error), messages.ERROR)
        self.message_user(request, f"{pluralize(done, 'failure')} {past}.")
