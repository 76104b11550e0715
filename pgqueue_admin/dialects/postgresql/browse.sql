-- name: columns
-- Of every message shown. Sizes are known without reading large values. seq uncast: "order by" would sort by the cast.
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
-- As upwards, descending. Inclusive: otherwise the largest bigint could not be reached.
select {columns} from {table} where seq <= %(last)s::bigint order by seq desc limit %(limit)s

-- name: upwards_tied
-- As upwards, where seq may repeat: the id separates equal ones, and an index on seq is still used.
select {columns} from {table}
where seq >= %(after)s::bigint and (seq, id) > (%(after)s::bigint, %(id)s::uuid)
order by seq, id limit %(limit)s

-- name: downwards_tied
-- As upwards_tied, descending.
select {columns} from {table}
where seq <= %(last)s::bigint and (seq, id) < (%(last)s::bigint, %(id)s::uuid)
order by seq desc, id desc limit %(limit)s

-- name: expired
-- No index covers expires: reads a bounded stretch, and returns how far it read.
select array_agg(seq order by seq) filter (where over) as seqs, count(*) as looked_at, max(seq)::bigint as looked_to
from (
    select seq, expires <= coalesce(%(now)s::timestamptz, clock_timestamp()) at time zone 'UTC' as over
    from {table} where seq > %(after)s::bigint order by seq limit {reach}
) stretch

-- name: listed
-- Messages by their seq.
select {columns} from {table} where seq = any(%(seqs)s::bigint[]) order by seq

-- name: message
-- A message without its body.
select {columns} from {table} where id = %(id)s::uuid

-- name: there
-- For an open page, each second: whether the row still exists. Only for tables that have a primary key.
select exists (select from {table} where id = %(id)s::uuid)

-- name: body
-- Cut in the database, so that a large body never travels whole.
select substring(body from %(offset)s::int + 1 for %(length)s::int) as part, octet_length(body) as size
from {table} where id = %(id)s::uuid

-- name: body_starts
-- The start of each body on one page: the server cuts a large one before it unpacks the rest.
select id, octet_length(body) > %(most)s::int as is_cut, substring(body from 1 for %(most)s::int) as part
from {table} where seq = any(%(seqs)s::bigint[])

-- name: bodystring
-- What the generated column holds: octal-escaped bytes, not UTF-8 (wire sheet 1.6).
select left(bodystring, %(length)s::int) as part, octet_length(body) as size from {table} where id = %(id)s::uuid

-- name: seq_occupancy
-- One existence probe for each of equal steps between head and tail.
select exists (
    select from {table} held
    where seq >= %(head)s::bigint + floor(step.i * %(span)s::numeric / {steps})::bigint
      and seq <= %(head)s::bigint + (floor((step.i + 1) * %(span)s::numeric / {steps}) - 1)::bigint
) as filled
from generate_series(0, {steps} - 1) as step(i) order by step.i

-- name: headers_at
-- Headers of one row, to read when it was sent. Those of 1 MiB or more are skipped: no sane sender writes them.
select headers from {table} where seq = %(seq)s::bigint and octet_length(headers) < 1048576

-- name: times_to_be_received
-- Headers of messages near the head that name a time to be received (T16).
select headers from (
    select headers from {table} where seq >= %(low)s::bigint order by seq limit 50
) head where octet_length(headers) < 65536 and headers like '%%"NServiceBus.TimeToBeReceived"%%'

-- name: in_conversation
-- Conversation ids are in the headers only, which no index covers: the headers of the newest rows are read, except
-- large ones. Returns the matching rows, and how many were read. The condition is the archive's.
select array_agg(a.seq order by a.seq desc) filter (where {has_conversation}) as keys, count(*) as looked_at
from (select seq, case when octet_length(headers) <= 65536 then headers end as headers
      from {table} order by seq desc limit %(newest)s) a

-- name: delayed_in_conversation
-- As in_conversation, for those due soonest.
select array_agg(a.id order by a.due) filter (where {has_conversation}) as keys, count(*) as looked_at
from (select id, due, case when octet_length(headers) <= 65536 then headers end as headers
      from {table} order by due limit %(newest)s) a

