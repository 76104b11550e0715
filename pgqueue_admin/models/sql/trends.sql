-- name: counts
-- What finished in each step, of the kinds asked for; by the index on grain and time.
select extract(epoch from at)::int8 as at, {figures}
from pgqueue_rollup
where {asked}
group by 1

-- name: figures
-- Of any rows: what finished, by result.
coalesce(sum(messages) filter (where result = 'success'), 0)::int8 as succeeded,
    coalesce(sum(messages) filter (where result <> 'success'), 0)::int8 as failed, sum(skewed)::int8 as skewed

-- name: counts_of_cut
-- Stored counts of steps that are over, and sums for all others; in one snapshot, so that no step is missing or double.
select extract(epoch from steps.at)::int8 as at, counted.*
from ({steps}) steps, lateral (
    select {figures} from pgqueue_rollup where {asked} and at = steps.at having count(*) > 0
) counted
union all
select extract(epoch from at)::int8, succeeded, failed, skewed
from pgqueue_countbucket
where (endpoint, queue, type, grain) = (%(endpoint)s, %(queue)s, %(type)s, %(grain)s)
    and at >= %(since)s and at < %(until)s

-- name: last_of_cut
-- The last step in which anything finished: of all or one name. No index leads from a type to the counted figures.
select max(at) from (
    select max(at) as at from pgqueue_countbucket
    where (endpoint, queue, type, grain) = (%(endpoint)s, %(queue)s, %(type)s, %(grain)s)
    union all
    select max(steps.at)
    from ({steps}) steps where exists (select from pgqueue_rollup where {asked} and at = steps.at)
) lasts

-- name: timings
-- Buckets are summed step by step (small sorts are quick), then cut: no average of percentiles. Numeric would be slower.
select extract(epoch from steps.at)::int8 as at, cut.*
from ({steps}) steps, lateral (
    with counted as (
        select bucket, sum(number::float8) as number
        from (
            select unnest({buckets}) as bucket, unnest({numbers}) as number
            from pgqueue_rollup where {asked} and at = steps.at
        ) each
        group by bucket offset 0
    ), running as (
        select
            bucket, number, width_bucket(bucket, %(starts)s::int4[]) as band,
            sum(number) over (order by bucket rows unbounded preceding) as upto, sum(number) over () as whole
        from counted
    ), banded as (
        select band, sum(number)::int8 as number, {percentiles}
        from running
        group by band
    )
    select min(p50) as p50, min(p95) as p95, min(p99) as p99, array_agg(band) as bands, array_agg(number) as numbers
    from banded having count(*) > 0
) cut

-- name: timings_of_cut
-- As counts_of_cut, for latencies.
{timings}
union all
select extract(epoch from at)::int8, p50, p95, p99, bands, numbers
from pgqueue_latencybucket
where (endpoint, queue, type, measure, grain) = (%(endpoint)s, %(queue)s, %(type)s, %(measure)s, %(grain)s)
    and at >= %(since)s and at < %(until)s

-- name: percentiles
-- Of a running sum: the first bucket at or above each share.
min(bucket) filter (where upto * 100 >= whole * 50) as p50, min(bucket) filter (where upto * 100 >= whole * 95) as p95,
    min(bucket) filter (where upto * 100 >= whole * 99) as p99

-- name: every_step
-- The steps of a window, with those in which nothing finished.
select at
from generate_series(date_trunc(%(grain)s, %(since)s::timestamptz, 'UTC'), %(until)s::timestamptz, %(step)s::interval) as at

-- name: steps_to_sum
-- Open steps, and those that a batch added to since: a counted step has a row for all names. Found first.
{every_step} where not exists (
    select from pgqueue_countbucket cut
    where (cut.endpoint, cut.queue, cut.type, cut.grain) = ('', '', '', %(grain)s) and cut.at = at.at
) offset 0

-- name: asked
-- One window of one grain; an empty name asks for all.
grain = %(grain)s and at >= %(since)s and at < %(until)s
    and (%(queue)s = '' or queue = %(queue)s) and (%(endpoint)s = '' or endpoint = %(endpoint)s)
    and (%(type)s = '' or type = %(type)s)

-- name: kinds
-- Queues, endpoints and types of a window, the busiest first. One pass for all three: the window is large.
with counted as (
    {counted}
), named as (
    select what, name, sum(messages)::int8 as messages
    from counted, lateral (values ('queue', queue), ('endpoint', endpoint), ('type', type)) as names (what, name)
    where name <> ''
    group by 1, 2
), placed as (
    select *, row_number() over (partition by what order by messages desc, name) as place from named
)
select what, name, messages from placed where place <= 200 order by what, place

-- name: counted_steps
-- By all names at once.
select queue, endpoint, type, sum(messages) as messages
from pgqueue_rollup
where grain = %(grain)s and at >= %(since)s and at < %(until)s
group by 1, 2, 3

