-- name: touched
-- Hours in which messages of these batches finished.
select distinct at from pgqueue_rollup where grain = 'hour' and batch_id = any(%(batches)s)

-- name: first_hour
-- Where history begins, no further back than anything is compared.
select min(at) from pgqueue_rollup where grain = 'hour' and at >= %(since)s

-- name: see
-- Each kind in each step: counts, and percentiles of summed histograms. Never an average of percentiles.
with asked as materialized (
    select
        at, case when endpoint = '' then queue else '' end as queue, endpoint, type, messages,
        case when result = 'success' then 0 else messages end as failed,
        critical_buckets, critical_counts, processing_buckets, processing_counts, delivery_buckets, delivery_counts
    from pgqueue_rollup
    where grain = %(grain)s and at = any(%(at)s)
), counted as (
    select {subject}, at, sum(messages)::int8 as messages, sum(failed)::int8 as failed
    from asked
    group by at, {subjects}
), measured as (
    select {subject}, at, measure, bucket, sum(number) as number
    from asked, lateral (
        values ('critical', critical_buckets, critical_counts), ('processing', processing_buckets, processing_counts), ('delivery', delivery_buckets, delivery_counts)
    ) as timed (measure, buckets, numbers), unnest(buckets, numbers) as histogram (bucket, number)
    group by at, measure, bucket, {subjects}
), running as (
    select *, sum(number) over (of_kind order by bucket) as upto, sum(number) over of_kind as whole
    from measured
    window of_kind as (partition by at, queue, endpoint, type, measure)
), cut as (
    select
        at, queue, endpoint, type, measure, max(whole)::int8 as timed,
        array[
            min(bucket) filter (where upto >= whole * 0.5),
            min(bucket) filter (where upto >= whole * 0.95),
            min(bucket) filter (where upto >= least(whole * 0.95, whole - 4) and whole >= 5),
            min(bucket) filter (where upto >= whole * 0.99)
        ] as spans
    from running
    group by 1, 2, 3, 4, 5
), seen as (
    select queue, endpoint, type, at, messages, failed from counted
    union all
    select '', '', '', at, 0, 0 from unnest(%(at)s::timestamptz[]) as at
    where not exists (select from counted where counted.at = at.at)
)
insert into pgqueue_baselinebucket (grain, at, queue, endpoint, type, messages, failed, timed, critical, processing, delivery)
select
    %(grain)s, at, queue, endpoint, type, messages, failed,
    coalesce(max(timed) filter (where measure = 'critical'), 0),
    max(spans) filter (where measure = 'critical'), max(spans) filter (where measure = 'processing'),
    max(spans) filter (where measure = 'delivery')
from seen left join cut using (at, queue, endpoint, type)
group by at, queue, endpoint, type, messages, failed

-- name: subject
-- The names of a sum: an empty one means all.
coalesce(queue, '') as queue, coalesce(endpoint, '') as endpoint, coalesce(type, '') as type

-- name: subjects
-- All, each place, each type, each type of each place; what has no name counts in the wider sums only.
grouping sets ((), (queue, endpoint), (type), (queue, endpoint, type))
having (grouping(endpoint) = 1 or queue <> '' or endpoint <> '') and (grouping(type) = 1 or type <> '')

-- name: weeks
-- The same step of the weeks before, by the clocks of a zone: their changes move no hour of the week.
-- Where clocks change by half an hour, the hour in which the step would have begun.
with before as (
    select
        at, date_trunc('hour', (at at time zone %(zone)s - week * interval '7 days') at time zone %(zone)s, 'UTC') as earlier
    from unnest(%(at)s::timestamptz[]) as at, generate_series(1, %(weeks)s) as week
)

-- name: ranges
-- Quartiles of those weeks, from when a kind was first seen; quiet steps are zeros. Lateral: always by the index.
{weeks}, kinds as materialized (
    select kind.*, begun.at as first
    from (
        select distinct queue, endpoint, type from pgqueue_baselinebucket
        where grain = %(grain)s and at = any(array(select earlier from before)) and {of}
    ) kind, lateral (
        select at from pgqueue_baselinebucket seen
        where (seen.endpoint, seen.queue, seen.type) = (kind.endpoint, kind.queue, kind.type) and grain = %(grain)s
        order by at limit 1
    ) begun
)
select
    extract(epoch from before.at)::int8 as at, kinds.queue, kinds.endpoint, kinds.type,
    count(*)::int8 as weeks, count(nullif(seen.messages, 0))::int8 as busy, count(seen.{measure}[1])::int8 as timed,
    count(seen.{measure}[4])::int8 as cut,
    percentile_disc({quartiles}) within group (order by coalesce(seen.messages, 0)) as messages,
    percentile_disc({quartiles}) within group (order by coalesce(seen.failed, 0)) as failures,
    percentile_disc({quartiles}) within group (order by seen.failed::float8 / nullif(seen.messages, 0)) as failed,
    percentile_disc({quartiles}) within group (order by seen.{measure}[1]) as half,
    percentile_disc({quartiles}) within group (order by seen.{measure}[2]) as nearly_all,
    percentile_disc({quartiles}) within group (order by seen.{measure}[4]) as all_but_one
from before join kinds on kinds.first <= before.earlier
left join lateral (
    select * from pgqueue_baselinebucket step
    where (step.endpoint, step.queue, step.type) = (kinds.endpoint, kinds.queue, kinds.type)
        and step.grain = %(grain)s and step.at = before.earlier
    limit 1
) seen on true
group by 1, 2, 3, 4

-- name: names_endpoints
-- Whether a queue's messages named endpoints, on the days of these steps or weeks: its baseline is without them.
{weeks}
select exists (
    select from pgqueue_rollup
    where grain = 'day' and queue = %(queue)s and endpoint <> '' and (%(type)s = '' or type = %(type)s)
        and at >= (select date_trunc('day', min(earlier), 'UTC') from before) and at <= (select max(at) from before)
)

-- name: depth_ranges
-- As ranges, for depth, by its median in each step; a step without a sample is not counted.
{weeks}
select
    extract(epoch from before.at)::int8, queue, count(*)::int8,
    percentile_disc({quartiles}) within group (order by median)
from before, unnest(%(queues)s::int8[]) as queue, lateral (
    select median from pgqueue_depthbucket step
    where step.queue = queue.queue and step.grain = %(grain)s and step.at = before.earlier
    limit 1
) seen
group by 1, 2

-- name: quartiles
-- Values that occurred, as every percentile here.
array[0.25, 0.5, 0.75]

-- name: seen
-- What the hours themselves showed, to compare with their ranges.
select
    extract(epoch from at)::int8 as at, queue, endpoint, type,
    messages, failed, timed, critical[2] as p95, critical[3] as fifth
from pgqueue_baselinebucket
where grain = 'hour' and at = any(%(at)s) and {of}

-- name: seen_depth
-- Likewise the depth.
select extract(epoch from at)::int8 as at, queue, median from pgqueue_depthbucket
where grain = 'hour' and at = any(%(at)s) and queue = any(%(queues)s)

-- name: of_one
-- One kind.
(endpoint, queue, type) = (%(endpoint)s, %(queue)s, %(type)s)

-- name: of_each
-- Each place, with all of its types together and each apart.
(endpoint <> '' or queue <> '')

-- name: alone
-- Until the transaction ends; a second caller does not wait, and leaves the work to the first.
select pg_try_advisory_xact_lock(hashtext('pgqueue usual'))
