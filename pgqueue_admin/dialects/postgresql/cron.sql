-- name: facts
-- Whether pg_cron is in this database, and its version. Only a superuser may read where the server keeps its jobs.
select (select x.extversion::text from pg_extension x where x.extname = 'pg_cron') as version,
    exists (select from pg_available_extensions where name = 'pg_cron') as is_available,
    current_database()::text as database

-- name: home
-- The database in which the server's pg_cron keeps its jobs; empty for a role that may not read the setting.
select case when pg_has_role('pg_read_all_settings', 'usage') then coalesce(current_setting('cron.database_name', true), '') else '' end

-- name: put
-- A role has one job of a name; an existing one is replaced.
select cron.schedule(%(name)s::text, '* * * * *', %(command)s::text)

-- name: put_elsewhere
-- For a database other than the one that has the jobs.
select cron.schedule_in_database(%(name)s::text, '* * * * *', %(command)s::text, %(database)s::text)

-- name: jobs
-- This role's, with the end of each one's last run. The original's own jobs too: theirs may lose a message.
select j.jobid, j.jobname::text as name, j.command, j.active, last.status, last.end_time, last.return_message
from cron.job j
left join lateral (
    select d.status, d.end_time, d.return_message from cron.job_run_details d
    where d.jobid = j.jobid and d.end_time is not null order by d.runid desc limit 1
) last on true
where j.database = %(database)s and (j.jobname = any(%(names)s::text[]) or j.jobname like 'messages.message:%%')
order by j.jobname

-- name: drop
-- By number: pg_cron cuts names to 63 bytes.
select cron.unschedule(j.jobid) from cron.job j
where j.database = %(database)s and j.jobname = any(%(names)s::text[])
