-- name: one_snapshot
-- What is new and what lies there must agree: a death between two snapshots would be counted twice.
set transaction isolation level repeatable read

-- name: here
-- Which database this is: transaction ids mean nothing in another cluster, nor after a restore into one.
select (select system_identifier from pg_control_system()) || '/'
       || (select oid from pg_database where datname = current_database()) as database,
       pg_current_snapshot()::text as snapshot, clock_timestamp() as at

-- name: died_since
-- Visible now and not visible then, by the row's own transaction id: one that committed late is never missed.
with here as materialized (
    select pg_current_snapshot() as now, %(since)s::pg_snapshot as since
), died as (
    select left(coalesce(a.queue, '"messages"."message"'), 400) as queue,
           left(coalesce(nullif(a.exception_type, ''), a.result::text), 400) as cause,
           a.message_type, a.archived_at at time zone 'UTC' as archived_at,
           a.died_at < %(began)s and a.archived_at at time zone 'UTC' < %(old_stock_until)s as old
    from messages.message_archive a, here
    where a.xid >= pg_snapshot_xmin(here.since) and a.xid < pg_snapshot_xmax(here.now)
      and not pg_visible_in_snapshot(a.xid, here.since) and pg_visible_in_snapshot(a.xid, here.now)
      and a.result <> 'success'
)
select here.now::text as snapshot, g.*
from here
left join (
    select queue, cause, count(*) as count, min(archived_at) as first_at, count(*) filter (where old) as before_we_began,
           coalesce((array_agg(distinct message_type) filter (where message_type is not null))[1:3], '{{}}') as types
    from died group by queue, cause
) g on true

-- name: lying
-- What lies dead and undecided now, by the queue it died in and by cause.
select left(coalesce(queue, '"messages"."message"'), 400) as queue,
       left(coalesce(nullif(exception_type, ''), result::text), 400) as cause,
       count(*) as count, min(died_at) as first_at
from messages.message_archive
where state = 'dead'
group by 1, 2
