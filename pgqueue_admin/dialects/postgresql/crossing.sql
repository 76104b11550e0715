-- name: here
-- A number of one cluster, and of one database in it.
select (select system_identifier::text from pg_control_system()) || '/' ||
    (select oid::text from pg_database where datname = current_database())

-- name: durable
-- What was told as committed may not be undone by a crash, whatever the role's sessions are set to; more than that is left.
select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'

-- name: mark
-- Its number, and where that means something: in one cluster, on one timeline, not before this place of its log.
select (select system_identifier::text from pg_control_system()) as cluster,
    left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as timeline,
    pg_current_xact_id()::text as xid, pg_current_wal_insert_lsn()::text as lsn

-- name: pinned
-- Of that commit its own disk is enough, and no standby need answer.
select set_config('synchronous_commit', 'local', true)

-- name: pin
-- In another session, once that one has written: this number is a later one, and is in the log on disk when its commit returns.
-- No crash gives the earlier one out again; it would otherwise, as long as nothing of that transaction is on disk.
select pg_logical_emit_message(true, 'pgqueue_admin', '')

-- name: commit_outcome
-- A standby, another cluster or timeline, or a server that was set back may give the number to another transaction, and is not asked.
select here.cluster, here.timeline, here.is_behind,
    case when here.cluster = %(cluster)s and here.timeline = %(timeline)s and not here.is_behind
        then pg_xact_status(%(xid)s::xid8) end as status
from (
    select (select system_identifier::text from pg_control_system()) as cluster,
        case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end as timeline,
        case when not pg_is_in_recovery() then pg_current_wal_insert_lsn() < %(lsn)s::pg_lsn end as is_behind
) here

-- name: put
-- The id is ours, so that it can be looked for later. What goes back never expires.
insert into {table} (id, expires, headers, body) values (%(id)s::uuid, null, %(headers)s, %(body)s)

-- name: take
-- As archive.take, by how much there is to carry; bodies follow one by one. Rows in somebody's hands are left to them.
with near as materialized (
    select tableoid::bigint as part, ctid::text as place, id, expires, headers, seq::bigint as seq,
        octet_length(headers) + coalesce(octet_length(body), 0) as bytes
    from {table} order by seq limit %(limit)s for update skip locked
)
select part, place, id, expires, headers, seq from (
    select *, row_number() over up_to as nth, sum(bytes) over up_to as carried
    from near window up_to as (order by seq rows unbounded preceding)
) batch where nth = 1 or carried <= %(most)s order by nth

-- name: body
-- By where the held row lies.
select body from {table} where ctid = %(place)s::tid and tableoid = %(part)s::oid

-- name: remove
-- Likewise, all that are held.
delete from {table} q
using rows from (unnest(%(parts)s::bigint[]), unnest(%(places)s::text[])) as held (part, place)
where q.ctid = held.place::tid and q.tableoid = held.part::oid
