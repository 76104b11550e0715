-- name: instant
-- What is visible now, and in which cluster: transaction ids mean nothing in another one, e.g. after a restore.
-- A promoted server continues on a timeline of its own, the first eight digits of its log's file names. And which table
-- the archive is, looked up as in readable.
select
    pg_current_snapshot()::text as snapshot,
    concat(
        (select system_identifier::text from pg_control_system()), '/',
        case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end) as cluster,
    (select relation.oid::int8
        from pg_class relation join pg_namespace schema on schema.oid = relation.relnamespace
        where schema.nspname = 'messages' and relation.relname = 'message_archive') as archive,
    clock_timestamp() as at

-- name: has_timelines
-- Whether a superuser lets us read where the timelines of the server's log began and ended (docs/how-to/resume-history.md).
select exists (
    select from pg_proc function join pg_namespace schema on schema.oid = function.pronamespace
    where schema.nspname = 'messages' and function.proname = 'timeline_history' and function.pronargs = 0
        and has_schema_privilege(schema.oid, 'usage') and has_function_privilege(function.oid, 'execute')
)

-- name: timelines
-- As the promoted server recorded them: a line for each one before its own, with its number and its end.
-- Null: it is the first.
select messages.timeline_history()

-- name: patiently
-- For one plan, which no page waits for: beside many old rows, the first of many new ones may be found only by passing
-- over the old. It waits no longer for a lock than pages do.
set local statement_timeout = '60s';
set local lock_timeout = '5s'

-- name: by_transactions
-- New rows are found by their transactions.
-- Where there are many beside what was read before, PostgreSQL would rather read the whole archive, or pass over all of
-- that in the order of its numbers: both plans are switched off.
set local enable_seqscan = off;
set local enable_indexscan = off

-- name: archive_next
-- What became visible between two snapshots, lowest seq first and bounded: counts of exactly the rows to be read.
select
    min(seq) as seq_lo, max(seq) as seq_hi, count(*) as rows, coalesce(sum(seq), 0)::text as seq_checksum,
    coalesce(sum(bytes), 0)::int8 as bytes
from (
    select seq, {bytes} as bytes from messages.message_archive
    where seq > %(done)s and kind <> 'control' and {between}
    order by seq limit %(most)s
) next

-- name: bytes_read
-- Of one row, what leaves this database at most; lengths are known without reading what is stored apart (TOAST).
least(coalesce(octet_length(headers), 0), %(headers_most)s) + least(coalesce(octet_length(body), 0), %(body_read)s)

-- name: bytes_unknown
-- For the original's archive, whose messages are in no file.
0

-- name: between_snapshots
-- Misses no row, however late it commits. Not visible in a: begun later, or open then; a constant, for the planner's sake.
pg_visible_in_snapshot(xid, %(b)s::pg_snapshot) and (
    xid >= pg_snapshot_xmax(%(a)s::pg_snapshot) and xid < pg_snapshot_xmax(%(b)s::pg_snapshot)
    or xid = any(string_to_array(split_part(%(a)s::pg_snapshot::text, ':', 3), ',')::xid8[])
)

-- name: events_not_filed
-- Filed: visible in a *and* of a day that was over then, whatever clocks did; without an end, all that was visible.
pg_visible_in_snapshot(event.xid, %(b)s::pg_snapshot) and event.at < %(end)s::timestamptz
and not (pg_visible_in_snapshot(event.xid, %(a)s::pg_snapshot) and event.at < coalesce(%(filed)s::timestamptz, 'infinity'))

-- name: events_first
-- The first event that is in no file yet: one scan of the whole table, once for each day.
select min(at) from messages.archive_event event where {events_not_filed}

-- name: events_read
-- With what the archive knows of their messages, in order of seq, by which a file is searched.
-- Read in parts: somebody may have discarded a million. Of a success, who is the endpoint that handled it, and a target
-- is where FailedQ led.
declare became no scroll cursor for select
    archived.seq, event.archive_id,
    case when 'NServiceBus.MessageId' <> all(%(names)s::text[]) then archived.message_id end as message_id,
    event.id as event, event.at,
    case when event.verb <> 'succeeded' or 'NServiceBus.ProcessingEndpoint' <> all(%(names)s::text[]) then event.who
        else '(masked)' end as who,
    event.verb, event.operation,
    case when 'NServiceBus.FailedQ' <> all(%(names)s::text[]) then event.target end as target
from messages.archive_event event
left join messages.message_archive archived on archived.id = event.archive_id
where {events_not_filed}
order by archived.seq, event.id

