-- name: counts
-- What finished in each step, of the kinds asked for; the index on grain and time finds them.
select
    extract(epoch from at)::int8 as at,
    coalesce(sum(messages) filter (where result = 'success'), 0)::int8 as succeeded,
    coalesce(sum(messages) filter (where result <> 'success'), 0)::int8 as failed,
    sum(skewed)::int8 as skewed
from pgqueue_rollup
where {asked}
group by 1

-- name: percentiles
-- Histograms add up: buckets are summed first and only then cut at shares of the whole. Never an average of percentiles.
with counted as (
    select at, bucket, sum(number) as number
    from pgqueue_rollup, unnest({buckets}, {numbers}) as histogram (bucket, number)
    where {asked}
    group by at, bucket
), running as (
    select
        at, bucket,
        sum(number) over (partition by at order by bucket) as upto,
        sum(number) over (partition by at) as whole
    from counted
)
select
    extract(epoch from at)::int8 as at,
    min(bucket) filter (where upto >= whole * 0.5) as p50,
    min(bucket) filter (where upto >= whole * 0.95) as p95,
    min(bucket) filter (where upto >= whole * 0.99) as p99
from running
group by 1

-- name: asked
-- One window of one grain; an empty name asks for all.
grain = %(grain)s and at >= %(since)s and at < %(until)s
    and (%(queue)s = '' or queue = %(queue)s) and (%(endpoint)s = '' or endpoint = %(endpoint)s)
    and (%(type)s = '' or type = %(type)s)

-- name: kinds
-- What may be asked for in a window, the busiest first.
select {name} as name, sum(messages)::int8 as messages
from pgqueue_rollup
where grain = %(grain)s and at >= %(since)s and at < %(until)s and {name} <> ''
group by 1 order by 2 desc, 1 limit 200

-- name: failures
-- Which errors, how often, first and last seen in the window.
select exception, min(at) as first, max(at) as last, sum(messages)::int8 as messages
from pgqueue_rollup
where {asked} and exception <> ''
group by 1 order by 4 desc, 1 limit 10
