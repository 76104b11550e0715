-- name: try_lock
-- One supervisor per host and one leader of all: the session holds the lock, so a killed holder releases it at once.
select pg_try_advisory_lock(hashtext('pgqueue supervisor'), hashtext(%(name)s)) as taken, pg_backend_pid() as session

-- name: unlock
-- After an orderly stop the successor begins at once.
select pg_advisory_unlock(hashtext('pgqueue supervisor'), hashtext(%(name)s))

-- name: holder
-- The session that holds the lock of this name in this database; the key's 64 bits are in two columns.
from pg_catalog.pg_locks l
join pg_catalog.pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory'
  and l.granted
  and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
  and l.classid::int8 = hashtext('pgqueue supervisor')::int8 & 4294967295
  and l.objid::int8 = hashtext(%(name)s)::int8 & 4294967295
  and l.objsubid = 2

-- name: end_former
-- Our own session only: by its pid, by the lock it holds, and by its application_name, which is this session's.
select count(pg_terminate_backend(a.pid))
{holder}
  and a.pid = %(session)s
  and a.pid <> pg_backend_pid()
  and a.usename = current_user
  and a.application_name = current_setting('application_name')

-- name: lock_holder
-- Names the holder to the refused one: application_name carries host and pid.
select a.application_name
{holder}

-- name: search
-- Until the transaction ends, however it ends. Does not wait for a lock that is taken.
select pg_try_advisory_xact_lock(hashtext('pgqueue search'), hashtext(%(person)s))

-- name: form
-- Submissions of one form run one at a time, each until its transaction ends.
select pg_advisory_xact_lock(hashtext('pgqueue form'), hashtext(%(form)s))