-- name: delayed_columns
-- Of every delayed message shown. A due time may be infinity, or before our calendar: the text shows it unchanged.
id, due::text as due_text, case when due between '0001-01-02' and '9999-12-30' then due end as due_at,
xmax <> '0'::xid and xmax in (
    select backend_xid from pg_stat_activity where backend_xid is not null
    union all select transaction from pg_prepared_xacts
) as is_in_flight,
left(headers, 65536) as headers_text, octet_length(headers) as headers_size, octet_length(body) as body_size

-- name: delayed_upwards
-- Soonest first. The id separates messages due at one instant, and the index on due is still used.
select {columns} from {table}
where due >= %(due)s::timestamptz and (due, id) > (%(due)s::timestamptz, %(id)s::uuid)
order by due, id limit %(limit)s

-- name: delayed_downwards
-- As delayed_upwards, descending.
select {columns} from {table}
where due <= %(due)s::timestamptz and (due, id) < (%(due)s::timestamptz, %(id)s::uuid)
order by due desc, id desc limit %(limit)s

-- name: delayed_message
-- A delayed message without its body.
select {columns} from {table} where id = %(id)s::uuid

-- name: delayed_listed
-- Delayed messages by their row ids.
select {columns} from {table} where id = any(%(ids)s::uuid[]) order by due, id

-- name: delayed_body_starts
-- As body_starts, for delayed messages by their row ids.
select id, octet_length(body) > %(most)s::int as is_cut, substring(body from 1 for %(most)s::int) as part
from {table} where id = any(%(ids)s::uuid[])

-- name: due_spread
-- Of the soonest messages, how many fall due in each interval from now; the first interval holds the overdue.
-- Times beyond the calendar count at its ends, where a zone can be subtracted.
select width_bucket(extract(epoch from due - %(zone)s::interval - now())::float8, %(edges)s::float8[]) as stretch, count(*) as messages
from (
    select greatest(least(due, '9999-12-30'), '0001-01-03') as due
    from (select due from {table} where due < 'infinity' order by due limit %(most)s) stored
) soonest
group by 1

-- name: due_and_headers
-- The soonest within the calendar: the stored due time, beside what its sender wrote (wire sheet 3).
select due, headers from (
    select due, headers from {table} where due >= '0001-01-02' and due < '9999-12-30' order by due limit {most}
) soonest where octet_length(headers) < 65536 and headers like '%%"NServiceBus.DeliverAt"%%'

-- name: lease_columns
-- Of every lease message shown: the first scalar fields of its document, cut; large documents are not parsed.
-- Times beyond the calendar are null.
m.id, case when m.created_at between '0001-01-02' and '9999-12-30' then m.created_at at time zone 'UTC' end as created_at,
case when m.lock_expires_at between '0001-01-02' and '9999-12-30' then m.lock_expires_at at time zone 'UTC' end as lock_ends_at,
case when isfinite(m.lock_expires_at)
     then extract(epoch from m.lock_expires_at - (clock_timestamp() at time zone 'UTC'))::float8 end as lock_seconds,
