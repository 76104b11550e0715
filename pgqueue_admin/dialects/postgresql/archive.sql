-- name: archive_failed
-- In the caller's transaction and search path, so names are in full (docs/decisions/012). The original's times: UTC without a zone.
insert into messages.message_archive (
    created_at, archived_at, message, result, handled_by, details, kind, queue, message_id, message_type, headers, body,
    row_id, exception_type, exception_message, stack_trace, failed_queue, target_schema, target_table, retry_blocked_reason,
    endpoint, machine, attempts, sent_at, died_at {fingerprint_column})
values (
    coalesce(%(sent_at)s, pg_catalog.now()) at time zone 'utc', pg_catalog.now() at time zone 'utc',
    %(message)s::pg_catalog.jsonb, %(result)s, %(handled_by)s, %(details)s, %(kind)s, %(queue)s, %(message_id)s,
    %(message_type)s, %(headers)s, %(body)s, %(row_id)s, %(exception_type)s, %(exception_message)s, %(stack_trace)s,
    %(failed_queue)s, %(target_schema)s, %(target_table)s, %(retry_blocked_reason)s, %(endpoint)s, %(machine)s, %(attempts)s,
    %(sent_at)s, coalesce(%(died_at)s, pg_catalog.now()) {fingerprint_value})
returning id

-- name: fingerprint_column
-- Part of archive_failed and move: which failure it is.
, fingerprint

-- name: fingerprint_value
-- Part of archive_failed.
, %(fingerprint)s

-- name: moved_fingerprint
-- Part of move.
, m.fingerprint

-- name: no_fingerprint
-- In their place, where the engine's tables are older than fingerprints.
/* none */

-- name: take
-- Locked rows are left to their owners.
-- The body stays in the database: it may be 50 MB, and is not needed to read headers. Limited by the size of the
-- headers that one batch may read, with at least one row; near: how many rows were available.
with near as materialized (
    select tableoid::bigint as part, ctid::text as place, id, headers, seq
    from {table} order by seq limit %(limit)s for update skip locked
)
select part, place, id, headers, near from (
    select *, count(*) over () as near, row_number() over up_to as nth, sum(octet_length(headers)) over up_to as read
    from near window up_to as (order by seq rows unbounded preceding)
) batch where nth = 1 or read <= %(most)s order by nth

-- name: move
-- One statement deletes and archives, so that no body passes through the process. A place is unique in its partition only.
with meant as materialized (
    select * from jsonb_to_recordset(%(rows)s::jsonb) as row_of_headers (
        part oid, place tid, message jsonb, result public.message_status, handled_by text, details text, kind text, queue text,
        message_id text, message_type text, exception_type text, exception_message text, stack_trace text,
        failed_queue text, target_schema text, target_table text, retry_blocked_reason text, endpoint text, machine text,
        attempts integer, sent_at timestamptz, died_at timestamptz, fingerprint text)
), gone as (
    delete from {table}
    where ctid = any (array(select place from meant)) and (tableoid, ctid) in (select part, place from meant)
    returning tableoid as part, ctid as place, {kept}
)
insert into messages.message_archive (
    created_at, archived_at, message, result, handled_by, details, kind, queue, message_id, message_type, headers, body,
    row_id, expires, exception_type, exception_message, stack_trace, failed_queue, target_schema, target_table,
    retry_blocked_reason, ingested_from, endpoint, machine, attempts, sent_at, died_at {fingerprint_column})
select
    coalesce(m.sent_at, now()) at time zone 'utc', now() at time zone 'utc', m.message, m.result, m.handled_by,
    m.details, m.kind, m.queue, m.message_id, m.message_type, g.headers, g.body, g.id, g.expires, m.exception_type,
    m.exception_message, m.stack_trace, m.failed_queue, m.target_schema, m.target_table, m.retry_blocked_reason, %(ingested_from)s,
    m.endpoint, m.machine, m.attempts, m.sent_at, coalesce(m.died_at, now()) {fingerprint_value}
from gone g join meant m on m.part = g.part and m.place = g.place
order by g.seq
returning id, result::text as result, message_id, queue

-- name: kept_of_queue
-- Part of move: what is kept of a queue's row.
id, seq, expires, headers, body

-- name: kept_of_copy
-- In its place, for a row copied out of a queue of another database.
row_id as id, number as seq, expires, headers, body

