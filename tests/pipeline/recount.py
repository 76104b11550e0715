"""What Trends says of times, counted once more by plain SQL over the queues' own tables."""

from datetime import datetime
from typing import Any

import pytest

from pgqueue_admin.pipeline.figures import trends

_SPANS = """
with told as (
    select endpoint, sent_at, died_at as ended_at, headers::jsonb as headers
    from messages.message_archive where kind <> 'control'
    union all
    select headers ->> 'NServiceBus.ProcessingEndpoint', {sent}, {ended}, headers
    from (select headers::jsonb as headers from public.audit) audit
), spans as (
    select endpoint, ended_at, {started} as started_at, greatest(sent_at, {due}) as waits_since,
        headers ?| array['NServiceBus.Retries', 'ServiceControl.Retry.UniqueMessageId', 'Pgqueue.RetriedFrom']
            as retried
    from told
), measured as (
    select endpoint, date_trunc(%(grain)s, ended_at) as at, {span} as span from spans where {counts}
)
select extract(epoch from at)::int8 as at,
    percentile_disc(array[0.5, 0.95, 0.99]) within group (order by floor(extract(epoch from span) * 1000)) as cuts
from measured where span >= '0' and (%(endpoint)s = '' or endpoint = %(endpoint)s) group by at
"""
_MEASURES = {  # what is measured, and of which messages
    "critical": ("ended_at - waits_since", "true"),
    "processing": ("ended_at - started_at", "true"),
    "delivery": ("started_at - waits_since", "not retried"),
}
_HEADERS = {"sent": "TimeSent", "ended": "ProcessingEnded", "started": "ProcessingStarted", "due": "DeliverAt"}


def times_are_those_of_plain_sql(database: Any, since: datetime, until: datetime) -> None:
    """Each measure of each hour and day, of all endpoints and of each: as many steps, and within one per cent."""
    endpoints = [kind.name for kind in trends.kinds(trends.Asked(since, until, "day"))["endpoint"]]
    assert len(endpoints) > 1
    for measure in trends.MEASURES:
        for grain in ("hour", "day"):
            for endpoint in ("", *endpoints):
                asked = trends.Asked(since, until, grain, endpoint=endpoint)
                found = {at: each.percentiles for at, each in trends.timings(asked, measure).items()}
                assert found == _plain(database, measure, grain, endpoint), (measure, grain, endpoint)


def _plain(database: Any, measure: str, grain: str, endpoint: str) -> dict[int, Any]:
    span, counts = _MEASURES[measure]
    times = {
        name: f"to_timestamp(headers ->> 'NServiceBus.{header}', 'YYYY-MM-DD HH24:MI:SS:US')"
        for name, header in _HEADERS.items()
    }
    query = _SPANS.format(**times, span=span, counts=counts)
    rows = database.all(query, {"grain": grain, "endpoint": endpoint})
    return {row.at: tuple(pytest.approx(float(cut), rel=0.0101) for cut in row.cuts) for row in rows}
