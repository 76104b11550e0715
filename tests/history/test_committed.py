"""The comparison of history with committed messages detects errors: figures by hand, no Spark."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.history.rollups.histogram import bucket
from pgqueue_admin.models import HistoryBatch
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import wire_time
from tests.history import expected_counts, rollup_factory
from tests.history.shop_messages import ENDPOINTS, RETRIED, TYPES

AT = datetime(2026, 11, 14, 10, 3, 20, tzinfo=UTC)
NAMES = {"queue": ENDPOINTS[0], "endpoint": ENDPOINTS[0], "type": TYPES[0]}
REFUSED = "Torture.CardRefused"
BEGINS = {
    "minute": AT.replace(second=0),
    "hour": AT.replace(minute=0, second=0),
    "day": AT.replace(hour=0, minute=0, second=0),
}


def ms(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def died(database: Any, at: datetime, **changes: Any) -> None:
    """Archive a message sent 900 ms before its end and handled for 100 ms."""
    headers: h.Headers = {"NServiceBus.ProcessingStarted": wire_time(at - ms(100)), **changes.pop("headers", {})}
    about: dict[str, Any] = {
        "queue": ENDPOINTS[0],
        "endpoint": ENDPOINTS[0],
        "message_type": TYPES[0],
        "message_id": "m",
    }
    about |= {"headers": h.dump(headers), "sent_at": at - ms(900), "died_at": at, **changes}
    store.archive_failed(database, DeadMessage(**about))


@pytest.fixture
def shop(database: Any) -> Any:
    """A message that failed and succeeded when retried half a minute later, with all its figures."""
    expected_counts.noted(database)
    died(database, AT, exception_type=REFUSED, exception_message="Card 17 was refused")
    died(database, AT + ms(30_000), result="success", headers={RETRIED[0]: "1"})
    of_a = rollup_factory.batch()
    timed: dict[str, Any] = {
        "critical_buckets": [bucket(900)],
        "processing_buckets": [bucket(100)],
        "critical_counts": [1],
        "processing_counts": [1],
        **NAMES,
    }
    for grain, begin in BEGINS.items():
        known: dict[str, Any] = {"grain": grain, "batch": of_a, **timed}
        rollup_factory.rolled_up(begin, delivery={bucket(800): 1}, result="failed", exception=REFUSED, **known)
        rollup_factory.rolled_up(begin, **known)
    told: dict[str, Any] = {
        "exception": REFUSED,
        "message": "Card <n> was refused",
        "first_at": AT,
        "last_at": AT,
        **NAMES,
    }
    rollup_factory.failed(BEGINS["minute"], "f", **told)
    rollup_factory.told("m", AT, failed=1, last_failed_at=AT, exception=REFUSED, **NAMES)
    rollup_factory.told("m", AT + ms(30_000), succeeded=1, last_succeeded_at=AT + ms(30_000), **NAMES)
    return database


def wrong(database: Any) -> set[str]:
    return {what for what, each in expected_counts.compared(database).items() if each.wrong}


def test_history_equals_the_committed_rows(shop: Any) -> None:
    found = expected_counts.compared(shop)
    assert {what: each.wrong for what, each in found.items()} == {what: [] for what in found}
    assert {what: each.rows for what, each in found.items()} == {
        "rollups": 6, "histograms": 15, "failures": 1, "retry outcomes": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "update pgqueue_console.pgqueue_rollup set messages = 2 where grain = 'hour' and result = 'failed'",
            {"rollups"},
        ),
        (
            "update pgqueue_console.pgqueue_rollup set skewed = 1 where grain = 'minute' and result = 'failed'",
            {"rollups"},
        ),
        ("update pgqueue_console.pgqueue_rollup set type = '' where grain = 'day'", {"rollups", "histograms"}),
        (
            "delete from pgqueue_console.pgqueue_rollup where grain = 'minute' and result = 'failed'",
            {"rollups", "histograms"},
        ),
        ("update pgqueue_console.pgqueue_rollup set critical_counts = '{2}' where grain = 'minute'", {"histograms"}),
        ("update pgqueue_console.pgqueue_rollup set processing_buckets = '{1}' where grain = 'day'", {"histograms"}),
        ("update pgqueue_console.pgqueue_failurerollup set messages = 2", {"failures"}),
        ("update pgqueue_console.pgqueue_failurerollup set exception = 'Torture.TooLate'", {"failures"}),
        ("update pgqueue_console.pgqueue_failurerollup set at = at - interval '1 minute'", {"failures"}),
        ("delete from pgqueue_console.pgqueue_failurerollup", {"failures"}),
        ("update pgqueue_console.pgqueue_retryoutcome set failed = 2 where failed = 1", {"retry outcomes"}),
        ("delete from pgqueue_console.pgqueue_retryoutcome where succeeded = 1", {"retry outcomes"}),
        ("update pgqueue_console.pgqueue_retryoutcome set message_id = 'n' where failed = 1", {"retry outcomes"}),
    ],
)
def test_a_figure_that_is_wrong_is_noticed(change: str, said: set[str], shop: Any) -> None:
    shop.run(change)
    assert wrong(shop) == said


def test_row_of_a_rolled_back_transaction_is_noticed(shop: Any) -> None:
    """Recorded in the archiving transaction: others have nothing to be counted."""
    shop.run("begin")
    died(shop, AT, result="success")
    assert wrong(shop) == {"rollups", "histograms"}
    shop.run("rollback")
    assert wrong(shop) == set()


def test_a_batch_that_counts_twice_is_noticed(shop: Any) -> None:
    again = HistoryBatch.objects.order_by("pk").first()
    assert again is not None
    for figure in again.rollups.all():
        figure.pk = None
        figure.save()
    assert wrong(shop) == {"rollups", "histograms"}
