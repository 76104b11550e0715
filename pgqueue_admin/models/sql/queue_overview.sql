-- name: rows
-- Hundreds of rows a page: times come as seconds, which the driver reads ten times as fast as timestamps.
select
    q.id, q.schema, q."table", q.kind, q.reason, q.target_age_seconds, q.target_depth, q.target_dead, q.ingest,
    q.endpoint,
    l.ready, l.in_flight, l.delayed, l.expired, l.dead, l.depth, l.how, l.delayed_how, l.head_seq, l.tail_seq,
    l.in_per_second, l.out_per_second, l.oldest_how, l.error, l.sqlstate,
    extract(epoch from l.at)::float8 as at,
    extract(epoch from l.oldest_at)::float8 as oldest_at,
    extract(epoch from l.next_due_at)::float8 as next_due_at,
    extract(epoch from l.changed_at)::float8 as changed_at,
    extract(epoch from l.last_departure_at)::float8 as last_departure_at
from pgqueue_queue q
left join pgqueue_latestsample l on l.queue_id = q.id
where q.gone_since is null and (%(seen)s::int8[] is null or q.id = any(%(seen)s))
order by q.schema, q."table"

-- name: dead
-- Both times in one statement; of an error queue's samples in the two minutes before, the newest counts.
select
    (select dead from pgqueue_archivesample order by id desc limit 1) as archived,
    (select dead from pgqueue_archivesample where at <= %(then)s order by at desc limit 1) as archived_then,
    (select sum(s.dead)::int8
     from pgqueue_queue q
     cross join lateral (
         select dead
         from pgqueue_sample
         where queue_id = q.id
           and dead is not null
           and at between %(then)s - interval '2 min' and %(then)s
         order by at desc
         limit 1
     ) s
     where q.kind = 'error' and (%(seen)s::int8[] is null or q.id = any(%(seen)s))) as lying_then

-- name: dead_then
-- Of the samples in the two minutes before that time, the newest counts: one is taken every ten seconds.
select asked.queue_id, s.dead
from unnest(%(queues)s::int8[]) as asked (queue_id)
cross join lateral (
    select dead
    from pgqueue_sample
    where queue_id = asked.queue_id
      and dead is not null
      and at between %(then)s - interval '2 min' and %(then)s
    order by at desc
    limit 1
) s
