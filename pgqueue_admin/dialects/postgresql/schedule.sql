-- name: is_installed
-- By the catalog: the engine's tables may be missing, or older than schedules.
select pg_catalog.to_regclass('messages.schedule_look') is not null

-- name: server_time
-- Due times are judged by one clock: the server's.
select pg_catalog.clock_timestamp()

-- name: columns
-- Of each schedule, without its message, which may be long.
s.id, s.name, s.kind, s.queue_schema, s.queue_table, s.message_type, s.expression, s.zone, s.missed, s.planned_until, s.version,
s.created_at, s.created_by, s.paused_at, s.paused_by, s.error, s.error_at

-- name: unsent
-- What should have been sent: the first due time that is open for too long, or the error of the last attempt.
-- By the two indexes of open due times; a paused schedule owes nothing.
select s.id, s.name, s.zone, s.error, s.error_at, due.due_at, pg_catalog.clock_timestamp() as now
from messages.schedule s
left join lateral (
    select r.due_at from messages.schedule_run r
    where r.schedule = s.id and r.outcome is null and r.due_at > statement_timestamp() - interval '31 days'
        and r.due_at < statement_timestamp() - %(late)s::interval
    order by r.due_at limit 1
) due on true
where s.paused_at is null and (s.error is not null or due.due_at is not null)
order by s.name

-- name: listed
-- The next due time, the last run and how many were missed, each by an index; what became of the last message, if its id tells.
select {columns}, coming.due_at as next_at, coming.local_due as next_local,
    run.due_at as ran_due, run.at as ran_at, run.outcome as ran_as, run.who as ran_by, run.message_id, run.row_id,
    missed.count as missed_count, missed.last as missed_at, missed.outcome as missed_as,
    ended.id as archive_id, ended.queue as ended_in, ended.state as ended_as, ended.result::text as result, ended.exception_type,
    ended.died_at as ended_at, run.queue_schema as ran_schema, run.queue_table as ran_table, lease.id is not null as waits
from messages.schedule s
left join lateral (
    select r.due_at, r.local_due from messages.schedule_run r
    where r.schedule = s.id and r.outcome is null and r.due_at > statement_timestamp() - interval '31 days'
    order by r.due_at limit 1
) coming on true
left join lateral (
    select r.* from messages.schedule_run r
    where r.schedule = s.id and r.due_at <= statement_timestamp() and r.outcome in ('sent', 'caught_up', 'by_hand')
    order by r.due_at desc limit 1
) run on true
left join lateral (
    select count(*) as count, max(r.due_at) as last, (array_agg(r.outcome order by r.due_at desc))[1] as outcome
    from messages.schedule_run r where r.schedule = s.id and r.outcome in ('skipped', 'paused')
) missed on true
left join lateral (
    select a.* from messages.message_archive a
    where a.message_id = run.message_id and (a.kind = 'lease') = (run.row_id is null) order by a.id desc limit 1
) ended on true
left join messages.message lease on lease.id = case when run.row_id is null then run.message_id::integer end
where %(id)s::bigint is null or s.id = %(id)s::bigint
order by s.name

-- name: message
-- The message that is sent, and its headers.
select s.message, s.headers from messages.schedule s where s.id = %(id)s::bigint

-- name: coming
-- The next due times that are not claimed.
select r.due_at, r.local_due from messages.schedule_run r
where r.schedule = %(id)s::bigint and r.outcome is null and r.due_at > statement_timestamp()
order by r.due_at limit {most}

-- name: past
-- What became of the latest due times, newest first.
select r.due_at, r.local_due, r.outcome, r.at, r.who, r.message_id, r.row_id, ended.id as archive_id, ended.queue as ended_in,
    ended.state as ended_as, ended.result::text as result, ended.exception_type, ended.died_at as ended_at, r.queue_schema as ran_schema,
    r.queue_table as ran_table, lease.id is not null as waits
from messages.schedule s
join messages.schedule_run r on r.schedule = s.id and r.due_at <= statement_timestamp() and r.outcome is not null
left join lateral (
    select a.* from messages.message_archive a
    where a.message_id = r.message_id and (a.kind = 'lease') = (r.row_id is null) order by a.id desc limit 1
) ended on true
left join messages.message lease on lease.id = case when r.row_id is null then r.message_id::integer end
where s.id = %(id)s::bigint
order by r.due_at desc limit {most}

-- name: looked
-- When due messages were last run, and by whom.
select l.at, l.who, statement_timestamp() as now,
    (select min(r.due_at) from messages.schedule_run r where r.outcome is null) as first_open
from messages.schedule_look l

-- name: due_in
-- Seconds to the first due time ahead, by its index. Past ones are tried again at the next run.
select extract(epoch from min(due_at) - statement_timestamp())::double precision
from messages.schedule_run where outcome is null and due_at > statement_timestamp()