-- name: kept_of_delayed
-- In its place, for a delayed row: it has no number, and does not expire while it waits.
id, 0 as seq, null::timestamp as expires, headers, body

-- name: dead_again
-- A retried message died once more: its former row records that, the new row is a death of its own.
-- If the retry had a token, the death must have it too: anybody may send a failure with the same message id.
with former as (
    update messages.message_archive a set resolution = 'dead_again', ended_at = pg_catalog.clock_timestamp()
    from rows from (
        pg_catalog.unnest(%(message_ids)s::pg_catalog.text[]), pg_catalog.unnest(%(queues)s::pg_catalog.text[]),
        pg_catalog.unnest(%(tokens)s::pg_catalog.uuid[]), pg_catalog.unnest(%(tables)s::pg_catalog.text[]),
        pg_catalog.unnest(%(schemas)s::pg_catalog.text[])
    ) as died (message_id, queue, token, in_table, in_schema)
    where a.message_id operator(pg_catalog.=) died.message_id
        and (a.queue operator(pg_catalog.=) died.queue
             or a.target_table operator(pg_catalog.=) died.in_table and a.target_schema operator(pg_catalog.=) died.in_schema)
        and a.state operator(pg_catalog.=) 'retried' and {is_the_one}
    returning a.id, a.operation, a.queue
)
insert into messages.archive_event (archive_id, who, verb, operation, target)
select id, 'archive', 'died again', operation, queue from former

-- name: is_the_one
-- Part of dead_again: by the token of its retry, where that had one. Retries into foreign queues carry none.
(a.retry_token is null or a.retry_token operator(pg_catalog.=) died.token)

-- name: any_may_be
-- In its place, where the engine's tables are older than tokens.
true

-- name: has_column
-- Older tables lack some columns. By the catalog, since a name in a closed schema is an error.
select exists (
    select from pg_catalog.pg_attribute a
    join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) a.attrelid
    join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
    where n.nspname operator(pg_catalog.=) 'messages' and c.relname operator(pg_catalog.=) %(table)s::pg_catalog.name
        and a.attname operator(pg_catalog.=) %(column)s::pg_catalog.name and not a.attisdropped)

-- name: succeeded
-- The header came over the wire, and anybody may have written it: it must have the token of this very retry, and the
-- message must have been received from the queue that the retry went into.
with former as (
    update messages.message_archive set resolution = 'succeeded', ended_at = pg_catalog.clock_timestamp()
    where id operator(pg_catalog.=) %(id)s and message_id operator(pg_catalog.=) %(message_id)s
        and state operator(pg_catalog.=) 'retried' and retry_token operator(pg_catalog.=) %(token)s::pg_catalog.uuid
        and target_schema operator(pg_catalog.=) %(schema)s and target_table operator(pg_catalog.=) %(table)s
    returning id, operation, queue
)
insert into messages.archive_event (archive_id, who, verb, operation, target)
select id, %(who)s, 'succeeded', operation, queue from former

-- name: is_queue
-- A table with the columns that a retry writes, and the one by which it is received.
-- The address came with a message, so nothing else may be written to.
(select count(*) = 5 from pg_catalog.pg_attribute q
     join pg_catalog.pg_class t on t.oid = q.attrelid
     join pg_catalog.pg_namespace n on n.oid = t.relnamespace
     where n.nspname = a.target_schema and t.relname = a.target_table and t.relkind in ('r', 'p')
       and (q.attname, q.atttypid) in (('id', 'uuid'::regtype), ('expires', 'timestamp'::regtype),
                                       ('headers', 'text'::regtype), ('body', 'bytea'::regtype),
                                       ('seq', 'integer'::regtype), ('seq', 'bigint'::regtype)))

-- name: facts
-- Of one message, all but the body and what may be long or deep, such as the original's document.
a.id, a.seq, a.kind, a.state, a.result::text as result, a.queue, a.message_id, a.message_type,
    octet_length(case a.kind when 'lease' then convert_to(a.message::text, 'UTF8') else a.body end) as body_bytes,
    a.row_id, a.expires::text as expires, a.exception_type, a.target_schema, a.target_table,
    a.retry_blocked_reason, a.ingested_from, a.endpoint, a.machine, a.attempts, a.sent_at, a.died_at, a.resolution, a.resolved_by, a.resolved_at,
    a.ended_at, a.operation, a.handled_by, a.created_at at time zone 'utc' as created_at,
    a.archived_at at time zone 'utc' as archived_at, ({is_queue}) as has_target, {on_its_way}

