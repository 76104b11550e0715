"""Each message in the queues' own tables, by its headers, and the queue in which it died; in this session."""

from typing import Any

# milliseconds: round values at which the heat map's bands end
ENDS = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000, 21_600_000, 86_400_000,
]  # fmt: skip


def lay_out(database: Any) -> None:
    times = {
        name: f"to_timestamp(headers ->> 'NServiceBus.{header}', 'YYYY-MM-DD HH24:MI:SS:US')"
        for name, header in _TIMES.items()
    }
    database.run(_BUCKET)
    database.run(_RECOUNTED.format(**times))
    database.run(_TIMED, {"ends": ENDS})
    database.run("analyze recounted, timed")


_TIMES = {"sent": "TimeSent", "ended": "ProcessingEnded", "started": "ProcessingStarted", "due": "DeliverAt"}
_BUCKET = """
create function pg_temp.bucket(milliseconds float8) returns int4 language sql immutable as $$
    select case when milliseconds <= 0 then -1 else ceil(ln(milliseconds) / ln(1.01::float8 / 0.99)) end::int4
$$
"""
_RECOUNTED = """
create temporary table recounted as
with told as (
    select died_at as ended_at, result = 'success' as is_ok, queue, headers::jsonb as headers
    from messages.message_archive where kind <> 'control'
    union all
    select {ended}, true, '', headers from (select headers::jsonb as headers from public.audit) audit
)
select
    ended_at, is_ok, queue,
    coalesce(headers ->> 'NServiceBus.ProcessingEndpoint', '') as endpoint,
    coalesce(split_part(headers ->> 'NServiceBus.EnclosedMessageTypes', ',', 1), '') as type,
    headers ->> 'NServiceBus.MessageId' as message_id,
    headers ->> 'NServiceBus.ExceptionInfo.ExceptionType' as exception,
    coalesce(headers ->> 'NServiceBus.ExceptionInfo.Message', '') as message,
    coalesce(headers ->> 'NServiceBus.ExceptionInfo.StackTrace', '') as trace,
    headers ?| array['NServiceBus.Retries', 'ServiceControl.Retry.UniqueMessageId', 'Pgqueue.RetriedFrom']
        as is_retried,
    floor(extract(epoch from ended_at - greatest({sent}, {due})) * 1000)::int8 as critical,
    floor(extract(epoch from ended_at - {started}) * 1000)::int8 as processing,
    floor(extract(epoch from {started} - greatest({sent}, {due})) * 1000)::int8 as delivery
from told
"""
_TIMED = """
create temporary table timed as
select
    queue, endpoint, type, ended_at, measure, milliseconds,
    (select count(*) from unnest(%(ends)s::int8[]) as each (ended)
        where pg_temp.bucket(milliseconds) > pg_temp.bucket(each.ended)) as band
from recounted, lateral (
    values ('critical', critical), ('processing', processing), ('delivery', case when not is_retried then delivery end)
) as span (measure, milliseconds)
where milliseconds >= 0
"""