-- name: events_part
-- As many as a row group of a file holds: a search for one message has to read these.
fetch 20000 from became

-- name: read_archive
-- One part of a batch, in the columns of raw history.
-- Masked headers, what a body may not show, and what nobody reads of an error stay here: a trace is read from both its
-- ends. A column must not tell what a masked header says: it is empty, or masked where a failure would be none without
-- it, and a message ended when it was archived. What a person took out of its queue and discarded never ended: its two
-- times are equal.
select
    seq, case when 'NServiceBus.FailedQ' <> all(%(names)s::text[]) then queue end as queue,
    coalesce(
        case when 'NServiceBus.ProcessingEndpoint' <> all(%(names)s::text[]) then endpoint end,
        case kind when 'lease' then handled_by end) as endpoint,
    case when resolution = 'discarded' and resolved_at = died_at then 'discarded' else result::text end as result,
    case when 'NServiceBus.MessageId' <> all(%(names)s::text[]) then message_id end as message_id,
    case when 'NServiceBus.EnclosedMessageTypes' <> all(%(names)s::text[]) then message_type end as message_type,
    case when 'NServiceBus.ExceptionInfo.ExceptionType' <> all(%(names)s::text[]) or exception_type is null
        then exception_type else '(masked)' end as exception_type,
    case when 'NServiceBus.ExceptionInfo.Message' <> all(%(names)s::text[])
        then left(exception_message, %(message_most)s) end as exception_message,
    case when 'NServiceBus.ExceptionInfo.StackTrace' = any(%(names)s::text[]) then null
        when octet_length(stack_trace) <= 2 * %(trace_most)s then stack_trace
        else left(stack_trace, %(trace_most)s) || right(stack_trace, %(trace_most)s) end as stack_trace,
    case when 'NServiceBus.TimeSent' <> all(%(names)s::text[]) and isfinite(sent_at) then sent_at end as sent_at,
    case when isfinite(ended) then ended end as ended_at,
    {headers} as headers, octet_length(headers) as headers_bytes, {body} as body, octet_length(body) as body_bytes,
    false as is_twin
from messages.message_archive, lateral (
    select case when 'NServiceBus.TimeOfFailure' <> all(%(names)s::text[]) then died_at
        else archived_at at time zone 'utc' end as ended
) known
where seq between %(lo)s and %(hi)s and kind <> 'control' and {between}

-- name: readable
-- Which of some tables we may read; by their rows in the catalog, since a name in a closed schema is an error.
select asked.schema, asked.name
from unnest(%(schemas)s::text[], %(tables)s::text[]) as asked (schema, name)
join pg_namespace schema on schema.nspname = asked.schema
join pg_class relation on relation.relnamespace = schema.oid and relation.relname = asked.name
where has_schema_privilege(schema.oid, 'usage') and has_table_privilege(relation.oid, 'select')

-- name: queue_head
-- The highest visible number; lower ones may still be uncommitted.
select max({number}) from {table}

-- name: queue_numbers
-- Which table it is, and how its numbers are assigned: a sequence that is restarted gets another file. last is null
-- where we may not see it, cached and sequence_file also where no sequence assigns them.
select
    queue.id::oid::int8 as oid,
    exists (select from pg_attribute where attrelid = queue.id and attname = queue.number) as has_number,
    pg_relation_filenode(seqrelid)::int8 as sequence_file, seqcache as cached,
    (select relpersistence = 'p' from pg_class where oid = seqrelid) as is_logged,
    case when has_sequence_privilege(seqrelid, 'select, usage') then coalesce(pg_sequence_last_value(seqrelid), 0) end
        as last
from (select %(table)s::text::regclass as id, %(number)s::text as number) queue
left join pg_sequence on seqrelid = {numbered_by}

-- name: numbered_by
-- Where a column's numbers come from: the sequence in its default, which is another table's where this one was created
-- like it, else its own.
(
    select id
    from (
        select true as is_default, refobjid as id
        from pg_depend
        where classid = 'pg_attrdef'::regclass and refclassid = 'pg_class'::regclass and objid = (
            select pg_attrdef.oid from pg_attribute join pg_attrdef on adrelid = attrelid and adnum = attnum
            where attrelid = queue.id and attname = queue.number
        )
        union all
        select false, objid
        from pg_depend
        where classid = 'pg_class'::regclass and refclassid = 'pg_class'::regclass and deptype in ('a', 'i')
            and refobjid = queue.id
            and refobjsubid = (select attnum from pg_attribute where attrelid = queue.id and attname = queue.number)
    ) named
    where (select relkind from pg_class where oid = id) = 'S'
    order by is_default desc limit 1
)