-- name: counted_cut
-- Likewise for steps that are not counted yet; the others have one row for each name.
select summed.*
from ({steps}) steps, lateral (
    select queue, endpoint, type, sum(messages) as messages
    from pgqueue_rollup where grain = %(grain)s and at = steps.at and at >= %(since)s and at < %(until)s group by 1, 2, 3
) summed
union all
select queue, endpoint, type, sum(succeeded + failed)
from pgqueue_countbucket
where grain = %(grain)s and at >= %(since)s and at < %(until)s
group by 1, 2, 3

-- name: failures
-- Failures by fingerprint, the most frequent first; new: never seen before the window, if anything older is kept.
with shown as (
    select
        fingerprint, min(exception) as exception, min(message) as message, min(first_at) as first, max(last_at) as last,
        sum(messages)::int8 as messages
    from (
        {failed}
    ) failed
    group by 1 order by messages desc, fingerprint limit 20
)
select
    shown.*,
    exists (
        select from pgqueue_rollup where grain = 'day' and at < date_trunc('day', %(since)s::timestamptz, 'UTC')
            and (%(kept_from)s::timestamptz is null or at >= %(kept_from)s)
            and (%(within)s = '' or queue = %(within)s)
    )
    and not exists (
        select from pgqueue_failurerollup ever where ever.fingerprint = shown.fingerprint and ever.at < %(since)s
            and (%(within)s = '' or ever.queue = %(within)s)
    ) as is_new
from shown order by messages desc, fingerprint

-- name: failed_minutes
-- As batches wrote them.
select fingerprint, exception, message, messages, first_at, last_at
from pgqueue_failurerollup
where {between} and {of}

-- name: failed_cut
-- Likewise for steps that are not counted yet, each by the index; the others have each failure once.
select summed.*
from ({steps}) steps, lateral (
    select fingerprint, exception, message, messages, first_at, last_at
    from pgqueue_failurerollup
    where {between} and at >= steps.at and at < steps.at + %(step)s::interval and {of} offset 0
) summed
union all
select fingerprint, exception, message, messages, first_at, last_at
from pgqueue_failurebucket failure
where grain = %(grain)s and {between} and {of} and exists (
    select from pgqueue_countbucket cut
    where (cut.endpoint, cut.queue, cut.type, cut.grain) = ('', '', '', %(grain)s) and cut.at = failure.at
)

-- name: slowest
-- Of each type, in a window and in an earlier one: buckets are summed, then cut.
-- Both come in as few steps as possible, since a day's buckets are those of its hours.
with counted as (
    select type, is_before, bucket, sum(number::float8) as number
    from unnest(%(are_before)s::bool[], %(grains)s::text[], %(begins)s::timestamptz[], %(ends)s::timestamptz[])
        as span (is_before, grain, begin, until),
    lateral (
        select type, unnest({buckets}) as bucket, unnest({numbers}) as number
        from pgqueue_rollup figure
        where figure.grain = span.grain and at >= span.begin and at < span.until and type <> '' and {of}
            and (%(types)s::text[] is null or type = any(%(types)s::text[]))
    ) each
    group by 1, 2, 3
), running as (
    select
        type, is_before, bucket,
        sum(number) over (partition by type, is_before order by bucket rows unbounded preceding) as upto,
        sum(number) over (partition by type, is_before) as whole
    from counted
), cut as (
    select type, is_before, max(whole)::int8 as messages, {percentiles}
    from running group by 1, 2
)
select now.type, now.messages, now.p50, now.p95, earlier.p95 as before
from cut now left join cut earlier on earlier.type = now.type and earlier.is_before
where not now.is_before
order by now.p95 desc, now.messages desc, now.type limit 20

-- name: maybe_slowest
-- Types whose 95th percentile may be among the twenty slowest: in the band of the twentieth, or a slower one.
-- Steps that were cut tell it by few rows, and the band of a sum of steps is exactly that of its bucket.
with timed as (
    select type, band, number
    from pgqueue_latencybucket, unnest(bands, numbers) as counted (band, number)
    where (endpoint, queue, measure, grain) = ('', '', %(measure)s, %(grain)s) and type <> ''
        and at >= %(since)s and at < %(until)s
    union all
    select summed.*
    from ({steps}) steps, lateral (
        select type, width_bucket(unnest({buckets}), %(starts)s::int4[]) as band, unnest({numbers}) as number
        from pgqueue_rollup where {asked} and at = steps.at and type <> ''
    ) summed
), counted as (
    select type, band, sum(number) as number from timed group by 1, 2
), running as (
    select
        type, band, sum(number) over (partition by type order by band rows unbounded preceding) as upto,
        sum(number) over (partition by type) as whole
    from counted
), placed as (
    select type, rank() over (order by min(band) filter (where upto * 100 >= whole * 95) desc) as place
    from running group by 1
)
select type from placed where place <= 20

-- name: between
-- For rows that have their minute.
at >= %(since)s and at < %(until)s

-- name: of
-- For these names; an empty one asks for all.
(%(queue)s = '' or queue = %(queue)s) and (%(endpoint)s = '' or endpoint = %(endpoint)s)
    and (%(type)s = '' or type = %(type)s)

