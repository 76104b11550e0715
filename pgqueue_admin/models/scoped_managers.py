"""Managers that return only rows of queues in the current scope.

Rows without a queue are hidden from a scoped person. ``_base_manager`` is unfiltered: related rows are followed by it.
"""

from typing import TypeVar, cast

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Value
from django.db.models.expressions import CombinedExpression

from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.dialects.visible_queues import LEASE_NAME, VisibleQueues

M = TypeVar("M", bound=models.Model)


class _Seen(models.Manager[M]):
    def get_queryset(self) -> models.QuerySet[M]:
        rows, seen = super().get_queryset(), visible_queues.current()
        return rows if seen is None else self.narrowed(rows, seen)

    def narrowed(self, rows: models.QuerySet[M], seen: VisibleQueues) -> models.QuerySet[M]:
        raise NotImplementedError


class SeenQueues(_Seen[M]):
    def narrowed(self, rows: models.QuerySet[M], seen: VisibleQueues) -> models.QuerySet[M]:
        return rows.filter(pk__in=seen.ids)


class OfSeenQueues(_Seen[M]):
    """Filters by the queue's row."""

    def narrowed(self, rows: models.QuerySet[M], seen: VisibleQueues) -> models.QuerySet[M]:
        return rows.filter(queue__in=seen.ids)


class OfSeenNames(_Seen[M]):
    """Filters by the queue's canonical address."""

    def narrowed(self, rows: models.QuerySet[M], seen: VisibleQueues) -> models.QuerySet[M]:
        return rows.filter(queue__in=seen.names)


class OfAllQueues(_Seen[M]):
    """Hides rows about all queues together from people who see only some."""

    def narrowed(self, rows: models.QuerySet[M], seen: VisibleQueues) -> models.QuerySet[M]:
        return rows.none()


class OfOwnTeam(_Seen[M]):
    """Rows by people of exactly the same groups: no others are known to see the same queues."""

    def narrowed(self, rows: models.QuerySet[M], seen: VisibleQueues) -> models.QuerySet[M]:
        return rows.filter(team=list(seen.team)) if seen.team else rows.none()


class OfSeenAlerts(_Seen[M]):
    """Filters by the queue of the warning."""

    def narrowed(self, rows: models.QuerySet[M], seen: VisibleQueues) -> models.QuerySet[M]:
        return rows.filter(alert__queue__in=seen.names)


class OfSeenAddresses(_Seen[M]):
    """Filters by schema and table."""

    def narrowed(self, rows: models.QuerySet[M], seen: VisibleQueues) -> models.QuerySet[M]:
        schemas = {each.schema for each in seen.seen}
        asked = models.Q(pk__in=())
        for schema in schemas:
            asked |= models.Q(schema=schema, table__in=[each.table for each in seen.seen if each.schema == schema])
        return rows.filter(asked)


class WhollySeen(_Seen[M]):
    """Filters operations by their counts per queue: one that reaches beyond the scope is hidden.

    After retry rules or a call-back the counts are per target, and do not say where the messages died.
    """

    def narrowed(self, rows: models.QuerySet[M], seen: VisibleQueues) -> models.QuerySet[M]:
        of_lease = [""] if LEASE_NAME in seen.names else []  # original clients name no queue
        names = Value([*seen.names, *of_lease], ArrayField(models.TextField()))
        rest = CombinedExpression(models.F("queues"), "-", names, output_field=models.JSONField())
        call_back = apps.get_model("pgqueue", "Operation").Kind.CALL_BACK
        found = rows.alias(beyond=rest).filter(beyond={}, rules=[]).exclude(queues={}).exclude(kind=call_back)
        return cast("models.QuerySet[M]", found)


class AboutSeenQueues(_Seen[M]):
    """Filters audit entries by subject: a queue, its messages, the endpoint that receives from it now.

    Entries about people and other settings belong to no queue. A withdrawn endpoint may have had another queue.
    """

    def narrowed(self, rows: models.QuerySet[M], seen: VisibleQueues) -> models.QuerySet[M]:
        of_queues = models.Q(noun__in=("queue", "message"), subject__in=[name[:400] for name in seen.names])
        earlier = self.model._base_manager.filter(
            noun="endpoint", verb="withdraw", subject=models.OuterRef("subject"), pk__gte=models.OuterRef("pk")
        )
        theirs = apps.get_model("pgqueue", "Endpoint").objects.values("name")
        of_endpoints = models.Q(noun="endpoint", subject__in=theirs) & ~models.Q(models.Exists(earlier))
        about = rows.filter(of_queues | of_endpoints).exclude(verb__in=_ELSEWHERE)
        return about.exclude(before__has_any_keys=_WHERE_ELSE).exclude(after__has_any_keys=_WHERE_ELSE)


# Hidden because these entries name further queues, maybe outside the scope.
_ELSEWHERE = ("move", "copy", "edit")
_WHERE_ELSE = ["queue", "target", "targets", "rules", "to", "error_queue", "audit_queue", "subscription_table"]