-- name: given_out
-- How many numbers these tables have assigned in total.
-- A table that is gone, has no numbers any more, or that we may not see counts nothing; looked up as in readable.
with queue as (
    select relation.oid as id, asked.number
    from unnest(%(schemas)s::text[], %(tables)s::text[], %(numbers)s::text[]) as asked (schema, name, number)
    join pg_namespace schema on schema.nspname = asked.schema
    join pg_class relation on relation.relnamespace = schema.oid and relation.relname = asked.name
), numbered as materialized (
    select {numbered_by} as sequence from queue
)
select coalesce(sum(pg_sequence_last_value(sequence)), 0)::int8
from numbered where has_sequence_privilege(sequence, 'select, usage')

-- name: writers
-- Which transactions may have taken a number and not committed yet: run after queue_head, as CREATE INDEX CONCURRENTLY
-- does. Every insert holds this lock, whatever others besides; vacuum does not. An insert into a partition may lock
-- that alone. A prepared transaction has no process, and a restart of the server gives it another virtual transaction
-- (-1/...): the lock on its own number identifies it.
with recursive parts (id) as (
    select %(table)s::text::regclass::oid
    union
    select inhrelid from pg_inherits join parts on inhparent = id
)
select
    locks.virtualtransaction as writer, locks.virtualtransaction like '-1/%%' as is_renamed,
    min(coalesce(activity.xact_start, prepared.prepared)) as since,
    min(coalesce('process ' || locks.pid, 'prepared as ' || prepared.gid)) as who
from pg_locks locks
left join pg_stat_activity activity on activity.pid = locks.pid
left join pg_locks own on locks.pid is null and own.pid is null and own.locktype = 'transactionid' and own.granted
    and own.virtualtransaction = locks.virtualtransaction
left join pg_prepared_xacts prepared on prepared.transaction = own.transactionid
where locks.relation in (select id from parts)
    and locks.database = (select oid from pg_database where datname = current_database())
    and locks.mode = 'RowExclusiveLock' and locks.granted and locks.pid is distinct from pg_backend_pid()
group by 1 order by since

-- name: queue_next
-- For tables that we may not alter: the rows between two decided numbers, bounded.
-- Rows with one number, where its owner restarted the sequence, are in one batch.
select
    min(seq) as seq_lo, max(seq) as seq_hi, count(*) as rows, coalesce(sum(seq), 0)::text as seq_checksum,
    coalesce(sum(bytes), 0)::int8 as bytes, ({files}) as relfilenodes
from (
    select {number} as seq, {bytes} as bytes from {table} where {number} > %(done)s and {number} <= %(decided)s
    order by {number} fetch first (%(most)s) rows with ties
) next

-- name: queue_rows
-- How many of a batch's rows exist now.
select count(*) from {table} where {number} between %(lo)s and %(hi)s

-- name: relfilenodes
-- Where its rows are stored, those of its partitions too: elsewhere once it was rewritten.
-- A snapshot from before that sees none of them, and a statement that waits for the table's lock with one (COPY does)
-- reads nothing.
with recursive parts (id) as (
    select %(table)s::text::regclass::oid
    union
    select inhrelid from pg_inherits join parts on inhparent = id
)
select string_agg(concat(id, ':', pg_relation_filenode(id)), ' ' order by id) from parts

-- name: read_queue
-- The same columns for an audit queue, where all else is in the headers.
-- Its owner may have restarted its numbers: twins are looked for among numbers alone. A window over the rows would sort
-- them whole where their table was never analysed.
select
    seq::bigint as seq, null::text as queue, null::text as endpoint, 'success'::text as result,
    null::text as message_id, null::text as message_type, null::text as exception_type,
    null::text as exception_message, null::text as stack_trace, null::timestamptz as sent_at,
    null::timestamptz as ended_at, {headers} as headers, octet_length(headers) as headers_bytes, {body} as body,
    octet_length(body) as body_bytes,
    seq in (select seq from {table} where seq between %(lo)s and %(hi)s group by seq having count(*) > 1)
        and exists (
            select from {table} first
            where first.seq = queued.seq and (first.tableoid, first.ctid) < (queued.tableoid, queued.ctid)
        ) as is_twin
from {table} queued
where seq between %(lo)s and %(hi)s

