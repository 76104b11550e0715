-- name: take
-- As crossing.take, within this range. filled: seq, which always is, and columns that the archive lacks: rows with a
-- value there stay.
with near as materialized (
    select tableoid::bigint as part, ctid::text as place, id, expires, headers, seq::bigint as seq,
        octet_length(headers) + coalesce(octet_length(body), 0) as bytes
    from {table} where seq between %(lowest)s::bigint and %(up_to)s::bigint and num_nonnulls({filled}) = 1
    order by seq limit %(limit)s for update skip locked
)
select part, place, id, expires, headers, seq from (
    select *, row_number() over up_to as nth, sum(bytes) over up_to as carried
    from near window up_to as (order by seq rows unbounded preceding)
) batch where nth = 1 or carried <= %(most)s order by nth

-- name: hold
-- Exactly this row, unless it is locked: locked rows are skipped, so the act never waits for a handler.
select tableoid::bigint as part, ctid::text as place, id, expires, headers, seq::bigint as seq
from {table} where id = %(id)s::uuid and seq = %(seq)s::bigint for update skip locked

-- name: hold_each
-- Likewise rows that a retry has put there.
select tableoid::bigint as part, ctid::text as place, id, expires, headers, seq::bigint as seq
from {table} where id = any (%(ids)s::uuid[]) for update skip locked

-- name: move
-- A held row with all it has but its number, which the target assigns. Without a body it would block that queue.
insert into {target} (id, expires, headers, body)
select id, expires, headers, body from {table} where ctid = %(place)s::tid and tableoid = %(part)s::bigint::oid and body is not null

-- name: hold_delayed
-- As hold, for delayed messages: these have no number, and one that was delayed anew is another.
select tableoid::bigint as part, ctid::text as place, id, null::timestamp as expires, headers, 0::bigint as seq
from {table} where id = %(id)s::uuid and due = %(due)s::timestamptz for update skip locked

-- name: run_now
-- A held row, as the mover of due messages moves it. An id that is in the queue already would be refused.
insert into {target} (id, headers, body)
select case when exists (select from {target} there where there.id = held.id) then gen_random_uuid() else held.id end,
    held.headers, held.body
from {table} held where held.ctid = %(place)s::tid and held.tableoid = %(part)s::bigint::oid and held.body is not null
