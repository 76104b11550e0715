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