-- name: read_original
-- The same for the archive of oliverlambson/pgmq, as read_archive returns its rows once it is adopted.
-- A column that it lacks is resolved in the outer query, and is null there.
select
    original.seq, null::text as queue, original.endpoint, original.result, null::text as message_id,
    null::text as message_type, null::text as exception_type, null::text as exception_message,
    null::text as stack_trace, null::timestamptz as sent_at,
    case when isfinite(original.ended_at) then original.ended_at end as ended_at,
    {headers} as headers, octet_length(headers) as headers_bytes, {body} as body, octet_length(body) as body_bytes,
    false as is_twin
from
    (select null::text as result, null::text as handled_by, null::timestamp as archived_at) missing,
    lateral (
        select
            id::int8 as seq, result::text as result, handled_by::text as endpoint,
            archived_at::timestamp at time zone 'utc' as ended_at, null::text as headers, null::bytea as body
        from messages.message_archive where id between %(lo)s and %(hi)s
    ) original

-- name: headers_whole
-- Headers that are too large stay here.
case when octet_length(headers) <= %(headers_most)s then headers end

-- name: headers_masked
-- Values of masked names never leave this database.
-- Headers that may hold such a name, and are not plainly a JSON object of texts, stay here whole. The expressions cost
-- ten times the rest, and run only on headers with a sign of such a name.
case
    when octet_length(headers) > %(headers_most)s then null
    when not headers collate "C" like any(%(masked_signs)s::text[]) then headers
    when headers ~ %(flat)s then regexp_replace(headers, %(masked)s, '"\1":"(masked)"', 'g')
end

-- name: body_cut
-- The first bytes only: nobody reads 50 MB of history.
substring(body from 1 for 4096)

-- name: body_dropped
-- Nothing of it; its size is returned beside it.
null::bytea

-- name: body_kept
-- All of it, unless it is too large.
case when octet_length(body) <= %(body_most)s then body end

-- name: body_hashed
-- Enough to tell two bodies apart.
case when octet_length(body) <= %(body_most)s then sha256(body) end

-- name: written
-- Up to where the log is written, and in which cluster.
-- What is visible now lies before; a record that has just filled its page ends where the page does, and not behind the
-- header of the next. within: in how many seconds at most all that had ended by then is on disk (PostgreSQL,
-- "Asynchronous Commit").
select
    (lsn - case when header <= 40 then header else 0 end)::text as lsn,
    (select system_identifier::text from pg_control_system()) as cluster,
    3 * extract(epoch from current_setting('wal_writer_delay')::interval)::float8 as within
from
    (select pg_current_wal_insert_lsn() as lsn) log,
    lateral (select mod(pg_wal_lsn_diff(lsn, '0/0'), current_setting('wal_block_size')::int) as header) page

-- name: is_on_disk
-- Whether the log is on disk up to there.
select pg_current_wal_flush_lsn() >= %(lsn)s::pg_lsn

-- name: replayed
-- How many bytes a standby has still to replay up to there. Null: it is no standby.
select
    case when pg_is_in_recovery()
        then greatest(pg_wal_lsn_diff(%(lsn)s::pg_lsn, pg_last_wal_replay_lsn()), 0)::int8 end as behind,
    (select system_identifier::text from pg_control_system()) as cluster

-- name: end_overdue
-- Only sessions that wait for their reader, which no timeout ends; one that still answers in time is left alone.
select count(pg_terminate_backend(pid))
from pg_stat_activity
where application_name = %(name)s and usename = current_user and datname = current_database()
    and state = 'active' and wait_event = 'ClientWrite'
    and query_start < clock_timestamp() - make_interval(secs => %(limit)s)

-- name: has_archive
-- With our columns: before engine_schema was run it may be the original's, or none. Looked up as in readable.
select count(*) = 2
from pg_attribute
join pg_class relation on relation.oid = attrelid
join pg_namespace schema on schema.oid = relation.relnamespace
where schema.nspname = 'messages' and relation.relname = 'message_archive'
    and attname in ('seq', 'xid') and not attisdropped

-- name: has_original
-- The original's, as far as we need it and may read it: its id alone.
select count(*) = 1
from pg_attribute
join pg_class relation on relation.oid = attrelid
join pg_namespace schema on schema.oid = relation.relnamespace
where schema.nspname = 'messages' and relation.relname = 'message_archive'
    and attname = 'id' and not attisdropped and atttypid in ('int4'::regtype, 'int8'::regtype)
    and has_schema_privilege(schema.oid, 'usage') and has_table_privilege(relation.oid, 'select')

-- name: load_figures
-- Of one batch, thousands of rows: they are streamed, and nothing is planned.
copy {table} ({columns}) from stdin
