-- name: due
-- Steps that are over and whose figures are not counted, newest first; a counted step has a row for all names.
select at
from generate_series(
    (select min(at) from pgqueue_rollup where grain = %(grain)s),
    date_trunc(%(grain)s, %(until)s::timestamptz, 'UTC') - %(step)s::interval, %(step)s::interval
) as at
where exists (select from pgqueue_rollup figure where figure.grain = %(grain)s and figure.at = at.at)
    and not exists (
        select from pgqueue_countbucket cut
        where (cut.endpoint, cut.queue, cut.type, cut.grain) = ('', '', '', %(grain)s) and cut.at = at.at
    )
order by at desc limit %(most)s

-- name: count
-- Of all, each queue, each endpoint and each type: what finished, and what succeeded when retried, over all batches.
with finished as (
    select {subject}, {figures}
    from pgqueue_rollup
    where grain = %(grain)s::text and at = %(at)s::timestamptz
    group by {subjects}
), tried_again as (
    select {subject}, {again}
    from pgqueue_retryoutcome
    where last_succeeded_at >= %(at)s::timestamptz and last_succeeded_at < %(at)s::timestamptz + %(step)s::interval
    group by {subjects}
)
insert into pgqueue_countbucket (grain, at, queue, endpoint, type, succeeded, failed, skewed, retried)
select %(grain)s::text, %(at)s::timestamptz, queue, endpoint, type, succeeded, failed, skewed, coalesce(retried, 0)
from finished left join tried_again using (queue, endpoint, type)
on conflict do nothing

-- name: count_failures
-- Each failure of each kind, over all minutes and batches. An older driver leaves the rows of steps that it doubts.
with left_over as (
    delete from pgqueue_failurebucket where (grain, at) = (%(grain)s::text, %(at)s::timestamptz)
)
insert into pgqueue_failurebucket
    (grain, at, fingerprint, queue, endpoint, type, exception, message, messages, first_at, last_at)
select
    %(grain)s::text, %(at)s::timestamptz, fingerprint, queue, endpoint, type, min(exception), min(message),
    sum(messages)::int8, min(first_at), max(last_at)
from pgqueue_failurerollup
where at >= %(at)s::timestamptz and at < %(at)s::timestamptz + %(step)s::interval
group by fingerprint, queue, endpoint, type

-- name: subject
-- An empty name means all.
coalesce(queue, '') as queue, coalesce(endpoint, '') as endpoint, coalesce(type, '') as type

-- name: subjects
-- What has no name counts in the sum of all only.
grouping sets ((), (queue), (endpoint), (type))
having (grouping(queue) = 1 or queue <> '') and (grouping(endpoint) = 1 or endpoint <> '')
    and (grouping(type) = 1 or type <> '')

-- name: finalize
-- Likewise the latencies: buckets of all batches are summed, then cut into percentiles.
with counted as (
    select {subject}, measure, bucket, sum(number::float8) as number
    from pgqueue_rollup, lateral (
        values ('critical', critical_buckets, critical_counts), ('processing', processing_buckets, processing_counts), ('delivery', delivery_buckets, delivery_counts)
    ) as timed (measure, buckets, numbers), unnest(buckets, numbers) as histogram (bucket, number)
    where grain = %(grain)s::text and at = %(at)s::timestamptz
    group by measure, bucket, {subjects}
), running as (
    select
        *, width_bucket(bucket, %(starts)s::int4[]) as band,
        sum(number) over (of_kind order by bucket rows unbounded preceding) as upto, sum(number) over of_kind as whole
    from counted
    window of_kind as (partition by queue, endpoint, type, measure)
), banded as (
    select queue, endpoint, type, measure, band, sum(number)::int8 as number, {percentiles}
    from running
    group by queue, endpoint, type, measure, band
)
insert into pgqueue_latencybucket (grain, at, queue, endpoint, type, measure, p50, p95, p99, bands, numbers)
select %(grain)s::text, %(at)s::timestamptz, queue, endpoint, type, measure, min(p50), min(p95), min(p99), array_agg(band), array_agg(number)
from banded
group by queue, endpoint, type, measure
on conflict do nothing

-- name: doubt
-- Deletes what was counted and cut of these steps: it is incomplete, or too much.
with steps as (
    {doubted}
), uncut as (
    delete from pgqueue_latencybucket where (grain, at) in (select grain, at from steps)
), untold as (
    delete from pgqueue_failurebucket where (grain, at) in (select grain, at from steps)
)
delete from pgqueue_countbucket where (grain, at) in (select grain, at from steps)

-- name: of_batch
-- The steps that a batch counts in.
select distinct grain, at from pgqueue_rollup where batch_id = %(batch)s and grain <> 'minute'

-- name: of_day
-- A day and its hours.
select 'day' as grain, %(at)s::timestamptz as at
union all
select 'hour', %(at)s::timestamptz + hour * interval '1 hour' from generate_series(0, 23) as hour

-- name: alone
-- Until the transaction ends: cutting or folding sees what a batch has counted, or the batch sees what was cut.
select pg_advisory_xact_lock(hashtext('pgqueue cut steps'))
