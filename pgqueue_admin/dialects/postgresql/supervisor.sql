-- name: try_lock
-- One supervisor per host and one leader of all: held by the session, so a killed holder lets go at once.
select pg_try_advisory_lock(hashtext('pgqueue supervisor'), hashtext(%(name)s))

-- name: unlock
-- Whoever stops in peace lets its successor begin at once.
select pg_advisory_unlock(hashtext('pgqueue supervisor'), hashtext(%(name)s))

-- name: lock_holder
-- The refused one says who holds it: application_name carries host and pid.
select a.application_name
from pg_catalog.pg_locks l
join pg_catalog.pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory'
  and l.granted
  and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
  and l.classid::int8 = hashtext('pgqueue supervisor')::int8 & 4294967295
  and l.objid::int8 = hashtext(%(name)s)::int8 & 4294967295
  and l.objsubid = 2