-- name: get
-- For acts, which read whole headers. Whether a retry would find a queue is looked up each time, never remembered.
select {facts}, a.headers, a.exception_message, a.stack_trace, a.failed_queue, a.details
from messages.message_archive a where a.id = %(id)s

-- name: show
-- For a page: the start and the length of texts that others wrote. Somebody may have written megabytes.
select {facts}, left(a.headers, 65536) as headers, length(a.headers) as headers_length,
    octet_length(a.headers) as headers_bytes, left(a.exception_message, 10000) as exception_message,
    length(a.exception_message) as exception_message_length, left(a.stack_trace, 65536) as stack_trace,
    length(a.stack_trace) as stack_trace_length, left(a.failed_queue, 1000) as failed_queue, left(a.details, 1000) as details
from messages.message_archive a where a.id = %(id)s

-- name: followed
-- For an open page, each second: what may change in a message, by its key.
select id, state, queue, message_type, resolved_by, resolved_at, ended_at from messages.message_archive where id = %(id)s

-- name: listed
-- Of a message in a list. Stack traces and headers are only on the message's own page.
a.id, a.seq, a.kind, a.state, a.result::text as result, a.queue, a.message_id, a.message_type,
    octet_length(a.body) as body_bytes, a.exception_type, left(a.exception_message, 400) as exception_message,
    a.failed_queue, a.target_schema, a.target_table, a.retry_blocked_reason, a.endpoint, a.machine, a.attempts, a.sent_at,
    a.died_at, a.resolved_by, a.resolved_at, a.ended_at, a.operation, ({is_queue}) as has_target

-- name: exported
-- Of a message in a file, in place of listed: also the start of its error's text and of its headers. Bodies stay.
a.id, a.seq, a.kind, a.state, a.result::text as result, a.queue, a.message_id, a.message_type, a.row_id,
    octet_length(a.body) as body_bytes, a.exception_type, left(a.exception_message, 10000) as exception_message,
    length(a.exception_message) as exception_message_length, a.retry_blocked_reason, a.endpoint, a.machine, a.attempts, a.sent_at,
    a.died_at, a.resolved_by, a.resolved_at, a.ended_at, a.operation, left(a.headers, 65536) as headers,
    length(a.headers) as headers_length

-- name: newest_first
-- For a search of texts, which returns a piece's messages in no order: a file has the order of a page.
select a.id from messages.message_archive a where a.id = any (%(ids)s::integer[])
order by a.died_at desc, a.seq desc

-- name: only_keys
-- Of a message in a list with an unreadable row: the rows are then read one by one.
a.id, a.seq, a.died_at

-- name: listed_one
-- By its key, as a list shows it.
select {listed} from messages.message_archive a where a.id = %(id)s

-- name: page
-- Newest first, from a key on.
select {listed}
from messages.message_archive a
where {matches}
  and (%(died_at)s::timestamptz is null or (a.died_at, a.seq) < (%(died_at)s, %(seq)s))
order by a.died_at desc, a.seq desc
limit %(limit)s

-- name: page_back
-- Oldest first, from a key on; also the page before a key, nearest first: the caller reverses it.
select {listed}
from messages.message_archive a
where {matches}
  and (%(died_at)s::timestamptz is null or (a.died_at, a.seq) > (%(died_at)s::timestamptz, %(seq)s::bigint))
order by a.died_at, a.seq
limit %(limit)s

-- name: sorted
-- By what no index orders: the newest matches up to a cap, as of the first page, and of them a page from a key on.
with newest as materialized (
    select a.id, a.died_at, a.seq, {value}::double precision as value from messages.message_archive a
    where {matches} and (%(top)s::timestamptz is null or (a.died_at, a.seq) <= (%(top)s::timestamptz, %(top_seq)s::bigint))
    order by a.died_at desc, a.seq desc limit %(cap)s
), shown as (
    select id, value, row_number() over (order by {order}) as nth from newest where {behind} order by nth limit %(limit)s
), top as (select died_at::text as at, seq from newest order by died_at desc, seq desc limit 1)
select {listed}, s.value::text as sorted_by, (select at from top) as top_at, (select seq from top) as top_seq,
    (select min(died_at) from newest) as window_from
