"""What people noted of a failure: owner, note, ticket, acknowledgement. Kept for ever, by fingerprint."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import QuerySet
from django.db.models.functions import RowNumber

from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.formatting import failures
from pgqueue_admin.models.fields import TimestampField
from pgqueue_admin.models.scoped_managers import OfAllQueues, OfOwnTeam

LONGEST_NOTE = 2_000
LONGEST_TICKET = 200
LONGEST_REASON = 200


class FailureWords(models.Model):
    """A failure's owner, note, ticket and acknowledgement."""

    first_at: datetime | None

    owner = models.CharField(max_length=150, blank=True)
    ticket = models.CharField(max_length=LONGEST_TICKET, blank=True, help_text="A number or an address.")
    note = models.TextField(blank=True, max_length=LONGEST_NOTE)
    noted_by = models.CharField(max_length=150, blank=True)
    noted_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_until = models.DateTimeField(null=True, help_text="Open again then.")
    acknowledged_to = models.BigIntegerField(null=True, help_text="Open again when so many lie dead.")
    acknowledged_dead = models.BigIntegerField(default=0, help_text="How many lay dead: open again at twice as many.")
    acknowledged_reason = models.CharField(max_length=LONGEST_REASON, blank=True)

    class Meta:
        abstract = True

    def is_acknowledged(self, dead: int, now: datetime) -> bool:
        """True until the acknowledgement ends: at its time, its count, or by default twice the dead known then."""
        if self.acknowledged_at is None:
            return False
        is_late = self.acknowledged_until is not None and self.acknowledged_until <= now
        return not is_late and dead < self.opens_at

    @property
    def opens_at(self) -> int:
        """Number of dead messages that ends the acknowledgement, whatever its time."""
        return max(2 * self.acknowledged_dead, 2) if self.acknowledged_to is None else self.acknowledged_to

    @property
    def ticket_url(self) -> str:
        """The ticket if it is a web address, else "": a number is no link."""
        return self.ticket if self.ticket.startswith(("https://", "http://")) else ""


class FailureGroup(FailureWords):
    """What the archive knows of a failure, kept when its messages are gone, and what people noted.

    Both apply to the failure in every queue.
    """

    fingerprint = models.CharField(max_length=16, primary_key=True)
    exception = models.CharField(max_length=400)
    frame = models.TextField(blank=True, help_text="The first frame of own code.")
    message = models.TextField(blank=True, help_text="Without ids, quoted texts and numbers.")
    first_at = models.DateTimeField(null=True, help_text="The first death that was seen.")
    known_at = TimestampField(auto_now_add=True)

    objects = OfAllQueues["FailureGroup"]()

    class Meta:
        ordering = ["exception", "fingerprint"]

    def __str__(self) -> str:
        return f"{self.exception} ({self.fingerprint})"

    @property
    def said(self) -> str:
        """The message in readable form."""
        return failures.readable(self.message)


class TeamFailure(FailureWords):
    """Notes by people who see only some queues. ``team``: the ids of their groups with scopes, in order.

    Read and written by members of exactly these groups, who all see the same queues; read by those who see every queue.
    """

    first_at = None  # the first death in any queue: not shown to a team

    fingerprint = models.CharField(max_length=16)
    team = ArrayField(models.BigIntegerField())

    objects = OfOwnTeam["TeamFailure"]()

    class Meta:
        ordering = ["fingerprint", "team"]
        constraints = [models.UniqueConstraint(fields=["fingerprint", "team"], name="one_word_of_a_team")]

    def __str__(self) -> str:
        return f"{self.fingerprint} of {self.team}"


def words_of(fingerprints: Collection[str]) -> dict[str, FailureWords]:
    """Notes on these failures: the general ones for those who see every queue, else those of the viewer's team."""
    if visible_queues.current() is None:
        return dict(FailureGroup.objects.in_bulk(list(fingerprints)))
    return {each.fingerprint: each for each in TeamFailure.objects.filter(fingerprint__in=fingerprints)}


def decided() -> dict[str, FailureWords]:
    """Owned or acknowledged failures, likewise by viewer. They are few, however many failures there are."""
    of: type[FailureWords] = FailureGroup if visible_queues.current() is None else TeamFailure
    said = models.Q(acknowledged_at__isnull=False) | ~models.Q(owner="")
    rows: list[Any] = list(of._default_manager.filter(said))
    return {each.fingerprint: each for each in rows}


def owned_by(owner: str) -> list[str]:
    """Fingerprints of the failures that this person owns, likewise by viewer."""
    if visible_queues.current() is None:
        return list(FailureGroup.objects.filter(owner=owner).order_by("pk").values_list("pk", flat=True))
    return list(TeamFailure.objects.filter(owner=owner).order_by("fingerprint").values_list("fingerprint", flat=True))


def owners(beginning: str) -> QuerySet[Any, str]:
    """Owners' names with this beginning, likewise by viewer."""
    of: type[FailureWords] = FailureGroup if visible_queues.current() is None else TeamFailure
    rows = of._default_manager.filter(owner__istartswith=beginning).exclude(owner="").order_by("owner")
    return rows.values_list("owner", flat=True).distinct()


class TeamWords(NamedTuple):
    """``team``: names of its groups."""

    team: str
    words: TeamFailure


def of_teams(fingerprints: Collection[str]) -> dict[str, list[TeamWords]]:
    """Teams' notes on these failures, for those who see every queue."""
    if not fingerprints or visible_queues.current() is not None:
        return {}
    if not (found := list(TeamFailure.objects.filter(fingerprint__in=fingerprints))):
        return {}
    groups = apps.get_model("auth", "Group").objects  # other apps' models cannot be imported with our backend
    names = dict(groups.filter(pk__in={each for row in found for each in row.team}).values_list("pk", "name"))
    told: dict[str, list[TeamWords]] = {}
    for row in found:
        named = " + ".join(sorted(names.get(each, "a group that is gone") for each in row.team))
        told.setdefault(row.fingerprint, []).append(TeamWords(named, row))
    return told


MOST_SAID = 3  # per error, or per warning


def said_of_fingerprints(fingerprints: Collection[str]) -> dict[str, FailureGroup]:
    """Those of these failures that have an owner, a ticket or a note; the latest note first."""
    if not fingerprints:
        return {}
    known = FailureGroup.objects.filter(pk__in=fingerprints).exclude(owner="", ticket="", note="")
    return {group.pk: group for group in known.order_by(*_latest())}


def said_of(exceptions: Collection[str]) -> list[FailureGroup]:
    """Failures with these errors that have an owner, ticket or note: at most three per error, latest note first."""
    if not any(exceptions):
        return []
    latest = _latest()
    known = FailureGroup.objects.filter(exception__in=[each for each in exceptions if each])
    told = known.exclude(owner="", ticket="", note="")
    place = models.Window(RowNumber(), partition_by="exception", order_by=latest)
    return list(told.annotate(place=place).filter(place__lte=MOST_SAID).order_by(*latest))


def _latest() -> list[models.OrderBy]:
    return [models.F("noted_at").desc(nulls_last=True), models.F("pk").asc()]
