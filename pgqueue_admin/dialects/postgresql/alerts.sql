-- name: one_snapshot
-- New and existing deaths must agree: a death between two snapshots would be counted twice.
set transaction isolation level repeatable read

-- name: here
-- Identity of this database: transaction ids mean nothing in another cluster, nor after a restore into one.
select (select system_identifier from pg_control_system()) || '/'
       || (select oid from pg_database where datname = current_database()) as database,
       pg_current_snapshot()::text as snapshot, clock_timestamp() as at

-- name: deaths
-- Visible now and not at the earlier snapshot, by the row's own transaction id: one that committed late is never
-- missed. Old: what an error queue had held for over a day, and what failed before we began and was archived soon
-- after. What a person moved from a queue into the bin never died: its two times are equal.
here as materialized (
    select pg_current_snapshot() as now, %(since)s::pg_snapshot as since
), died as (
    select left(coalesce(a.queue, '"messages"."message"'), 400) as queue,
           left(coalesce(nullif(a.exception_type, ''), a.result::text), 400) as cause,
           left(coalesce(a.ingested_from, a.queue, '"messages"."message"'), 400) as came_from,
           a.message_type, a.archived_at at time zone 'UTC' as archived_at,
           a.ingested_from is not null
               and a.died_at < greatest(a.archived_at at time zone 'UTC', '0001-01-02') - interval '1 day'
           or a.died_at < %(began)s and a.archived_at at time zone 'UTC' < %(old_stock_until)s as old
    from messages.message_archive a, here
    where a.xid >= pg_snapshot_xmin(here.since) and a.xid < pg_snapshot_xmax(here.now)
      and not pg_visible_in_snapshot(a.xid, here.since) and pg_visible_in_snapshot(a.xid, here.now)
      and a.result <> 'success'
      and (a.resolution = 'discarded' and a.resolved_at = a.died_at) is not true
)

-- name: died_since
-- By queue and cause. Others may write any time, even infinity: first_at is kept between the calendar's start and now.
with {deaths}, counted as (
    select queue, cause, count(*) as count from died group by queue, cause
), {named}
select here.now::text as snapshot, g.*
from here
left join (
    select queue, named.shown as cause, count(*) as count, greatest(least(min(archived_at), now()), '0001-01-02') as first_at,
           count(distinct cause) as causes, count(*) filter (where old) as old,
           coalesce((array_agg(distinct message_type) filter (where message_type is not null))[1:3], '{{}}') as types
    from died join named using (queue, cause) group by queue, named.shown
) g on true

-- name: taken_over
-- The old ones among the same deaths, by the queue that they were ingested from.
with {deaths}
select came_from, count(*) as count from died where old group by came_from order by came_from

-- name: named
-- Each queue has a limited number of causes by name, those with a warning before all others; its other causes are one
-- without a name. Any sender may write thousands of exception types.
named as (
    select queue, cause, case when is_open or place + taken <= %(most)s then cause else '' end as shown
    from (
        select c.queue, c.cause, open.cause is not null as is_open, coalesce(places.taken, 0) as taken,
               row_number() over (partition by c.queue, open.cause is not null order by c.count desc, c.cause) as place
        from counted c
        left join unnest(%(queues)s::text[], %(causes)s::text[]) as open (queue, cause)
               on open.queue = c.queue and open.cause = c.cause
        left join (select queue, count(*) as taken from unnest(%(queues)s::text[]) as open (queue) group by queue) places
               on places.queue = c.queue
    ) ranked
)

-- name: lying
-- Dead messages that nobody has resolved, by the queue they died in and by cause.
-- Counted from the index of the dead alone, which has the exception; rows are read, for their results, only where some
-- have none. Times as in died_since.
with groups as materialized (
    select queue, exception_type as cause, count(*) as count, min(died_at) as first_at
    from messages.message_archive where state = 'dead' group by queue, exception_type
), counted as (
    select left(coalesce(queue, '"messages"."message"'), 400) as queue, left(cause, 400) as cause,
           sum(count)::bigint as count, min(first_at) as first_at
    from (
        select queue, cause, count, first_at from groups where cause <> ''
        union all
        select queue, result::text, count(*), min(died_at) from messages.message_archive
        where state = 'dead' and exception_type is null and exists (select from groups where cause is null)
        group by queue, result
        union all
        select queue, result::text, count(*), min(died_at) from messages.message_archive
        where state = 'dead' and exception_type = '' and exists (select from groups where cause = '')
        group by queue, result
    ) caused
    group by 1, 2
), {named}
select queue, named.shown as cause, sum(count)::bigint as count,
    greatest(least(min(first_at), now()), '0001-01-02') as first_at, count(*) as causes
from counted join named using (queue, cause) group by queue, named.shown

-- name: resolutions
-- How messages that were archived by a cause since its warning began were resolved, and by whom, most frequent first.
-- They may have died up to 30 days before it; an index finds them by their time of death.
select resolution, resolved_by as who, operation, count(*) as count
from messages.message_archive
where (queue = %(queue)s or queue is null and %(queue)s = '"messages"."message"')
  and coalesce(nullif(exception_type, ''), result::text) = %(cause)s
  and died_at >= %(since)s::timestamptz - interval '30 days'
  and archived_at >= %(since)s::timestamptz at time zone 'utc' and resolution is not null
group by resolution, resolved_by, operation order by count(*) desc, operation limit %(most)s
