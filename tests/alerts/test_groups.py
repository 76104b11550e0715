"""Warnings grouped by queue, their filter, and acknowledging many with a reason and an end."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from pgqueue_admin.console.alerts.groups import grouped
from pgqueue_admin.console.alerts.rows import rows
from pgqueue_admin.models import Alert, AuditEntry
from tests.alerts.test_page import dead, text, viewer, warning

pytestmark = pytest.mark.usefixtures("console_database")
ORDERS = '"public"."Orders"'


def of_orders(kind: str, severity: str = "warning") -> Alert:
    return warning(kind=kind, subject=ORDERS, queue=ORDERS, severity=severity, sentence=f"{kind} said")


def test_a_cause_stands_before_what_follows_from_it() -> None:
    of_orders("queue_age", "critical"), of_orders("dead_count"), of_orders("no_consumer")
    (group,) = grouped(rows(Alert.objects.order_by("severity")))
    assert [(line.row.alert.kind, line.follows) for line in group.lines] == [
        ("no_consumer", ""), ("queue_age", "no consumer"), ("dead_count", ""),
    ]  # fmt: skip
    assert group.summary == "1 critical, 2 warnings"


def test_nothing_follows_from_a_cause_of_another_queue() -> None:
    of_orders("queue_age")
    warning(kind="no_consumer", subject='"public"."Mail"', queue='"public"."Mail"')
    assert [line.follows for group in grouped(rows(Alert.objects.all())) for line in group.lines] == ["", ""]


def test_the_page_groups_by_queue_or_lists(operator: Client) -> None:
    of_orders("queue_age"), of_orders("no_consumer"), warning()
    said = text(operator, "/alerts/")
    assert "3 warnings of 2 queues" in said
    assert "Orders 2 warnings" in said
    assert "Acknowledge 2…" in said
    assert "Follows from no consumer." in said
    assert "Follows from" not in text(operator, "/alerts/?by=list")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("queue:orders", 2), ("kind:oldest-ready", 1), ("kind:queue_age", 1), ("severity:critical", 1),
        ("Notifications", 1), ("queue:orders severity:critical", 1), ("100%", 0), ("_", 3),
    ],
)  # fmt: skip
def test_the_filter_is_in_the_address(operator: Client, query: str, found: int) -> None:
    of_orders("queue_age", "critical"), of_orders("no_consumer"), warning(), warning(subject="a_b")
    body = operator.get("/alerts/", {"q": query}).content.decode()
    assert body.count('form="acknowledge"') == found
    assert operator.get("/alerts/", {"q": query, "by": "list"}).status_code == 200


def test_a_wrong_filter_says_so(operator: Client) -> None:
    said = text(operator, "/alerts/?q=kind:nonsense+severity:mild+colour:red")
    assert "There is no kind:nonsense" in said
    assert "There is no severity:mild" in said
    assert "There is no field colour:" in said


def test_many_are_acknowledged_with_a_reason_until_a_time(operator: Client) -> None:
    first, second, other = of_orders("queue_age"), of_orders("no_consumer"), warning()
    path = f"/alerts/acknowledge/?n={first.pk}&n={second.pk}"
    assert "Acknowledge 2 warnings" in text(operator, path)
    answer = operator.post(path, {"until": "3 days", "reason": "SHOP-2398"})
    assert (answer.status_code, answer["Location"]) == (303, "/alerts/")
    for alert in Alert.objects.filter(pk__in=(first.pk, second.pk)):
        assert (alert.acknowledged_by, alert.acknowledged_reason) == ("ana", "SHOP-2398")
        assert alert.acknowledged_until
        assert alert.acknowledged_at
        assert alert.acknowledged_until - alert.acknowledged_at == timedelta(days=3)
    other.refresh_from_db()
    assert other.acknowledged_at is None
    assert list(AuditEntry.objects.values_list("verb", "reason")) == [("acknowledge", "SHOP-2398")] * 2
    said = text(operator, "/alerts/?state=acknowledged")
    assert "SHOP-2398. Opens again" in said


@pytest.mark.parametrize(
    "until", ["", "soon", "0 s", "-1 h", "91 days", "2001-01-01 09:00", "2026-13-01 09:00", "9999999 weeks"]
)
def test_an_acknowledgement_always_has_an_end(operator: Client, until: str) -> None:
    alert = warning()
    answer = operator.post(f"/alerts/acknowledge/?n={alert.pk}", {"until": until, "reason": "known"})
    assert answer.status_code == 200
    alert.refresh_from_db()
    assert alert.acknowledged_at is None


def test_the_end_may_be_a_time(operator: Client) -> None:
    alert, at = warning(), datetime.now(UTC) + timedelta(days=2)
    operator.post(f"/alerts/acknowledge/?n={alert.pk}", {"until": f"{at:%Y-%m-%d %H:%M}", "reason": "known"})
    alert.refresh_from_db()
    assert alert.acknowledged_until
    assert abs(alert.acknowledged_until - at) < timedelta(minutes=2)


def test_resolved_warning_cannot_be_acknowledged(operator: Client) -> None:
    alert = warning(resolved_at=datetime.now(UTC))
    path = f"/alerts/acknowledge/?n={alert.pk}&n=nonsense&n=999999"
    assert "No open warning is chosen" in text(operator, path)
    operator.post(path, {"until": "1 h", "reason": "known"})
    assert "Nothing was acknowledged" in text(operator, "/alerts/")


def test_many_need_the_right() -> None:
    alert, client = dead(), viewer()
    path = f"/alerts/acknowledge/?n={alert.pk}"
    assert "needs the right" in text(client, path)
    client.post(path, {"until": "1 h", "reason": "known"})
    alert.refresh_from_db()
    assert alert.acknowledged_at is None