from shown s join messages.message_archive a on a.id = s.id
order by s.nth

-- name: by_sent
-- Part of sorted. An unknown time counts as the least.
coalesce(extract(epoch from a.sent_at), '-infinity')

-- name: by_size
-- Likewise, as a list shows it: the server knows the size without reading the body.
coalesce(octet_length(a.body), -1)

-- name: most_first
-- Part of sorted.
value desc, seq desc

-- name: least_first
-- In its place.
value, seq

-- name: behind_most
-- Part of sorted: what follows a key where the most come first.
(%(value)s::double precision is null or (value, seq) < (%(value)s::double precision, %(seq)s::bigint))

-- name: behind_least
-- In its place.
(%(value)s::double precision is null or (value, seq) > (%(value)s::double precision, %(seq)s::bigint))

-- name: count
-- Counted up to one above the cap and no further: a page's cost must not grow with the archive.
select count(*) from (select 1 from messages.message_archive a where {matches} limit %(cap)s + 1) as capped

-- name: facets
-- What a search can be narrowed by, counted in one read of its newest matches, up to a cap.
-- Most rows share their names with others: those are counted together first.
with found as (
    select coalesce(a.queue, '"messages"."message"') as queue, coalesce(a.message_type, '') as type,
        coalesce(a.exception_type, '') as error,
        coalesce(a.endpoint, case a.kind when 'lease' then a.handled_by end, '') as endpoint, a.state
    from messages.message_archive a where {matches}
    order by a.died_at desc, a.seq desc limit %(cap)s + 1
), alike as materialized (
    select queue, type, error, endpoint, state, count(*) as messages from found group by 1, 2, 3, 4, 5
), counted as (
    select case
            when grouping(queue) = 0 then 'queue' when grouping(type) = 0 then 'type' when grouping(error) = 0 then 'error'
            when grouping(endpoint) = 0 then 'endpoint' when grouping(state) = 0 then 'state' else 'all'
        end as field,
        case
            when grouping(queue) = 0 then queue when grouping(type) = 0 then type when grouping(error) = 0 then error
            when grouping(endpoint) = 0 then endpoint when grouping(state) = 0 then state else ''
        end as name,
        coalesce(sum(messages), 0)::bigint as messages
    from alike group by grouping sets ((), (queue), (type), (error), (endpoint), (state))
)
select field, name, messages, names from (
    select *, count(*) over (partition by field) as names,
        row_number() over (partition by field order by messages desc, name) as nth
    from counted
) ranked where nth <= %(most)s order by field, nth

-- name: ids
-- Of a search within its window: read once, for the page and its count.
select a.id from messages.message_archive a where {matches}

-- name: look_through
-- A piece of what the columns find, newest first from a key on, whose texts are read: a fixed number, whatever matches.
-- Times are sent as text, since others may write any of them, and the next piece begins at that very one.
with piece as materialized (
    select a.id, a.died_at, a.seq from messages.message_archive a
    where {columns}
        and (%(newest)s::timestamptz is null or (a.died_at, a.seq) < (%(newest)s::timestamptz, %(newest_seq)s::bigint))
    order by a.died_at desc, a.seq desc limit %(rows)s
)
select (select count(*) from piece) as read,
    (select died_at::text from piece order by died_at, seq limit 1) as died_at,
    (select seq from piece order by died_at, seq limit 1) as seq,
    array(select a.id from messages.message_archive a where a.id = any (array(select id from piece)) and {texts}) as found

-- name: estimate
-- The server's last estimate of the whole, of which a search counts a part.
select reltuples::bigint from pg_catalog.pg_class where oid = 'messages.message_archive'::regclass

-- name: dead_by_queue
-- Reads only the partial index of the dead.
select queue, count(*) as dead, min(died_at) as oldest_at, max(died_at) as newest_at
from messages.message_archive where state = 'dead'
group by queue order by dead desc, queue

-- name: dead_by_cause
-- As dead_by_queue, by exception as well.
select queue, exception_type, count(*) as dead, min(died_at) as oldest_at, max(died_at) as newest_at
from messages.message_archive
where state = 'dead'
group by queue, exception_type order by dead desc, queue, exception_type

