-- name: due
-- Hours and days that batches have left figures of. What is usual has to have seen a batch first: it asks by batch.
select distinct grain, at
from pgqueue_rollup figure join pgqueue_historybatch batch on batch.id = batch_id and summed_at is not null
where batch_id is not null and grain <> 'minute'
order by at limit %(most)s

-- name: fold
-- Of each kind in one step one row, whatever number of batches: counts are summed, histograms merged by bucket.
with taken as (
    delete from pgqueue_rollup
    where grain = %(grain)s and at = %(at)s
        and (batch_id is null or batch_id in (select id from pgqueue_historybatch where summed_at is not null))
    returning *
), merged as (
    select {kind}, measure, array_agg(bucket order by bucket) as buckets, array_agg(number order by bucket) as numbers
    from (
        select {kind}, measure, bucket, sum(number)::int8 as number
        from taken, lateral (
            values ('critical', critical, critical_n), ('processing', processing, processing_n), ('delivery', delivery, delivery_n)
        ) as timed (measure, buckets, numbers), unnest(buckets, numbers) as histogram (bucket, number)
        group by {kind}, measure, bucket
    ) counted
    group by {kind}, measure
), timed as (
    select
        {kind}, max(buckets) filter (where measure = 'critical') as critical,
        max(numbers) filter (where measure = 'critical') as critical_n,
        max(buckets) filter (where measure = 'processing') as processing,
        max(numbers) filter (where measure = 'processing') as processing_n,
        max(buckets) filter (where measure = 'delivery') as delivery,
        max(numbers) filter (where measure = 'delivery') as delivery_n
    from merged
    group by {kind}
), whole as (
    select {kind}, sum(messages)::int8 as messages, sum(skewed)::int8 as skewed from taken group by {kind}
)
insert into pgqueue_rollup
    (grain, at, {kind}, messages, skewed, critical, critical_n, processing, processing_n, delivery, delivery_n)
select
    %(grain)s, %(at)s, {kind}, messages, skewed, coalesce(critical, '{{}}'), coalesce(critical_n, '{{}}'),
    coalesce(processing, '{{}}'), coalesce(processing_n, '{{}}'), coalesce(delivery, '{{}}'), coalesce(delivery_n, '{{}}')
from whole left join timed using ({kind})

-- name: kind
-- What rows of one step differ in.
queue, endpoint, type, result, exception