m.lock_expires_at is not null as is_locked,
coalesce(m.lock_expires_at <= clock_timestamp() at time zone 'UTC', false) as is_over,
jsonb_typeof(m.message) as shape,
{kind} as kind,
(select jsonb_object_agg(left(field.key, 100), left(field.value #>> '{{}}', 200)) from (
    select key, value from jsonb_each(
        case when pg_column_size(m.message) <= 65536 and jsonb_typeof(m.message) = 'object' then m.message end)
    where key <> 'kind' and jsonb_typeof(value) in ('string', 'number', 'boolean') limit {fields}
) field) as fields,
{ours}

-- name: lease_kind
-- Part of lease_columns, and of searches: the kind of a document, or an array's first element. Large documents are not parsed.
case when pg_column_size(m.message) <= 65536 then case jsonb_typeof(m.message)
    when 'object' then case jsonb_typeof(m.message -> 'kind') when 'string' then left(m.message ->> 'kind', 200) end
    when 'array' then case jsonb_typeof(m.message -> 0) when 'string' then left(m.message ->> 0, 200) end end end

-- name: lease_ours
-- Part of lease_columns: what our workers record.
m.attempts,
case when isfinite(m.available_at) then extract(epoch from m.available_at - clock_timestamp())::float8 end as due_seconds,
m.available_at > clock_timestamp() as is_later,
coalesce(m.lock_token is not null and m.token_expires_at = m.lock_expires_at, false) as has_token, m.retried_from, {seen} as seen,
{holder} as lock_holder

-- name: lease_holder
-- Part of lease_columns: as the claimer named itself, until somebody locks the row without a token.
case when m.lock_token is not null and m.token_expires_at = m.lock_expires_at then left(m.lock_holder, 200) end

-- name: lease_no_holder
-- In its place, for tables older than version 10.
null

-- name: lease_theirs
-- In its place, for a table of the original.
null::integer as attempts, null::float8 as due_seconds, false as is_later, false as has_token, null::integer as retried_from,
'' as seen, null as lock_holder

-- name: lease_by_number
-- By key, never by offset: rows that leave meanwhile shift nothing.
select {columns} from {table} m where m.id > %(after)s::bigint order by m.id limit %(limit)s

-- name: lease_by_number_back
-- As lease_by_number, descending.
select {columns} from {table} m where m.id < %(before)s::bigint order by m.id desc limit %(limit)s

-- name: lease_locked
-- By the end of the lock: expired locks come first.
select {columns} from {table} m where m.lock_expires_at is not null order by m.lock_expires_at, m.id limit %(limit)s

-- name: lease_waiting
-- In the order of claims: messages kept for later come last.
select {columns} from {table} m where m.lock_expires_at is null order by {order} limit %(limit)s

-- name: lease_state
-- Part of a search.
case when m.lock_expires_at is null then case when {is_later} then 'later' else 'waiting' end
     when m.lock_expires_at <= clock_timestamp() at time zone 'UTC' then 'over' else 'locked' end

-- name: lease_is_later
-- Part of lease_state, for our tables.
m.available_at > clock_timestamp()

-- name: lease_never_later
-- In its place, for a table of the original.
false

-- name: lease_listed
-- By their numbers.
select {columns} from {table} m where m.id = any(%(numbers)s::bigint[]) order by m.id

-- name: lease_message
-- One message, and the size of its document as UTF-8.
select {columns}, octet_length(convert_to(m.message::text, 'UTF8')) as document_size
from {table} m where m.id = %(id)s::bigint

-- name: lease_document
-- A part of the document as UTF-8, cut in the database.
select octet_length(whole.bytes) as size, substring(whole.bytes from %(offset)s::int + 1 for %(length)s::int) as part
from (select convert_to(m.message::text, 'UTF8') as bytes from {table} m where m.id = %(id)s::bigint) whole

-- name: lease_endings
-- How messages ended since, of the newest up to a cap; also those of original clients, which name no queue.
select result, count(*) as number, min(died_at) as oldest_at, bool_or(asked.more) as more
from (
    select result::text, died_at, count(*) over () > {cap} as more
    from (
        (select result, died_at from messages.message_archive
         where queue = '"messages"."message"' and kind = 'lease' and died_at >= clock_timestamp() - %(since)s::interval
         order by died_at desc limit {cap} + 1)
        union all
        (select result, died_at from messages.message_archive
         where queue is null and kind = 'lease' and died_at >= clock_timestamp() - %(since)s::interval
         order by died_at desc limit {cap} + 1)
    ) newest
    order by died_at desc limit {cap}
) asked
group by result order by result

-- name: listeners
-- Sessions of this database that name a channel in their application_name, as our workers' do, or whose last statement
-- was a LISTEN: a listener that ran any statement since is not recognized. Without pg_read_all_stats other roles'
-- sessions show only their name: hidden_sessions counts these.
select a.pid, a.application_name, a.usename::text as "user", coalesce(host(a.client_addr), '') as host,
       case when said.channel is null then a.state_change else a.backend_start end as since,
       coalesce(said.channel, asked.channel) || '_message' as channel
from pg_stat_activity a,
    lateral substring(a.application_name from '^pgqueue .* on (new|dead)_message$') as said (channel),
    lateral substring(lower(a.query) from '^\s*listen\s+"?(new|dead)_message"?\s*;?\s*$') as asked (channel)
where a.datname = current_database() and coalesce(said.channel, asked.channel) is not null
order by channel desc, a.pid limit 50

-- name: hidden_sessions
-- How many sessions cannot be judged.
select count(*) from pg_stat_activity a
where a.datname = current_database() and a.query = '<insufficient privilege>'
