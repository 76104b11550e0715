-- name: counts
-- Every page needs all of these: one statement in place of seven. Tables of the console's own database.
select
    {newest} as newest,
    {blind} as blind,
    (select count(*) from pgqueue_queue where gone_since is null) as queues,
    (select count(*) from pgqueue_alert where resolved_at is null and acknowledged_at is null) as warnings,
    (select count(*) from pgqueue_alert
     where resolved_at is null and acknowledged_at is null and severity = 'critical') as critical,
    (select dead from pgqueue_archivesample order by id desc limit 1) as dead,
    (select count(*) from pgqueue_operation where state in ('waiting', 'running')) as operations,
    (select count(*) from pgqueue_endpoint) as endpoints,
    team.teams,
    (select count(distinct (p.role, p.endpoint)) from pgqueue_process p
     where p.role not in ('endpoint', 'supervisor')
         and (p.ended_at is null and p.heartbeat_at < now() - %(lost)s * interval '1 s'
              or p.state = 'back-off' and exists (
                  select from pgqueue_process s
                  where s.role = 'supervisor' and s.host = p.host and s.ended_at is null
                      and s.heartbeat_at >= now() - %(lost)s * interval '1 s'))
         and not exists (
             select from pgqueue_process o
             where o.role = p.role and o.endpoint = p.endpoint and o.ended_at is null
                 and o.heartbeat_at >= now() - %(lost)s * interval '1 s')) as broken,
    kept.delayed, kept.delayed_how, kept.unmoved
from (
    select coalesce(sum(l.delayed), 0)::int8 as delayed, array_agg(distinct l.delayed_how) as delayed_how,
           count(*) filter (where l.overdue > 0 and l.next_due_at < now() - %(late)s * interval '1 s') as unmoved
    from pgqueue_queue q join pgqueue_latestsample l on l.queue_id = q.id
    where q.kind = 'delayed' and q.gone_since is null
) kept, (
    select coalesce(json_agg(json_build_array(e.desired_processes, coalesce(p.have, 0), e.paused)), '[]') as teams
    from pgqueue_endpoint e
    left join (
        select endpoint, count(*) as have from pgqueue_process
        where role = 'endpoint' and ended_at is null and state <> 'draining'
            and heartbeat_at >= now() - %(lost)s * interval '1 s'
        group by endpoint
    ) p on p.endpoint = e.name
    where e.ours
) team

-- name: newest
-- The newest sample of an existing queue in the first database; other databases have samplers of their own.
-- Without queues there is no sample: then the sampler's heartbeat stands for it, if its last query was answered.
-- Likewise where no queue can be read.
coalesce(
    (select max(l.at) from pgqueue_latestsample l join pgqueue_queue q on q.id = l.queue_id
     where q.gone_since is null and l.error = '' and q.schema not like all(%(others)s)),
    (select max(heartbeat_at) from pgqueue_process where role = 'sampler' and ended_at is null and last_error = ''),
    (select max(l.at) from pgqueue_latestsample l join pgqueue_queue q on q.id = l.queue_id
     where q.gone_since is null and q.schema not like all(%(others)s))
)

-- name: blind
-- Why nothing is read, as a running sampler reports; null: none reports it.
(select last_error from pgqueue_process
 where role = 'sampler' and ended_at is null and last_error <> ''
     and heartbeat_at >= now() - %(lost)s * interval '1 s'
 order by heartbeat_at desc limit 1)

-- name: why_blind
-- Likewise, by itself.
select {blind}

-- name: how_new
-- Likewise, by itself.
select {newest}
