"""A quarter of hours, as batches would store them: two queues, four types, repeating weeks, four incidents."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db import connections

from pgqueue_admin.history.rollups.histogram import bucket
from pgqueue_admin.models import Endpoint, HistorySource, Queue
from tests.history.rollup_factory import batch

HOUR, WEEK = timedelta(hours=1), timedelta(days=7)
SINCE = datetime(2026, 8, 3, tzinfo=UTC)  # a Monday
UNTIL = SINCE + 13 * WEEK
RARE = "Shop.Rare"
KINDS = {("Sales", "Shop.Order"): 400, ("Sales", "Shop.Cancel"): 80, ("Sales", RARE): 3, ("Billing", "Shop.Bill"): 150}
SHAPE = [0.6 + step / 20 for step in range(16)] + [1.6, 1.9, 2.3, 2.8]  # of a half: most near it, and a long tail


class Stretch(NamedTuple):
    since: datetime
    until: datetime


def _in_week(week: int, day: int, hour: int, hours: int) -> Stretch:
    since = SINCE + week * WEEK + timedelta(days=day, hours=hour)
    return Stretch(since, since + hours * HOUR)


SLOW = _in_week(9, 1, 10, 3)  # Billing takes five times as long
FAILING = _in_week(9, 2, 15, 2)  # every third Shop.Cancel fails
SILENT = _in_week(10, 3, 9, 4)  # Billing does nothing
DEEP = _in_week(11, 4, 11, 5)  # and its queue is deep
BUSY = _in_week(11, 0, 9, 3)  # three times the messages, as slow and as faulty as ever: no incident


class Hour(NamedTuple):
    """Finished messages of one type in one hour, by result, with the durations of successes in milliseconds."""

    at: datetime
    endpoint: str
    type: str
    failed: int
    spans: Counter[float]

    @property
    def messages(self) -> int:
        return self.spans.total() + self.failed


def hours() -> Iterator[datetime]:
    at = SINCE
    while at < UNTIL:
        yield at
        at += HOUR


def happened(at: datetime, endpoint: str, type_: str) -> Hour:
    """The same in every run: usual, within ten per cent, except in incidents. Billing is idle at night."""
    chance = random.Random(f"{at} {endpoint} {type_}")
    is_bill = endpoint == "Billing"
    messages = KINDS[endpoint, type_] * (2 if 8 <= at.hour < 18 and at.weekday() < 5 else 1) * chance.uniform(0.9, 1.1)
    share, half = chance.uniform(0.005, 0.015), 100 * chance.uniform(0.9, 1.1)
    if type_ == RARE:  # rarely, and never alike
        messages, failed = chance.randint(0, 6), chance.choice([0, 0, 0, 1, 2])
        return Hour(at, endpoint, type_, failed, Counter(10 ** chance.uniform(1, 4) for _ in range(messages)))
    if is_bill and (at.hour >= 22 or SILENT.since <= at < SILENT.until):
        messages = 0
    if BUSY.since <= at < BUSY.until:
        messages *= 3
    if is_bill and SLOW.since <= at < SLOW.until:
        half *= 5
    if type_ == "Shop.Cancel" and FAILING.since <= at < FAILING.until:
        share = 1 / 3
    failed = round(messages * share)
    each, more = divmod(round(messages) - failed, len(SHAPE))
    spans = Counter({half * shape: each + (place < more) for place, shape in enumerate(SHAPE)})
    return Hour(at, endpoint, type_, failed, +spans)


def depth(at: datetime, queue: str) -> int:
    if queue == "Billing" and DEEP.since <= at < DEEP.until:
        return 500
    return random.Random(f"{at} {queue}").randint(0, 9)


def write() -> None:
    """Store everything as one batch's figures, with history complete to the end."""
    made = batch()
    HistorySource.objects.update(watermark=UNTIL)
    _copy("rollup", ROLLUP, (row for at in hours() for kind in KINDS for row in _rollups(made.pk, happened(at, *kind))))
    for name in ("Sales", "Billing"):
        queue = Queue.objects.create(schema="public", table=name, kind="input")
        Endpoint.objects.create(name=name, table=name)
        middle = ((at, depth(at, name)) for at in hours())
        _copy("depthbucket", DEPTH, (("hour", at, queue.pk, 0, each, 2 * each) for at, each in middle))


NOT_TIMED = ("processing_buckets", "processing_counts", "delivery_buckets", "delivery_counts")
_NAMED = ("batch_id", "grain", "at", "endpoint", "type", "skewed", *NOT_TIMED, "queue", "result", "exception")
ROLLUP = (*_NAMED, "messages", "critical_buckets", "critical_counts")
DEPTH = ("grain", "at", "queue", "low", "median", "high")


def _copy(table: str, columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    """Inserting twenty thousand rows one by one would take longer than the test."""
    statement = f"copy pgqueue_{table} ({', '.join(columns)}) from stdin"
    with connections["default"].cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _rollups(made: int, hour: Hour) -> Iterator[tuple[object, ...]]:
    not_timed: list[list[int]] = [[] for _ in NOT_TIMED]
    about = (made, "hour", hour.at, hour.endpoint, hour.type, 0, *not_timed)
    if hour.spans:
        counts: Counter[int] = Counter()
        for span, number in hour.spans.items():
            counts[bucket(span)] += number
        yield *about, "", "success", "", hour.spans.total(), list(counts), list(counts.values())
    if hour.failed:
        yield *about, f'"public"."{hour.endpoint}"', "failed", "Shop.Refused", hour.failed, [], []
