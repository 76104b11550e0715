"""What writers committed, recorded by a trigger because the archive is pruned; and the figures it implies, by plain SQL
independent of history's own.
"""

from collections import Counter
from typing import Any, NamedTuple

from pgqueue_admin.history.rollups.histogram import LOG_GAMMA
from tests.history.shop_messages import ENDPOINTS, RETRIED

_NOTED = """
create table committed as
    select seq, died_at, sent_at, queue, endpoint, message_type as type, result::text as result,
        exception_type as exception, exception_message as says, message_id, headers
    from messages.message_archive with no data;
create function note() returns trigger language plpgsql as $$
begin
    insert into committed values (new.seq, new.died_at, new.sent_at, new.queue, new.endpoint, new.message_type,
        new.result, new.exception_type, new.exception_message, new.message_id, new.headers);
    return new;
end $$;
create trigger noted after insert on messages.message_archive for each row
    when (new.queue like 'Torture.%') execute function note()
"""
_TOLD = """
with told as (
    select *, coalesce(exception, '') as error,
        to_timestamp(headers::jsonb ->> 'NServiceBus.ProcessingStarted', 'YYYY-MM-DD HH24:MI:SS:US') as started_at,
        headers::jsonb ?| %(retried)s::text[] as retried
    from committed
), timed as (
    select *, died_at - sent_at as critical, died_at - started_at as processing, started_at - sent_at as delivery
    from told
)
"""
_OF_GRAINS = (
    "unnest(array['minute', 'hour', 'day']) grain, lateral (select date_trunc(grain, died_at, 'UTC') as at) begin"
)
_BUCKET = "case when ms < 1 then -1 else ceil(ln(floor(ms)::float8) / %(log_gamma)s)::int4 end"
_KIND, _NAMES = "grain, at, queue, endpoint, type, result", "queue, endpoint, type"

_EXPECTED = {
    "rollups": f"""
        select {_KIND}, error, count(*) as messages,
            count(*) filter (where least(critical, processing, delivery) < '0') as skewed
        from timed, {_OF_GRAINS} group by {_KIND}, error
    """,
    "histograms": f"""
        select {_KIND}, error, measure, {_BUCKET} as bucket, count(*) as number
        from timed, {_OF_GRAINS}, lateral (values
            ('critical', critical), ('processing', processing), ('delivery', case when not retried then delivery end)
        ) as spans (measure, span), lateral (select extract(epoch from span) * 1000 as ms) milliseconds
        where ms >= 0 group by {_KIND}, error, measure, bucket
    """,
    "failures": f"""
        select date_trunc('minute', died_at, 'UTC') as at, {_NAMES}, exception,
            regexp_replace(says, '[0-9]+', '<n>', 'g') as folded, count(*) as messages,
            min(died_at) as first_at, max(died_at) as last_at
        from told where exception is not null group by at, {_NAMES}, exception, folded
    """,
    "retry outcomes": f"""
        select message_id, {_NAMES}, count(*) filter (where result <> 'success') as failed,
            count(*) filter (where result = 'success') as succeeded, min(died_at) as first_at,
            max(died_at) filter (where result <> 'success') as last_failed_at,
            max(died_at) filter (where result = 'success') as last_succeeded_at
        from told where result <> 'success' or retried group by message_id, {_NAMES}
    """,
}
_FOUND = {
    "rollups": f"""
        select {_KIND}, exception, sum(messages) as messages, sum(skewed) as skewed
        from pgqueue_console.pgqueue_rollup where queue = any(%(queues)s) group by {_KIND}, exception
    """,
    "histograms": f"""
        select {_KIND}, exception, measure, bucket, sum(number) as number
        from pgqueue_console.pgqueue_rollup, lateral (values
            ('critical', critical_buckets, critical_counts), ('processing', processing_buckets, processing_counts),
            ('delivery', delivery_buckets, delivery_counts)
        ) as timed (measure, buckets, numbers), unnest(buckets, numbers) as histogram (bucket, number)
        where queue = any(%(queues)s) group by {_KIND}, exception, measure, bucket
    """,
    "failures": f"""
        select at, {_NAMES}, exception, message, sum(messages) as messages, min(first_at) as first_at,
            max(last_at) as last_at
        from pgqueue_console.pgqueue_failurerollup where queue = any(%(queues)s)
        group by at, {_NAMES}, exception, message, fingerprint
    """,
    "retry outcomes": f"""
        select message_id, {_NAMES}, sum(failed) as failed, sum(succeeded) as succeeded, min(first_at) as first_at,
            max(last_failed_at) as last_failed_at, max(last_succeeded_at) as last_succeeded_at
        from pgqueue_console.pgqueue_retryoutcome where queue = any(%(queues)s) group by message_id, {_NAMES}
    """,
}


class Compared(NamedTuple):
    """The number of expected rows of figures, and the rows that only one side has."""

    rows: int
    wrong: list[tuple[Any, ...]]


def noted(database: Any) -> None:
    """Record what writers commit from now on."""
    database.run(_NOTED)


def compared(database: Any) -> dict[str, Compared]:
    """Rollups per minute, hour and day, histogram buckets, failures, and retry outcomes of messages."""
    return {what: _compared(database, what) for what in _EXPECTED}


def _compared(database: Any, what: str) -> Compared:
    expected = _rows(database, _TOLD + _EXPECTED[what], {"retried": list(RETRIED), "log_gamma": LOG_GAMMA})
    found = _rows(database, _FOUND[what], {"queues": list(ENDPOINTS)})
    return Compared(len(expected), [*(expected - found).elements(), *(found - expected).elements()])


def _rows(database: Any, query: str, known: dict[str, Any]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in database.all(query, known))
