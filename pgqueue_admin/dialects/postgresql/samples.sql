-- name: steps
-- One queue in even steps: of counts the most, of rates the average; the index on queue and time finds them.
select
    floor(extract(epoch from at) / %(step)s)::int8 as step,
    max(ready), max(in_flight), max(delayed), max(expired),
    round(avg(in_per_second)::numeric, 3)::float8, round(avg(out_per_second)::numeric, 3)::float8, max(dead)
from pgqueue_sample
where queue_id = %(queue)s and at > %(since)s
group by 1

-- name: most_ready
-- Several queues in even steps, for the small charts.
select queue_id, floor(extract(epoch from at) / %(step)s)::int8 as step, max(ready)
from pgqueue_sample
where queue_id = any(%(queues)s) and at > %(since)s
group by 1, 2

-- name: depths
-- What was seen of each queue, and, as queue 0, of all input queues together: one look has one time.
select queue_id as queue, at, depth from pgqueue_sample where depth is not null
union all
select 0, sample.at, sum(sample.depth)::int8
from pgqueue_sample sample join pgqueue_queue queue on queue.id = sample.queue_id
where queue.kind = 'input' and sample.depth is not null
group by sample.at

-- name: fold_minutes
-- Minutes that are over and not folded yet. Done before samples are thinned: of a minute none is missing.
insert into pgqueue_depthstep (grain, at, queue, low, median, high)
select
    'minute', date_trunc('minute', at, 'UTC'), queue,
    min(depth), percentile_disc(0.5) within group (order by depth), max(depth)
from ({depths}) seen
where at < %(until)s
    and at >= coalesce((select max(at) + interval '1 minute' from pgqueue_depthstep where grain = 'minute'), '-infinity')
group by 2, 3
on conflict (queue, grain, at) do nothing

-- name: fold_larger
-- Hours and days that are over, from their minutes: the least, the most, and the minute in the middle.
insert into pgqueue_depthstep (grain, at, queue, low, median, high)
select
    %(grain)s, date_trunc(%(grain)s, at, 'UTC'), queue,
    min(low), percentile_disc(0.5) within group (order by median), max(high)
from pgqueue_depthstep
where grain = 'minute' and at < %(until)s
    and at >= coalesce((select max(at) + %(step)s from pgqueue_depthstep where grain = %(grain)s), '-infinity')
group by 2, 3
on conflict (queue, grain, at) do nothing

-- name: folded
-- Up to when steps of a grain, and minutes, are folded; asked apart, so that the planner sees how little is left.
select
    (select max(at) + %(step)s from pgqueue_depthstep where grain = %(grain)s) as steps,
    (select max(at) + interval '1 minute' from pgqueue_depthstep where grain = 'minute') as minutes

-- name: depth
-- One queue in steps, oldest first: folded ones, and from there on what minutes and samples say until now.
with minutes as (
    select at, low, median, high from pgqueue_depthstep
    where queue = %(queue)s and grain = 'minute' and at >= %(steps)s
    union all
    select
        date_trunc('minute', at, 'UTC'), min(depth), percentile_disc(0.5) within group (order by depth), max(depth)
    from ({depths}) seen
    where queue = %(queue)s and at >= %(minutes)s
    group by 1
), steps as (
    select at, low, median, high, false as is_live from pgqueue_depthstep
    where queue = %(queue)s and grain = %(grain)s and at < %(steps)s
    union all
    select
        date_trunc(%(grain)s, at, 'UTC'), min(low), percentile_disc(0.5) within group (order by median), max(high), true
    from minutes group by 1
)
select extract(epoch from at)::int8, low, median, high, is_live from steps
where at >= %(since)s and at < %(until)s order by at

-- name: forget_depths
-- Fine steps are kept for so long; days for ever.
delete from pgqueue_depthstep where grain = %(grain)s and at < %(before)s
