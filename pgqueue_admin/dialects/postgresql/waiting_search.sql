-- name: waiting
-- Part of look_through: a row of a queue in the shape of an archive row, so that the conditions of archive_search.sql
-- fit both. What only a dead message has is null. An impossible time is null, and no cast can fail: days are added to
-- the first of the month.
select p.seq, p.id as row_id, p.expires, 'transport'::text as kind, null::jsonb as message, p.headers, p.body,
    null::text as exception_message, null::text as exception_type,
    replace(substring(left(p.headers, 65536) from '"NServiceBus\.EnclosedMessageTypes"\s*:\s*"\s*([^",;]*[^",;\s])'), '\u002B', '+')
        as message_type,
    substring(left(p.headers, 65536) from '"NServiceBus\.MessageId"\s*:\s*"([^"]*)"') as message_id,
    (select make_timestamptz(t[1]::int, t[2]::int, 1, t[4]::int, t[5]::int, (t[6] || '.' || t[7])::double precision, 'UTC')
            + (t[3]::int - 1) * interval '1 day'
     from regexp_match(left(p.headers, 65536),
        '"NServiceBus\.TimeSent"\s*:\s*"([1-9][0-9]{{3}})-(0[1-9]|1[0-2])-([0-2][0-9]|3[01]) ([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]):([0-9]{{6}}) Z"') t
    ) as sent_at
from piece p

-- name: look_through
-- A number of rows from a key on, in the order of the list, and which of them match: no index has what messages say.
with piece as materialized (
    select q.seq, q.id, q.expires, q.headers, q.body from {table} q where {place} limit %(rows)s
)
select (select count(*) from piece) as read, (select {end}(seq)::bigint from piece) as looked_to,
    array(select a.seq from ({waiting}) a
          where {matches} and (not %(only_expired)s::boolean or a.expires <= clock_timestamp() at time zone 'UTC')) as found

-- name: up
-- Part of look_through: from the head. Inclusive: otherwise the largest bigint could not be reached.
q.seq >= %(seq)s::bigint order by q.seq

-- name: down
-- In its place: from the tail.
q.seq <= %(seq)s::bigint order by q.seq desc

-- name: highest
-- Part of look_through.
max

-- name: lowest
-- In its place.
min

-- name: look_through_delayed
-- As look_through, soonest first; the id separates messages due at one instant. As text a due time can be any.
with piece as materialized (
    select null::bigint as seq, q.id, null::timestamp as expires, q.due, q.headers, q.body from {table} q
    where q.due >= %(due)s::timestamptz and (q.due, q.id) > (%(due)s::timestamptz, %(id)s::uuid)
    order by q.due, q.id limit %(rows)s
), ended as (select due::text as due, id::text as id from piece order by piece.due desc, piece.id desc limit 1)
select (select count(*) from piece) as read, (select due from ended) as looked_to, (select id from ended) as looked_to_id,
    array(select a.row_id from ({waiting}) a where {matches}) as found

-- name: leases
-- Part of look_through_leases: a lease message in the shape of an archive row.
-- Its document also stands for headers, of which it has none: a word searched for everywhere is found in it, ignoring
-- case. What a table of the original lacks is null.
select m.id as seq, m.id::text as message_id, null::uuid as row_id, 'lease'::text as kind, m.message, m.message::text as headers,
    null::bytea as body, null::text as exception_message, null::text as exception_type, {kind} as message_type,
    m.created_at at time zone 'UTC' as sent_at, {attempts} as attempts, ({holder})::text as lock_holder, {state} as lease_state
from piece m

-- name: lease_attempts
-- Part of leases.
m.attempts

-- name: lease_no_attempts
-- In its place, of a table of the original.
null::integer

-- name: look_through_leases
-- As look_through, by number between two ends, both included.
with piece as materialized (
    select m.* from {table} m where m.id >= %(low)s::bigint and m.id <= %(high)s::bigint order by {place} limit %(rows)s
)
select (select count(*) from piece) as read, (select {end}(id)::bigint from piece) as looked_to,
    array(select a.seq::bigint from ({leases}) a where {matches}) as found

-- name: leases_up
-- Part of look_through_leases: lowest number first.
m.id

-- name: leases_down
-- In its place: highest number first.
m.id desc
