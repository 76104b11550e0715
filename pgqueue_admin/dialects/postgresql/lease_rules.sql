-- name: rules
-- Oldest first: the first match counts.
select r.id, r.message_type, r.results, r.times, r.wait_seconds, r.who, r.reason, r.created_at
from messages.lease_rule r order by r.id

-- name: rules_done
-- What each did in the last 31 days, as long as that is kept: counted up to a cap, and only when it is displayed.
select r.id, (
        select count(*) from (select from messages.lease_rule_retry done where done.rule = r.id limit %(cap)s + 1) capped
    ) as number,
    (select max(done.at) from messages.lease_rule_retry done where done.rule = r.id) as last_at
from messages.lease_rule r

-- name: create_rule
-- A changed rule is a new row, so that what was done under its number was done by just that rule.
insert into messages.lease_rule (message_type, results, times, wait_seconds, who, reason)
values (%(message_type)s, %(results)s::text[], %(times)s, %(wait_seconds)s, %(who)s, %(reason)s)
on conflict (message_type) do nothing
returning id

-- name: remove_rule
-- Messages that waited for it are examined when their time comes, and left dead.
delete from messages.lease_rule where id = %(id)s::bigint
returning id

-- name: due_in
-- All that an idle worker has to know.
select extract(epoch from available_at - statement_timestamp())::double precision
from messages.lease_rule_dead order by available_at limit 1

-- name: hold_due
-- Each for one of the concurrent callers, until it commits. What a person has ended is no failure.
-- Any role that may insert there writes the message's id: it need not be a number. The original's cron job writes none,
-- and neither do some second endings of its workers: how often such a message was retried is not known, nor whether it
-- is in the queue still.
select d.archive_id, a.state, a.result::text as result, a.died_at, coalesce(a.message_type, kind.said) as message_type,
    said.id is not null as is_told, coalesce(before.nth, 0) as retried,
    exists (select from messages.archive_event e where e.archive_id = a.id and e.verb = 'ended') as is_by_hand,
    statement_timestamp() as now
from messages.lease_rule_dead d
left join messages.message_archive a on a.id = d.archive_id
left join lateral (
    select case jsonb_typeof(found.kind) when 'string' then left(found.kind #>> '{{}}', 500) end as said
    from (select coalesce(a.message -> 'kind', a.message -> 0) as kind) found
) kind on true
left join lateral (select case when a.message_id ~ '^[0-9]{{1,18}}$' then a.message_id::bigint end) said (id) on true
left join messages.lease_rule_retry before on before.message_id = said.id
where d.available_at <= statement_timestamp()
order by d.available_at limit {most}
for update of d skip locked

-- name: hold_dead
-- Those of these that nobody has locked: waiting for one would keep all others waiting.
select id from messages.message_archive where id = any (%(ids)s::integer[]) order by id for update skip locked

-- name: look_again
-- Each at its own time.
update messages.lease_rule_dead d set available_at = again.at
from unnest(%(ids)s::integer[], %(times)s::timestamptz[]) as again (archive_id, at)
where d.archive_id = again.archive_id

-- name: forget
-- There is nothing left to do for these.
delete from messages.lease_rule_dead where archive_id = any (%(ids)s::integer[])

-- name: note_retries
-- The number of each retry, stored by the new message's id, so that its next death finds it.
insert into messages.lease_rule_retry (message_id, archive_id, rule, nth)
select * from unnest(%(message_ids)s::integer[], %(archive_ids)s::integer[], %(rules)s::bigint[], %(nths)s::integer[])
on conflict (message_id) do update set archive_id = excluded.archive_id, rule = excluded.rule, nth = excluded.nth, at = now()

-- name: prune
-- Retries of more than a month ago whose messages no longer wait; a number at a time.
delete from messages.lease_rule_retry where message_id in (
    select r.message_id from messages.lease_rule_retry r
    where r.at < now() - interval '31 days' and not exists (select from messages.message m where m.id = r.message_id)
    order by r.at limit {most})