-- name: body
-- A part of the body, cut in the database: 100 MB never enter the web process. Of a lease message, its document.
select octet_length(a.body) as size, substring(a.body from %(offset)s + 1 for %(length)s) as part
from (
    select case kind when 'lease' then convert_to(message::text, 'UTF8') else body end as body
    from messages.message_archive where id = %(id)s
) a

-- name: body_starts
-- The start of each body on one page, which the server cuts before it unpacks the rest; nothing of a large lease
-- document, as it is unpacked whole. Headers where masking needs them: they say which types a message is of.
select a.id, a.kind, a.message_type,
    case a.kind when 'lease' then l.document is null or length(l.document) > %(most)s
        else octet_length(a.body) is not null and octet_length(a.body) > %(most)s end as is_cut,
    case a.kind when 'lease' then convert_to(left(l.document, %(most)s), 'UTF8')
        else substring(a.body from 1 for %(most)s) end as part,
    case when %(with_headers)s then left(a.headers, 65536) end as headers,
    case when %(with_headers)s then length(a.headers) end as headers_length
from messages.message_archive a left join lateral (
    select a.message::text as document where a.kind = 'lease' and pg_column_size(a.message) <= 65536 offset 0
) l on true
where a.id = any (%(ids)s::integer[])

-- name: headers_part
-- A part of the headers as UTF-8, also cut in the database.
select octet_length(headers) as size,
    substring(convert_to(headers, 'UTF8') from %(offset)s + 1 for %(length)s) as part
from messages.message_archive where id = %(id)s

-- name: events
-- What was done to a message, oldest first.
select id, at, who, verb, operation, target from messages.archive_event where archive_id = %(id)s order by id

-- name: deaths
-- How often a message has died where it failed, and how often it was put back.
-- A published event has one message id in the queue of each subscriber, so the id alone would count the deaths of
-- others.
with named as (
    select id, died_at, queue, result from messages.message_archive
    where id = any(array(select id from messages.message_archive where message_id = %(message_id)s limit %(limit)s))),
died as (select id, died_at from named where queue = %(queue)s and result <> 'success')
select (select count(*) from named) as looked_at, count(*) as deaths, min(died_at) as first, max(died_at) as last,
    (select count(*) from messages.archive_event e
     where e.archive_id in (select id from died) and e.verb in ('retried', 'edited and retried')) as retries
from died

-- name: sightings
-- By any id that a person may have copied: archive id, message id, row id; each by its own index.
-- With OR, or in an archive that was never analysed, the planner would walk the whole archive from the newest on.
select a.id, a.state, a.queue, a.message_type, a.message_id, a.died_at from messages.message_archive a
where a.id = any(array(
    select id from messages.message_archive where message_id = %(text)s
    union select id from messages.message_archive where row_id = %(row_id)s::uuid
    union select id from messages.message_archive where id = %(id)s::integer))
    and (%(seen)s::text[] is null or coalesce(a.queue, '"messages"."message"') = any(%(seen)s::text[]))
order by a.died_at desc, a.seq desc limit %(limit)s

-- name: in_conversation
-- Conversation ids are in the headers only, which no index covers: the headers of the newest rows are read, except
-- large ones. The name is compared with its quotation marks and the value behind it, so that no other header's text
-- counts.
select a.id, a.state, a.queue, a.message_type, a.message_id, a.died_at
from (select id, seq, state, queue, message_type, message_id, died_at,
          case when octet_length(headers) <= 65536 then headers end as headers
      from messages.message_archive order by died_at desc, seq desc limit %(newest)s) as a
where {has_conversation}
    and (%(seen)s::text[] is null or coalesce(a.queue, '"messages"."message"') = any(%(seen)s::text[]))
order by a.died_at desc, a.seq desc limit %(limit)s

-- name: around_conversation
-- As in_conversation, for the rows nearest to a known one, before and after it.
select a.id
from (
    (select id, queue, died_at, seq, case when octet_length(headers) <= 65536 then headers end as headers
     from messages.message_archive where (died_at, seq) >= (%(died_at)s::timestamptz, %(seq)s::bigint) order by died_at, seq limit %(near)s)
    union all
    (select id, queue, died_at, seq, case when octet_length(headers) <= 65536 then headers end as headers
     from messages.message_archive where (died_at, seq) < (%(died_at)s::timestamptz, %(seq)s::bigint) order by died_at desc, seq desc limit %(near)s)
) as a
where {has_conversation}
    and (%(seen)s::text[] is null or coalesce(a.queue, '"messages"."message"') = any(%(seen)s::text[]))