-- name: retry_outcomes
-- What became of what failed in a window: all that any batch knows of it, the last to fail first, and totals.
-- All receivers of an event share its id: the outcome of one says nothing of another's. Years have millions: the newest
-- parts stand for all, and is_capped says so.
with parts as materialized (
    select message_id, endpoint, last_failed_at from pgqueue_retryoutcome
    where last_failed_at >= %(since)s and last_failed_at < %(until)s and {of}
    order by last_failed_at desc limit %(most)s
), here as (
    select message_id, endpoint, max(last_failed_at) as last_failed from parts group by 1, 2
), ended as (
    select message_id, endpoint, max(part.last_succeeded_at) > max(part.last_failed_at) as has_succeeded
    from here join pgqueue_retryoutcome part using (message_id, endpoint) group by 1, 2
), shown as (
    select message_id, endpoint from here order by last_failed desc, message_id, endpoint limit 20
), told as (
    select
        message_id, endpoint, (array_agg(type order by last_failed_at desc nulls last))[1] as type,
        (array_agg(exception order by last_failed_at desc nulls last))[1] as exception,
        sum(failed)::int8 as failed, min(first_at) as first, max(last_failed_at) as last_failed,
        max(last_succeeded_at) as succeeded
    from pgqueue_retryoutcome join shown using (message_id, endpoint)
    group by 1, 2
)
select
    message_id, endpoint, type, exception, failed, first, last_failed,
    case when succeeded > last_failed then succeeded end as succeeded,
    (select count(*) from ended) as of_all, (select count(*) from ended where has_succeeded) as of_succeeded,
    (select count(*) from parts) = %(most)s as is_capped
from told order by last_failed desc, message_id, endpoint

-- name: retried
-- Messages that succeeded after a retry, by step: others that succeeded have no story.
select extract(epoch from date_trunc(%(grain)s, last_succeeded_at, 'UTC'))::int8 as at, {again}
from pgqueue_retryoutcome
where last_succeeded_at >= %(since)s and last_succeeded_at < %(until)s and {of}
group by 1

-- name: retried_of_cut
-- Stored counts of steps that are over, and sums for all others.
select extract(epoch from steps.at)::int8 as at, counted.*
from ({steps}) steps, lateral (
    select {again}
    from pgqueue_retryoutcome
    where last_succeeded_at >= steps.at and last_succeeded_at < least(steps.at + %(step)s::interval, %(until)s) and {of}
    having count(*) > 0
) counted
union all
select extract(epoch from at)::int8, retried
from pgqueue_countbucket
where (endpoint, queue, type, grain) = (%(endpoint)s, %(queue)s, %(type)s, %(grain)s)
    and at >= %(since)s and at < %(until)s and retried > 0

-- name: again
-- Of parts of retry outcomes in one step: a message that succeeded twice in it counts once per endpoint.
-- Compared as one text, by its bytes: comparing pairs is several times slower.
count(distinct (message_id || e'\x1f' || endpoint) collate "C")::int8 as retried

-- name: rejected
-- Rows that history could not keep, over all batches that count.
select reason, sum(number::int8)::int8 as rows, max(ended_at) as last
from pgqueue_historybatch, jsonb_each_text(rejected) as turned_away (reason, number)
where state = 'done' and rejected <> '{{}}'
group by 1 order by 2 desc, 1

-- name: measure_waits
-- Of a queue's types that may expire: delivery times of some days merged by bucket, and how many messages expired.
-- Endpoints that share a queue wait in it together.
with merged as (
    select ttbr.id, bucket, sum(number)::int8 as number
    from pgqueue_minimumttbr ttbr
    join pgqueue_queue queue on queue.id = ttbr.queue_id
    join pgqueue_endpoint endpoint on (endpoint.schema, endpoint.table) = (queue.schema, queue.table)
    join pgqueue_rollup figure on figure.endpoint = endpoint.name and figure.type = ttbr.message_type
    cross join unnest(figure.delivery_buckets, figure.delivery_counts) as histogram (bucket, number)
    where figure.grain = 'day' and figure.at >= %(since)s
    group by 1, 2
), whole as (
    select id, array_agg(bucket order by bucket) as buckets, array_agg(number order by bucket) as numbers
    from merged group by 1
), late as (
    select queue_id, message_type, sum(number)::int8 as number
    from pgqueue_expiredcount where day >= %(since)s group by 1, 2
), known as (
    select
        ttbr.id, coalesce(whole.buckets, '{{}}') as buckets, coalesce(whole.numbers, '{{}}') as numbers,
        coalesce(late.number, 0) as expired
    from pgqueue_minimumttbr ttbr
    left join whole on whole.id = ttbr.id
    left join late on (late.queue_id, late.message_type) = (ttbr.queue_id, ttbr.message_type)
)
update pgqueue_minimumttbr ttbr
set delivery_buckets = known.buckets, delivery_counts = known.numbers, expired = known.expired
from known
where known.id = ttbr.id
    and (ttbr.delivery_buckets, ttbr.delivery_counts, ttbr.expired) is distinct from (known.buckets, known.numbers, known.expired)
