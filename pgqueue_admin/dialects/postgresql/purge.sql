-- name: waiting
-- What a purge would delete: the number of visible rows, and their lowest and highest seq, which tell later rows apart.
select count(*) as number, min(seq) as lowest, max(seq) as up_to from {table}

-- name: waiting_leases
-- Likewise lease messages: those that nobody has locked, also where they are released for later.
select count(*) as number, min(id) as lowest, max(id) as up_to from messages.message where lock_expires_at is null

-- name: identity
-- Recognizes a table that was recreated, emptied or rewritten, and whose numbers restarted.
-- Only an ascending sequence of its own is read, where the role may.
select c.oid::bigint as oid,
    (select string_agg(p.relfilenode::text, ' ' order by p.oid) from pg_class p
     where p.oid = c.oid or p.oid in (select relid from pg_partition_tree(c.oid))) as storage,
    (select pg_sequence_last_value(s.seqrelid) from pg_sequence s
     where s.seqrelid = pg_get_serial_sequence(format('%%I.%%I', n.nspname, c.relname), %(numbered_by)s)::regclass
         and s.seqincrement > 0 and has_sequence_privilege(s.seqrelid, 'select')) as last
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relname = %(name)s

-- name: left
-- How many of these still exist, locked ones included.
select count(*) from {table} where seq between %(lowest)s::bigint and %(up_to)s::bigint

-- name: left_leases
-- Likewise lease messages: those that still wait.
select count(*) from messages.message where id between %(lowest)s::bigint and %(up_to)s::bigint and lock_expires_at is null

-- name: hold_leases
-- The next of these, in the order of claims and by its index, which has no locked rows; what a worker is locking is skipped.
select id, retried_from from messages.message
where id between %(lowest)s::bigint and %(up_to)s::bigint and lock_expires_at is null
order by available_at, id limit %(limit)s for update skip locked

-- name: take_leases
-- The held ones. Archived as a success, and only then marked as discarded: nobody is notified of a death.
with gone as (
    delete from messages.message m where m.id = any (%(ids)s::integer[])
    returning m.id, m.created_at, m.message, m.attempts, coalesce(m.message -> 'kind', m.message -> 0) as kind
)
insert into messages.message_archive (
    created_at, archived_at, message, result, handled_by, details, kind, queue, message_id, message_type, attempts, sent_at)
select created_at, now() at time zone 'utc', message, 'success', %(handled_by)s, %(details)s, 'lease', %(queue)s, id::text,
    case when jsonb_typeof(kind) = 'string' then left(kind #>> '{{}}', 500) end, attempts, created_at at time zone 'utc'
from gone order by gone.id
returning id

-- name: set_leases_aside
-- As move_to_archive.set_aside: resolved_at equals died_at, which marks a message that never died.
update messages.message_archive a
set result = 'rejected', resolution = 'discarded', resolved_by = %(who)s, resolved_at = a.died_at, operation = %(operation)s
where a.id = any (%(ids)s::integer[])

-- name: take
-- The next of these, oldest first; rows that a receiver has locked are skipped.
-- Limited by the size of the headers that a chunk may read, with at least one row. filled: seq, which always is, and
-- the columns that the archive lacks: rows with a value there stay.
with near as materialized (
    select tableoid::bigint as part, ctid::text as place, id, seq, expires, headers, body is null as is_null
    from {table} where seq between %(lowest)s::bigint and %(up_to)s::bigint and num_nonnulls({filled}) = 1 order by seq limit %(limit)s for update skip locked
)
select part, place, id::text as id, seq, coalesce(expires <= now() at time zone 'utc', false) as expired, headers,
    case when not is_null then ''::bytea end as body
from (
    select *, row_number() over up_to as nth, sum(octet_length(headers)) over up_to as read
    from near window up_to as (order by seq rows unbounded preceding)
) chunk where nth = 1 or read <= %(most)s order by nth

-- name: reserve
-- In place of a frozen set: reserves the number against other consoles, names no message, and is open until the purge ends.
insert into messages.operation_item (operation, position, archive_id, queue) values (%(operation_id)s, 1, 0, %(queue)s)

-- name: begin_chunk
-- One chunk at a time; a second caller leaves it to the first. Visible as in hand, as other operations' chunks are.
select pg_try_advisory_xact_lock(hashtext('pgqueue operation'), %(operation_id)s::integer)

-- name: done
-- How many messages it has purged.
select count(*) from messages.operation_item where operation = %(operation_id)s and outcome = 'done'

-- name: record
-- Each becomes an item, in the transaction that took it. Positions follow archive ids, so that no two share one.
insert into messages.operation_item (operation, position, archive_id, queue, outcome, at)
select %(operation_id)s, purged.id + 1, purged.id, %(queue)s, 'done', clock_timestamp()
from unnest(%(ids)s::integer[]) as purged (id)

-- name: end
-- Nothing is left to take, or nothing more may be taken.
update messages.operation_item set outcome = %(outcome)s, why = %(why)s, at = clock_timestamp()
where operation = %(operation_id)s and position = 1 and archive_id = 0 and outcome is null

-- name: why_ended
-- Of a purge that could not go on.
select why from messages.operation_item where operation = %(operation_id)s and position = 1 and archive_id = 0 and outcome = 'failed'

-- name: taken_back
-- Retries of which it took messages back: their figures have changed. Likewise of edited messages.
with mine as materialized (
    select archive_id from messages.operation_item where operation = %(operation_id)s and archive_id > 0
)
select distinct retry.operation
from (
    select archive_id from mine
    union select e.archive_id from messages.archive_event e where e.verb = 'died again' and e.xid = any (array(
        select distinct n.xid from messages.archive_event n where n.operation = %(operation_id)s and n.verb = 'discarded'))
) taken join messages.operation_item retry on retry.archive_id = taken.archive_id
where retry.outcome = 'skipped' and retry.operation <> %(operation_id)s