order by a.died_at desc, a.seq desc limit %(limit)s

-- name: has_conversation
-- Part of these, and of searches in queues: an id has several spellings as JSON (values). Few rows hold one anywhere: tested first.
exists (select from unnest(%(values)s::text[]) as value where
    strpos(a.headers, value) > 0 and strpos(a.headers, %(name)s) > 0 and starts_with(ltrim(
        substring(a.headers from strpos(a.headers, %(name)s) + length(%(name)s) for 2000), E': \t\r\n'), value))

-- name: of_ids
-- Archived messages with these message ids, by their index, or with these archive ids.
select a.id, a.state, a.result::text as result, a.queue, a.message_id, a.message_type, a.exception_type,
    left(a.exception_message, 400) as exception_message, a.retry_blocked_reason, a.endpoint, a.machine, a.attempts, a.sent_at, a.died_at,
    a.resolved_by, a.resolved_at, a.ended_at, a.operation, left(a.headers, 65536) as headers, length(a.headers) as headers_length
from messages.message_archive a
where a.id = any(array(
    select id from messages.message_archive where message_id = any(%(message_ids)s::text[])
    union select id from messages.message_archive where id = any(%(ids)s::integer[])))
    and (%(seen)s::text[] is null or coalesce(a.queue, '"messages"."message"') = any(%(seen)s::text[]))
order by a.died_at desc, a.seq desc limit %(limit)s

-- name: queues_of
-- Where each of these died; missing ones are left out. Original clients name no queue: theirs is the lease queue.
select id, coalesce(queue, '"messages"."message"') as queue from messages.message_archive where id = any(%(ids)s::integer[])

-- name: events_of
-- What was done to each of these messages, oldest first.
select archive_id, at, who, verb, operation, target from messages.archive_event
where archive_id = any(%(ids)s::integer[]) order by id limit %(limit)s

-- name: lock
-- Before they are read: a statement that waits for a lock sees other tables as they were before it waited.
select id from messages.message_archive where id = any (%(ids)s::integer[]) order by id for update

-- name: headed_for
-- What decides which queues they go into, before any is locked; each combination once.
select distinct a.kind, a.queue, a.message_type, a.target_schema, a.target_table
from messages.message_archive a where a.id = any (%(ids)s::integer[]) and a.state = %(state)s

-- name: hold
-- Locked in order of id, so that two acts on overlapping sets wait for each other instead of deadlocking.
-- The catalog is queried once for each queue, not for each message.
with held as materialized (
    select a.id, a.kind, a.state, a.queue, a.message_type, a.resolved_by, a.resolved_at, a.headers,
        octet_length(a.body) as body_bytes, a.retry_blocked_reason, a.target_schema, a.target_table
    from messages.message_archive a where a.id = any (%(ids)s::integer[])
    order by a.id for update of a
), goal as materialized (
    select a.target_schema, a.target_table, ({is_queue}) as has_target
    from (select distinct target_schema, target_table from held where target_table is not null) a
)
select a.*, coalesce(goal.has_target, false) as has_target, {on_its_way_at_once}
from held a left join goal on goal.target_schema = a.target_schema and goal.target_table = a.target_table {crossing_of}
order by a.id

-- name: on_its_way_at_once
-- Part of hold, as on_its_way: for many messages, by one join.
c.alias as crossing, c.not_known as crossing_not_known, c.takes_in as crossing_takes_in, c.operation as crossing_operation,
p.crossing as crossing_id

-- name: crossing_of
-- Likewise.
left join messages.crossing_put p on p.archive_id = a.id left join messages.crossing c on c.id = p.crossing

-- name: no_crossing
-- In its place, where the engine's tables are older than crossings.
/* none */

-- name: on_its_way
-- Part of facts: to or from which other database it is on its way, and why its arrival cannot be known.
(select c.alias from messages.crossing_put p join messages.crossing c on c.id = p.crossing where p.archive_id = a.id) as crossing,
(select c.not_known from messages.crossing_put p join messages.crossing c on c.id = p.crossing where p.archive_id = a.id)
    as crossing_not_known,
