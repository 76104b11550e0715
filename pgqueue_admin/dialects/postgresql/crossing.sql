-- name: here
-- Identity of a cluster, and of one database in it.
select (select system_identifier::text from pg_control_system()) || '/' ||
    (select oid::text from pg_database where datname = current_database())

-- name: durable
-- A commit that was reported may not be undone by a crash, whatever the role's setting; stricter settings stay.
select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'

-- name: mark
-- The transaction's id, and where it is valid: in one cluster, on one timeline, not before this position of its log.
select (select system_identifier::text from pg_control_system()) as cluster,
    left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as timeline,
    pg_current_xact_id()::text as xid, pg_current_wal_insert_lsn()::text as lsn

-- name: pinned
-- For that commit the local disk is enough, and no standby need answer.
select set_config('synchronous_commit', 'local', true)

-- name: pin
-- In another session, once the first one has written: this id is a later one, and is in the log on disk when its commit
-- returns. So no crash assigns the earlier id again, as it could while nothing of that transaction is on disk.
select pg_logical_emit_message(true, 'pgqueue_admin', '')

-- name: commit_outcome
-- A standby, another cluster or timeline, or a server set back may reuse the id, and is not queried.
select here.cluster, here.timeline, here.is_behind,
    case when here.cluster = %(cluster)s and here.timeline = %(timeline)s and not here.is_behind
        then pg_xact_status(%(xid)s::xid8) end as status
from (
    select (select system_identifier::text from pg_control_system()) as cluster,
        case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end as timeline,
        case when not pg_is_in_recovery() then pg_current_wal_insert_lsn() < %(lsn)s::pg_lsn end as is_behind
) here

-- name: put
-- The id is ours, so that the row can be found later. A message that goes back never expires.
insert into {table} (id, expires, headers, body) values (%(id)s::uuid, null, %(headers)s, %(body)s)

-- name: take
-- As archive.take, limited by what is to be carried; bodies follow one by one. Locked rows are left to their owners.
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
-- By the place of the held row.
select body from {table} where ctid = %(place)s::tid and tableoid = %(part)s::oid

-- name: remove
-- Likewise, all held rows.
delete from {table} q
using rows from (unnest(%(parts)s::bigint[]), unnest(%(places)s::text[])) as held (part, place)
where q.ctid = held.place::tid and q.tableoid = held.part::oid
