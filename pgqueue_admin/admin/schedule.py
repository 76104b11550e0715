"""Schedules in Django admin: view, pause and resume; the console's page writes them."""

from collections.abc import Callable

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from pgqueue_admin.admin.engine_table import EngineTableAdmin, said
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import Schedule
from pgqueue_admin.models.queue_database import through_django
from pgqueue_admin.services import schedules
from pgqueue_admin.services.endpoint_change import ActRefused
from pgqueue_admin.services.permissions import database_lets, refusal_for
from pgqueue_admin.services.schedules import Act, SchedulesMissing

Chosen = QuerySet[Schedule]


@admin.register(Schedule)
class ScheduleAdmin(EngineTableAdmin):
    title = "Schedules"
    console_page = "schedule"
    list_display = ("name", "expression", "zone", "kind", "queue_table", "missed", "paused_by", "error")
    list_filter = ("kind", "missed")
    search_fields = ("name",)
    actions = ("pause", "resume")
    fields = tuple(each.name for each in Schedule._meta.fields)

    def is_there(self, connection: Connection) -> bool:
        try:
            return bool(schedules.store_of(connection))
        except SchedulesMissing:
            return False

    @admin.action(description="Pause", permissions=["schedule"])
    def pause(self, request: HttpRequest, chosen: Chosen) -> None:
        self._each(request, chosen, schedules.pause, "paused")

    @admin.action(description="Resume", permissions=["schedule"])
    def resume(self, request: HttpRequest, chosen: Chosen) -> None:
        self._each(request, chosen, schedules.resume, "resumed")

    def has_schedule_permission(self, request: HttpRequest) -> bool:
        return refusal_for(request.user, "schedule") is None and database_lets("schedule") is None

    def _each(self, request: HttpRequest, chosen: Chosen, do: Callable[[int, Act], None], past: str) -> None:
        done = 0
        try:
            with through_django():
                ids = list(chosen.values_list("pk", flat=True))
            for schedule in ids:
                do(schedule, Act(request.user, "admin"))
                done += 1
        except (ActRefused, DatabaseError) as error:
            why = said(error) if isinstance(error, DatabaseError) else str(error)
            self.message_user(request, why, messages.ERROR)
        self.message_user(request, f"{pluralize(done, 'schedule')} {past}.")