-- name: add
-- Together with its due times, or not at all.
with added as (
    insert into messages.schedule (
        name, kind, queue_schema, queue_table, channel, message_type, headers, message, expression, zone, missed, planned_until,
        created_by)
    values (%(name)s, %(kind)s, %(queue_schema)s, %(queue_table)s, %(channel)s, %(message_type)s, %(headers)s, %(message)s,
        %(expression)s, %(zone)s, %(missed)s, %(planned_until)s::timestamptz, %(who)s)
    returning id
), planned as (
    insert into messages.schedule_run (schedule, due_at, local_due)
    select added.id, due.due_at, due.local_due
    from added, rows from (unnest(%(dues)s::timestamptz[]), unnest(%(locals)s::timestamp[])) as due (due_at, local_due)
)
select id from added

-- name: hold
-- Until the transaction ends nobody else runs, plans or changes it.
select s.version, s.paused_at, s.name from messages.schedule s where s.id = %(id)s::bigint for no key update

-- name: change
-- What was due before stays due, with the message as it is from now on; what is still to come is planned anew.
update messages.schedule set
    name = %(name)s, kind = %(kind)s, queue_schema = %(queue_schema)s, queue_table = %(queue_table)s, channel = %(channel)s,
    message_type = %(message_type)s, headers = %(headers)s, message = %(message)s, expression = %(expression)s, zone = %(zone)s,
    missed = %(missed)s, planned_until = %(planned_until)s::timestamptz, version = version + 1, error = null, error_at = null
where id = %(id)s::bigint

-- name: forget_coming
-- Due times of a plan that is given up.
delete from messages.schedule_run
where schedule = %(id)s::bigint and outcome is null and due_at > clock_timestamp()

-- name: to_plan
-- Schedules whose due times end soon. A paused one is planned as well: what it misses is reported.
select {columns} from messages.schedule s where s.planned_until < statement_timestamp() + {ahead}::integer * interval '1 day'
order by s.planned_until limit 100

-- name: plan
-- More due times; two concurrent planners write the same ones. Not if the schedule was changed meanwhile.
with planned as (
    update messages.schedule set planned_until = %(until)s::timestamptz
    where id = %(id)s::bigint and version = %(version)s::integer returning id
)
insert into messages.schedule_run (schedule, due_at, local_due)
select planned.id, due.due_at, due.local_due
from planned, rows from (unnest(%(dues)s::timestamptz[]), unnest(%(locals)s::timestamp[])) as due (due_at, local_due)
on conflict do nothing

-- name: forget_past
-- Runs of more than 31 days ago, except the latest that was sent.
delete from messages.schedule_run r
where r.schedule = %(id)s::bigint and r.outcome is not null and r.due_at < statement_timestamp() - interval '31 days'
    and r.due_at < (
        select max(sent.due_at) from messages.schedule_run sent
        where sent.schedule = %(id)s::bigint and sent.outcome in ('sent', 'caught_up', 'by_hand'))

-- name: note_error
-- Why it cannot be planned; the next message that is sent clears it.
update messages.schedule set error = %(error)s, error_at = clock_timestamp() where id = %(id)s::bigint

-- name: run
-- Claims what is due and inserts its messages: may run in any number of places at once.
select ran, passed_over, failures from messages.run_schedules({most}, %(grace)s::double precision * interval '1 second', %(who)s::text)

-- name: run_by_hand
-- One extra message, now; the plan stays as it is.
with chosen as materialized (
    select s as schedule, s.id from messages.schedule s where s.id = %(id)s::bigint for no key update
)
insert into messages.schedule_run (
    schedule, due_at, local_due, outcome, at, who, message_id, row_id, queue_schema, queue_table)
select chosen.id, %(due)s::timestamptz, %(local)s::timestamp, 'by_hand', clock_timestamp(), %(who)s, made.message_id, made.row_id,
    (chosen.schedule).queue_schema, (chosen.schedule).queue_table
from chosen, lateral messages.send_scheduled(chosen.schedule, %(due)s::timestamptz, %(local)s::timestamp) as made
returning message_id

-- name: pause
-- Its due times pass without a message, and count as missed.
update messages.schedule set paused_at = clock_timestamp(), paused_by = %(who)s, version = version + 1
where id = %(id)s::bigint and paused_at is null

-- name: resume
-- What passed meanwhile is not sent.
with resumed as (
    update messages.schedule set paused_at = null, paused_by = null, version = version + 1
    where id = %(id)s::bigint and paused_at is not null returning id
)
update messages.schedule_run r set outcome = 'paused', at = clock_timestamp()
from resumed where r.schedule = resumed.id and r.outcome is null and r.due_at <= clock_timestamp()

-- name: remove
-- With its due times and runs; messages that were sent stay.
delete from messages.schedule where id = %(id)s::bigint

-- name: by_name
-- Names are unique.
select id from messages.schedule where name = %(name)s