(select c.takes_in from messages.crossing_put p join messages.crossing c on c.id = p.crossing where p.archive_id = a.id)
    as crossing_takes_in,
(select c.operation from messages.crossing_put p join messages.crossing c on c.id = p.crossing where p.archive_id = a.id)
    as crossing_operation,
(select p.crossing from messages.crossing_put p where p.archive_id = a.id) as crossing_id

-- name: stays_here
-- In its place, and in place of on_its_way_at_once, where the engine's tables are older than crossings.
null::text as crossing, null::text as crossing_not_known, null::boolean as crossing_takes_in, null::bigint as crossing_operation, null::bigint as crossing_id

-- name: put_back
-- New row id, no expiry, the body unchanged; it does not leave the database.
insert into {table} (id, expires, headers, body)
select put.row_id, null, put.headers, a.body
from unnest(%(ids)s::integer[], %(row_ids)s::uuid[], %(headers)s::text[]) with ordinality as put (id, row_id, headers, place)
join messages.message_archive a on a.id = put.id
order by put.place

-- name: put_edited
-- As put_back, with edited headers, and an edited body where there is one: other bodies do not leave the database.
insert into {table} (id, expires, headers, body)
select put.row_id, null, put.headers, coalesce(put.body, a.body)
from unnest(%(ids)s::integer[], %(row_ids)s::uuid[], %(headers)s::text[], %(bodies)s::bytea[])
    with ordinality as put (id, row_id, headers, body, place)
join messages.message_archive a on a.id = put.id
order by put.place

-- name: bodies
-- Of messages with an edited field; the caller reads few at a time, and none that is long.
select a.id, a.body from messages.message_archive a where a.id = any (%(ids)s::integer[]) and a.body is not null

-- name: document_sizes
-- Of lease messages with an edited field, before their documents are read: the column's own size is a compressed one.
select a.id, octet_length(a.message::text) as bytes
from messages.message_archive a where a.id = any (%(ids)s::integer[]) and a.kind = 'lease'

-- name: documents
-- Likewise the documents, as the text that is read and written.
select a.id, convert_to(a.message::text, 'UTF8') as body
from messages.message_archive a where a.id = any (%(ids)s::integer[]) and a.kind = 'lease'

-- name: retarget
-- The queue they were sent to instead: their outcome is reported from there.
update messages.message_archive set target_schema = %(schema)s, target_table = %(table)s where id = any (%(ids)s::integer[])

-- name: put_back_lease
-- Likewise into the lease queue; each records the id of the archived message, and that one the new id.
-- A second ending by an original client is no message of its own: the first ending is.
with put as (
    insert into messages.message (created_at, message, retried_from)
    select now() at time zone 'utc', a.message, a.id
    from messages.message_archive a
    where a.id = any (%(ids)s::integer[]) and a.kind = 'lease' and a.second_ending_of is null
    order by a.died_at, a.id
    returning id, retried_from
)
update messages.message_archive a set retried_as = put.id from put where a.id = put.retried_from
returning a.id, a.retried_as

-- name: put_back_edited_lease
-- As put_back_lease, with edited documents.
with put as (
    insert into messages.message (created_at, message, retried_from)
    select now() at time zone 'utc', edited.document::jsonb, a.id
    from unnest(%(ids)s::integer[], %(documents)s::text[]) as edited (id, document)
    join messages.message_archive a on a.id = edited.id
    where a.kind = 'lease' and a.second_ending_of is null
    order by a.died_at, a.id
    returning id, retried_from
)
update messages.message_archive a set retried_as = put.id from put where a.id = put.retried_from
returning a.id, a.retried_as

-- name: second_endings
-- Which of these an original client ended a second time, with the row of the first ending.
select id, second_ending_of as first from messages.message_archive
where id = any (%(ids)s::integer[]) and second_ending_of is not null

-- name: retried_as
-- The id under which an archived message was last put back.
select retried_as from messages.message_archive where id = %(id)s

-- name: mark
-- Guarded: only rows still in the state in which they were held.
update messages.message_archive
set resolution = %(resolution)s, resolved_by = %(who)s, resolved_at = clock_timestamp(), ended_at = null, operation = %(operation)s
where id = any (%(ids)s::integer[]) and state = %(state)s

