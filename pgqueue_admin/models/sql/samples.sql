-- name: steps
-- One queue in even steps: the maximum of counts, the average of rates; by the index on queue and time.
select
    floor(extract(epoch from at) / %(step)s)::int8 as step,
    max(ready), max(in_flight), max(delayed), max(expired),
    round(avg(in_per_second)::numeric, 3)::float8, round(avg(out_per_second)::numeric, 3)::float8, max(dead), {worst}
from pgqueue_sample
where queue_id = %(queue)s and at > %(since)s
group by 1

-- name: most_ready
-- Several queues in even steps, for the small charts.
select queue_id, floor(extract(epoch from at) / %(step)s)::int8 as step, max(ready)
from pgqueue_sample
where queue_id = any(%(queues)s) and at > %(since)s
group by 1, 2

-- name: thin
-- Keeps the first sample of each minute of these queues.
-- Selects what to delete: NOT IN over what stays is evaluated row by row once that exceeds work_mem, and does not end.
delete from pgqueue_sample where id = any(array(
    select id
    from (
        select id, row_number() over (partition by queue_id, date_trunc('minute', at, 'UTC') order by id) as place
        from pgqueue_sample
        where queue_id = any(%(queues)s) and at >= %(since)s and at < %(until)s
    ) counted
    where place > 1
))

-- name: depths
-- The samples of each queue, and, as queue 0, of all input queues together: samples of one round have one time.
-- A queue that could not be read in a round has a sample without figures.
select
    queue_id as queue, at, depth, in_per_second, out_per_second,
    case when ready > 0 and oldest_at is not null then greatest(0, extract(epoch from at - oldest_at)) end::float8
        as oldest_seconds,
    case when ready > 0 and oldest_at is not null then oldest_how = 'least' end as oldest_at_least, null::int4 as unread,
    how
from pgqueue_sample where depth is not null
union all
select
    0, sample.at, sum(sample.depth)::int8,
    -- a total only where each is known: a part of it would look like the total
    case when count(sample.in_per_second) = count(*) then sum(sample.in_per_second) end,
    case when count(sample.out_per_second) = count(*) then sum(sample.out_per_second) end,
    max(greatest(0, extract(epoch from sample.at - sample.oldest_at)))
        filter (where sample.ready > 0 and sample.oldest_at is not null)::float8,
    -- a queue of unknown age may hold an older message
    (array_agg(sample.oldest_how = 'least' order by sample.oldest_at)
        filter (where sample.ready > 0 and sample.oldest_at is not null))[1]
        or bool_or(sample.depth is null or sample.ready > 0 and sample.oldest_at is null),
    count(*) filter (where sample.depth is null)::int4, {worst}
from pgqueue_sample sample join pgqueue_queue queue on queue.id = sample.queue_id
where queue.kind in ('input', 'lease')
group by sample.at having count(sample.depth) > 0

-- name: figures
-- The figures of a step, as of_samples and of_minutes list them.
low, median, high, in_per_second, out_per_second, rated_minutes, oldest_seconds, oldest_at_least, unread, how

-- name: worst
-- How a combined figure is known, as in wording.figures.of_sum; null where that was not kept of one part.
case
    when bool_or(how in ('capped', 'about-least')) then
        case when bool_or(how in ('estimate', 'about-least')) then 'about-least' else 'capped' end
    when bool_or(how = 'estimate') then 'estimate'
    when bool_and(how is not null) then 'counted'
end

-- name: of_samples
-- A minute's figures from its samples.
min(depth), percentile_disc(0.5) within group (order by depth), max(depth),
    avg(in_per_second), avg(out_per_second), case when count(coalesce(in_per_second, out_per_second)) > 0 then 1 end,
    max(oldest_seconds), (array_agg(oldest_at_least order by oldest_seconds desc nulls last))[1], max(unread), {worst}

-- name: of_minutes
-- An hour's or a day's from its minutes: minimum, median minute, maximum, and what is known of the others.
min(low), percentile_disc(0.5) within group (order by median), max(high),
    avg(in_per_second), avg(out_per_second), sum(rated_minutes)::int4,
    max(oldest_seconds), (array_agg(oldest_at_least order by oldest_seconds desc nulls last))[1], max(unread), {worst}

-- name: fold_minutes
-- Minutes that are over and not folded yet. Runs before samples are thinned, so that a minute is complete.
insert into pgqueue_depthbucket (grain, at, queue, {figures})
select
    'minute', date_trunc('minute', at, 'UTC'), queue, {of_samples}
from ({depths}) seen
where at < %(until)s
    and at >= coalesce((select max(at) + interval '1 minute' from pgqueue_depthbucket where grain = 'minute'), '-infinity')
group by 2, 3
on conflict (queue, grain, at) do nothing

-- name: fold_larger
-- Hours and days that are over, from their minutes: minimum, maximum and median minute.
insert into pgqueue_depthbucket (grain, at, queue, {figures})
select
    %(grain)s, date_trunc(%(grain)s, at, 'UTC'), queue, {of_minutes}
from pgqueue_depthbucket
where grain = 'minute' and at < %(until)s
    and at >= coalesce((select max(at) + %(step)s from pgqueue_depthbucket where grain = %(grain)s), '-infinity')
group by 2, 3
on conflict (queue, grain, at) do nothing

-- name: folded
-- Up to when a grain and minutes are folded; a statement of its own, so that the planner sees how little is left.
select
    (select max(at) + %(step)s from pgqueue_depthbucket where grain = %(grain)s) as steps,
    (select max(at) + interval '1 minute' from pgqueue_depthbucket where grain = 'minute') as minutes

-- name: depth
-- One queue in steps, oldest first: folded ones, then live ones from minutes and samples.
with minutes as (
    select at, {figures} from pgqueue_depthbucket
    where queue = %(queue)s and grain = 'minute' and at >= %(steps)s
    union all
    select
        date_trunc('minute', at, 'UTC'), {of_samples}
    from ({depths}) seen
    where queue = %(queue)s and at >= %(minutes)s
    group by 1
), steps as (
    select at, {figures}, false as is_live from pgqueue_depthbucket
    where queue = %(queue)s and grain = %(grain)s and at < %(steps)s
    union all
    select
        date_trunc(%(grain)s, at, 'UTC'), {of_minutes}, true
    from minutes group by 1
)
select extract(epoch from at)::int8, {figures}, is_live from steps
where at >= %(since)s and at < %(until)s order by at

-- name: forget_depths
-- Fine steps are kept for a time, days forever.
delete from pgqueue_depthbucket where grain = %(grain)s and at < %(before)s
