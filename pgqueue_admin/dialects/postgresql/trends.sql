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

-- name: rejected
-- What could not be kept, over all batches that count.
select reason, sum(number::int8)::int8 as rows, max(ended_at) as last
from pgqueue_historybatch, jsonb_each_text(rejected) as turned_away (reason, number)
where state = 'done'
group by 1 order by 2 desc, 1

-- name: measure_waits
-- Of an endpoint's types that may expire: delivery times of some days merged by bucket, and what nobody got in time.
with merged as (
    select endpoint, type, bucket, sum(number)::int8 as number
    from pgqueue_rollup, unnest(delivery, delivery_n) as histogram (bucket, number)
    where grain = 'day' and at >= %(since)s
        and exists (select 1 from pgqueue_smallestttbr ttbr where ttbr.message_type = type)
    group by 1, 2, 3
), whole as (
    select endpoint, type, array_agg(bucket order by bucket) as buckets, array_agg(number order by bucket) as numbers
    from merged group by 1, 2
), late as (
    select queue_id, message_type, sum(number)::int8 as number
    from pgqueue_expiredcount where day >= %(since)s group by 1, 2
), known as (
    select
        ttbr.id, coalesce(whole.buckets, '{{}}') as buckets, coalesce(whole.numbers, '{{}}') as numbers,
        coalesce(late.number, 0) as expired
    from pgqueue_smallestttbr ttbr
    join pgqueue_queue queue on queue.id = ttbr.queue_id
    left join pgqueue_endpoint endpoint on (endpoint.schema, endpoint.table) = (queue.schema, queue.table)
    left join whole on whole.endpoint = endpoint.name and whole.type = ttbr.message_type
    left join late on (late.queue_id, late.message_type) = (ttbr.queue_id, ttbr.message_type)
)
update pgqueue_smallestttbr ttbr
set delivery = known.buckets, delivery_n = known.numbers, expired = known.expired
from known
where known.id = ttbr.id
    and (ttbr.delivery, ttbr.delivery_n, ttbr.expired) is distinct from (known.buckets, known.numbers, known.expired)