-- name: mark_retried
-- As mark, with each message's retry token; null where it went into a foreign queue.
update messages.message_archive a
set resolution = 'retried', resolved_by = %(who)s, resolved_at = clock_timestamp(), ended_at = null, operation = %(operation)s,
    retry_token = put.token
from unnest(%(ids)s::integer[], %(tokens)s::uuid[]) as put (id, token)
where a.id = put.id and a.state = 'dead'

-- name: note
-- One event per message, in the transaction of the act.
insert into messages.archive_event (archive_id, who, verb, operation, target)
select id, %(who)s, %(verb)s, %(operation)s, target
from unnest(%(ids)s::integer[], %(targets)s::text[]) as done (id, target)

-- name: prune
-- Deletes a chunk of what was resolved long ago.
-- Where history is kept: only what was visible in the snapshot up to which it is complete, and whose events are all in
-- files: these have its number, which nobody knows once the row is gone. Only in the archive that the caller meant:
-- another one may have been restored in its place. A message resolved today can be taken back, however long ago it
-- died; the condition on died_at is for the index.
delete from messages.message_archive where id in (
    select id from messages.message_archive
    where state in ('succeeded', 'dead_again', 'discarded', 'retried') and died_at < %(before)s
        and greatest(died_at, resolved_at, ended_at) < %(before)s
        and tableoid = split_part(%(archive)s, '/', 3)::oid
        -- evaluated once: where history has read no row yet, no row is examined
        and (%(read)s::pg_snapshot is null or pg_snapshot_xmax(%(read)s::pg_snapshot) > (
            select first.xid from messages.message_archive first order by first.xid limit 1))
        and (%(read)s::pg_snapshot is null or pg_visible_in_snapshot(xid, %(read)s::pg_snapshot))
        and (%(filed)s::pg_snapshot is null or not exists (
            select from messages.archive_event event
            where event.archive_id = message_archive.id
                and not (pg_visible_in_snapshot(event.xid, %(filed)s::pg_snapshot)
                    and event.at < coalesce(%(filed_before)s::timestamptz, 'infinity'))))
        and {read_by_others} and {is_settled}
    limit %(most)s for update skip locked
)

-- name: read_by_others
-- Of a row to be pruned: each console that reported within a week has read it, with all of its events.
-- A report on another server, or on a former table in this one's place (cluster names both), proves nothing.
not exists (
    select from messages.history_reader reader
    where reader.said_at > now() - %(silent)s::interval and (
        reader.cluster <> %(archive)s or not pg_visible_in_snapshot(message_archive.xid, reader.snapshot) or exists (
            select from messages.archive_event event
            where event.archive_id = message_archive.id
                and not (pg_visible_in_snapshot(event.xid, reader.events_snapshot)
                    and event.at < coalesce(reader.events_before, 'infinity')))))

-- name: is_settled
-- Likewise: a message called back from another database is nowhere else once it has left that database.
not exists (select from messages.crossing_put put where put.archive_id = message_archive.id)

-- name: nobody_else
-- In its place, where the engine's tables have no readers: no console can report how far it is.
true

-- name: has_readers
-- Tables of version 1 have none.
select to_regclass('messages.history_reader') is not null

-- name: sees_readers
-- Whether this role may read them: grants made table by table do not include a new table.
select coalesce(has_table_privilege(to_regclass('messages.history_reader'), 'select'), false)

-- name: say_read
-- How far this console's history has read. By the database's clock, which also tells which readers are silent.
insert into messages.history_reader (reader, name, cluster, snapshot, events_snapshot, events_before, said_at)
values (
    %(reader)s, %(name)s, %(archive)s, %(snapshot)s::pg_snapshot, %(events_snapshot)s::pg_snapshot,
    %(events_before)s, clock_timestamp())
on conflict (reader) do update set
    name = excluded.name, cluster = excluded.cluster, snapshot = excluded.snapshot,
    events_snapshot = excluded.events_snapshot, events_before = excluded.events_before, said_at = excluded.said_at

-- name: silent_readers
-- Consoles that pruning no longer waits for.
select reader::text, name, greatest(said_at, '0001-01-02') as said_at from messages.history_reader
where said_at <= now() - %(silent)s::interval order by said_at
