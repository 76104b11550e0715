"""Rules of the lease queue in Django admin: view and remove; the console's page adds them."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from pgqueue_admin.admin.engine_table import EngineTableAdmin, said
from pgqueue_admin.admin.retry_rule import may_set
from pgqueue_admin.archive import lease_rules as kept
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import LeaseRule
from pgqueue_admin.models.queue_database import through_django
from pgqueue_admin.services import lease_rules
from pgqueue_admin.services.operations.errors import OperationRefused


@admin.register(LeaseRule)
class LeaseRuleAdmin(EngineTableAdmin):
    title = "Lease rules"
    list_display = ("id", "kinds", "endings", "times", "wait_seconds", "who", "created_at")
    actions = ("remove",)

    def is_there(self, connection: Connection) -> bool:
        return kept.are_there(connection)

    @admin.display(description="kind of message")
    def kinds(self, rule: LeaseRule) -> str:
        return rule.message_type or lease_rules.ANY

    @admin.display(description="that ended as")
    def endings(self, rule: LeaseRule) -> str:
        return ", ".join(rule.results)

    def has_set_permission(self, request: HttpRequest) -> bool:
        return may_set(request)

    @admin.action(description="Remove", permissions=["set"])
    def remove(self, request: HttpRequest, chosen: QuerySet[LeaseRule]) -> None:
        done = 0
        try:
            with through_django():
                numbers = list(chosen.values_list("pk", flat=True))
            for number in numbers:
                lease_rules.remove(number, request.user, "admin")
                done += 1
        except OperationRefused as error:
            self.message_user(request, str(error), messages.ERROR)
        except DatabaseError as error:
            self.message_user(request, said(error), messages.ERROR)
        self.message_user(request, f"{pluralize(done, 'lease rule')} removed. What waited for them stays dead.")
