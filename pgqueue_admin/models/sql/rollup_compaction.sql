-- name: due
-- Hours and days with figures of batches. The baseline must have seen a batch first, since it reads by batch.
select distinct grain, at
from pgqueue_rollup figure join pgqueue_historybatch batch on batch.id = batch_id and aggregated_at is not null
where batch_id is not null and grain <> 'minute'
order by at limit %(most)s

-- name: fold
-- One row for each kind in a step, from any number of batches: counts are summed, histograms merged by bucket.
with taken as (
    delete from pgqueue_rollup
    where grain = %(grain)s and at = %(at)s
        and (batch_id is null or batch_id in (select id from pgqueue_historybatch where aggregated_at is not null))
    returning *
), merged as (
    select {kind}, measure, array_agg(bucket order by bucket) as buckets, array_agg(number order by bucket) as numbers
    from (
        select {kind}, measure, bucket, sum(number)::int8 as number
        from taken, lateral (
            values ('critical', critical_buckets, critical_counts), ('processing', processing_buckets, processing_counts), ('delivery', delivery_buckets, delivery_counts)
        ) as timed (measure, buckets, numbers), unnest(buckets, numbers) as histogram (bucket, number)
        group by {kind}, measure, bucket
    ) counted
    group by {kind}, measure
), timed as (
    select
        {kind}, max(buckets) filter (where measure = 'critical') as critical_buckets,
        max(numbers) filter (where measure = 'critical') as critical_counts,
        max(buckets) filter (where measure = 'processing') as processing_buckets,
        max(numbers) filter (where measure = 'processing') as processing_counts,
        max(buckets) filter (where measure = 'delivery') as delivery_buckets,
        max(numbers) filter (where measure = 'delivery') as delivery_counts
    from merged
    group by {kind}
), whole as (
    select {kind}, sum(messages)::int8 as messages, sum(skewed)::int8 as skewed from taken group by {kind}
)
insert into pgqueue_rollup
    (grain, at, {kind}, messages, skewed, critical_buckets, critical_counts, processing_buckets, processing_counts, delivery_buckets, delivery_counts)
select
    %(grain)s, %(at)s, {kind}, messages, skewed, coalesce(critical_buckets, '{{}}'), coalesce(critical_counts, '{{}}'),
    coalesce(processing_buckets, '{{}}'), coalesce(processing_counts, '{{}}'), coalesce(delivery_buckets, '{{}}'), coalesce(delivery_counts, '{{}}')
from whole left join timed using ({kind})

-- name: kind
-- What tells rows of one step apart.
queue, endpoint, type, result, exception
