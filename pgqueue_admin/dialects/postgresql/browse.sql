-- name: columns
-- Of every message shown. Sizes are known without reading what is large. seq uncast: "order by" would sort by the cast.
id, seq, expires::text as expires_text,
case when expires between '0001-01-01' and '9999-12-31 23:59:59' then expires at time zone 'UTC' end as expires_at,
coalesce(expires <= coalesce(%(now)s::timestamptz, clock_timestamp()) at time zone 'UTC', false) as is_expired,
xmax <> '0'::xid and xmax in (
    select backend_xid from pg_stat_activity where backend_xid is not null
    union all select transaction from pg_prepared_xacts
) as is_in_flight,
left(headers, 65536) as headers_text, octet_length(headers) as headers_size, octet_length(body) as body_size

-- name: upwards
-- By key, never by offset: rows that leave meanwhile shift nothing.
select {columns} from {table} where seq > %(after)s::bigint order by seq limit %(limit)s

-- name: downwards
-- As upwards, from the other end; inclusive, or a bigint's last number could not be asked for.
select {columns} from {table} where seq <= %(last)s::bigint order by seq desc limit %(limit)s

-- name: upwards_tied
-- As upwards, where nothing keeps a seq from being there twice: the id tells them apart, and an index on seq is still used.
select {columns} from {table}
where seq >= %(after)s::bigint and (seq, id) > (%(after)s::bigint, %(id)s::uuid)
order by seq, id limit %(limit)s

-- name: downwards_tied
-- As upwards_tied, from the other end.
select {columns} from {table}
where seq <= %(last)s::bigint and (seq, id) < (%(last)s::bigint, %(id)s::uuid)
order by seq desc, id desc limit %(limit)s

-- name: expired
-- Nothing indexes expires: a bounded stretch is looked through, and how far is said.
select array_agg(seq order by seq) filter (where over) as seqs, count(*) as looked_at, max(seq)::bigint as looked_to
from (
    select seq, expires <= coalesce(%(now)s::timestamptz, clock_timestamp()) at time zone 'UTC' as over
    from {table} where seq > %(after)s::bigint order by seq limit {reach}
) stretch

-- name: listed
-- Messages by their seq.
select {columns} from {table} where seq = any(%(seqs)s::bigint[]) order by seq

-- name: message
-- All of a message but its body.
select {columns} from {table} where id = %(id)s::uuid

-- name: there
-- For an open page, each second: whether the row is still there. Asked only of tables that have a primary key.
select exists (select from {table} where id = %(id)s::uuid)

-- name: body
-- Cut in the database, so that a large body never travels whole.
select substring(body from %(offset)s::int + 1 for %(length)s::int) as part, octet_length(body) as size
from {table} where id = %(id)s::uuid

-- name: bodystring
-- What the generated column holds: octal-escaped bytes, not UTF-8 (wire sheet 1.6).
select left(bodystring, %(length)s::int) as part, octet_length(body) as size from {table} where id = %(id)s::uuid

-- name: ruler
-- One existence probe for each of equal steps between head and tail.
select exists (
    select from {table} held
    where seq >= %(head)s::bigint + floor(step.i * %(span)s::numeric / {steps})::bigint
      and seq <= %(head)s::bigint + (floor((step.i + 1) * %(span)s::numeric / {steps}) - 1)::bigint
) as filled
from generate_series(0, {steps} - 1) as step(i) order by step.i

-- name: headers_at
-- Of one row, to read when it was sent; larger ones than anybody sane writes are left alone.
select headers from {table} where seq = %(seq)s::bigint and octet_length(headers) < 1048576

-- name: lifetimes
-- Headers of messages near the head that name a time to be received (T16).
select headers from (
    select headers from {table} where seq >= %(low)s::bigint order by seq limit 50
) head where octet_length(headers) < 65536 and headers like '%%"NServiceBus.TimeToBeReceived"%%'

-- name: delayed_columns
-- Of every delayed message shown. A due time may be infinity, or before our calendar: the text says it as it is.
id, due::text as due_text, case when due between '0001-01-02' and '9999-12-30' then due end as due_at,
xmax <> '0'::xid and xmax in (
    select backend_xid from pg_stat_activity where backend_xid is not null
    union all select transaction from pg_prepared_xacts
) as is_in_flight,
left(headers, 65536) as headers_text, octet_length(headers) as headers_size, octet_length(body) as body_size

-- name: delayed_upwards
-- Soonest first. Many may be due at one instant: the id tells them apart, and the index on due is still used.
select {columns} from {table}
where due >= %(due)s::timestamptz and (due, id) > (%(due)s::timestamptz, %(id)s::uuid)
order by due, id limit %(limit)s

-- name: delayed_downwards
-- As delayed_upwards, from the other end.
select {columns} from {table}
where due <= %(due)s::timestamptz and (due, id) < (%(due)s::timestamptz, %(id)s::uuid)
order by due desc, id desc limit %(limit)s

-- name: delayed_message
-- All of a delayed message but its body.
select {columns} from {table} where id = %(id)s::uuid

-- name: due_spread
-- How many of the soonest are due in each stretch of time from now on; the first stretch is what is overdue.
-- What lies beyond the calendar counts at its ends, from which a zone can be taken off.
select width_bucket(extract(epoch from due - %(zone)s::interval - now())::float8, %(edges)s::float8[]) as stretch, count(*) as messages
from (
    select greatest(least(due, '9999-12-30'), '0001-01-03') as due
    from (select due from {table} where due < 'infinity' order by due limit %(most)s) stored
) soonest
group by 1

-- name: due_and_headers
-- Of the soonest that the calendar holds: what a due time became, beside what its sender wrote (wire sheet 3).
select due, headers from (
    select due, headers from {table} where due >= '0001-01-02' and due < '9999-12-30' order by due limit {most}
) soonest where octet_length(headers) < 65536 and headers like '%%"NServiceBus.DeliverAt"%%'
