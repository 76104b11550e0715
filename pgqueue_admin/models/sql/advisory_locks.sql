-- name: try_lock
-- One supervisor per host and one leader of all: held by the session, so a killed holder lets go at once.
select pg_try_advisory_lock(hashtext('pgqueue supervisor'), hashtext(%(name)s)) as taken, pg_backend_pid() as session

-- name: unlock
-- Whoever stops in peace lets its successor begin at once.
select pg_advisory_unlock(hashtext('pgqueue supervisor'), hashtext(%(name)s))

-- name: holder
-- The session that has the lock of this name in this database; 64 bits of the key stand in two columns.
from pg_catalog.pg_locks l
join pg_catalog.pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory'
  and l.granted
  and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
  and l.classid::int8 = hashtext('pgqueue supervisor')::int8 & 4294967295
  and l.objid::int8 = hashtext(%(name)s)::int8 & 4294967295
  and l.objsubid = 2

-- name: end_former
-- Ours alone: by its number, by the lock that it has, and by its name, which is that of the session that asks.
select count(pg_terminate_backend(a.pid))
{holder}
  and a.pid = %(session)s
  and a.pid <> pg_backend_pid()
  and a.usename = current_user
  and a.application_name = current_setting('application_name')

-- name: lock_holder
-- The refused one says who holds it: application_name carries host and pid.
select a.application_name
{holder}

-- name: search
-- Until the transaction ends, however it ends. Who finds it taken is told so at once.
select pg_try_advisory_xact_lock(hashtext('pgqueue search'), hashtext(%(person)s))

-- name: form
-- Of those that send one form at once each is alone, until its transaction ends.
select pg_advisory_xact_lock(hashtext('pgqueue form'), hashtext(%(form)s))
