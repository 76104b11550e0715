-- name: told_by
-- Part of pending, pending_of and newest: what identifies a failure.
-- Both ends of a stack trace: the latest call is at the beginning of .NET's, and at the end of Python's.
result::text as result, exception_type, left(exception_message, 20000) as exception_message,
    case when length(stack_trace) <= 100000 then stack_trace else concat(left(stack_trace, 50000), right(stack_trace, 50000)) end
        as stack_trace,
    left(retry_blocked_reason, 4000) as retry_blocked_reason, left(details, 4000) as details

-- name: pending
-- Rows that others archived, or from before fingerprints. Locked rows are left for the next run.
select id, {told_by}
from messages.message_archive where fingerprint is null and result <> 'success'
order by id desc limit %(most)s for update skip locked

-- name: pending_ids
-- The ids of such rows, below an id, for when one of them cannot be read.
select id from messages.message_archive
where fingerprint is null and result <> 'success' and (%(before)s::integer is null or id < %(before)s)
order by id desc limit %(most)s

-- name: pending_of
-- Likewise, of these rows.
select id, {told_by}
from messages.message_archive where id = any (%(ids)s::integer[]) and fingerprint is null
order by id desc for update skip locked

-- name: keep
-- Only the fingerprint: nothing else of the row changes.
update messages.message_archive a set fingerprint = told.fingerprint
from unnest(%(ids)s::integer[], %(fingerprints)s::text[]) as told (id, fingerprint)
where a.id = told.id

-- name: everywhere
-- Part of the others, for a user who sees all queues: then the index alone is read.
true

-- name: in_seen
-- Part of the others, for a user who sees some queues. Original clients name none: theirs is the lease queue.
(a.queue = any (%(seen)s::text[]) or (a.queue is null and '"messages"."message"' = any (%(seen)s::text[])))

-- name: uncovered
-- By the index of rows without a fingerprint, up to the cap.
select count(*) from (
    select from messages.message_archive a where a.fingerprint is null and a.result <> 'success' and {seen}
    limit %(cap)s + 1) as capped

-- name: figures
-- Part of groups: what a group's state is judged by.
-- Others may write any time of death, even infinity: first_at and last_at are kept within the calendar. A death dated
-- later than now counts as dead, but not as died lately: it would for ever. By the index alone, which has the state
-- beside each death.
a.fingerprint, {dead} as dead, count(*) filter (where a.state = 'dead') as all_dead,
    greatest(least(min(a.died_at), now()), '0001-01-02') as first_at,
    greatest(coalesce(max(a.died_at) filter (where a.died_at <= now()), now()), '0001-01-02') as last_at,
    count(*) filter (where a.died_at > now() - interval '10 minutes' and a.died_at <= now()) as died_lately,
    count(*) filter (where a.died_at > now() - interval '24 hours' and a.died_at <= now()) as died_today,
    coalesce(bool_or(a.died_at > now() - interval '24 hours' and a.died_at <= now()), false) as is_today,
    max(greatest(a.died_at, '0001-01-02')) filter (where a.died_at <= now() - interval '24 hours') as before_today,
    coalesce(min(a.died_at) filter (where a.died_at > now() - interval '24 hours' and a.died_at <= now())
        - max(greatest(a.died_at, '0001-01-02')) filter (where a.died_at <= now() - interval '24 hours') >= interval '7 days', false) as was_silent,
    coalesce(bool_or(a.state = 'dead') filter (where a.died_at <= now() - interval '24 hours'), false) as dead_before, now() as counted_at,
    count(*) filter (where a.state = 'retried') as retried, count(*) filter (where a.state = 'succeeded') as succeeded,
    count(*) filter (where a.state = 'dead_again') as dead_again, count(*) filter (where a.state = 'discarded') as discarded

-- name: all_dead
-- Part of groups: every dead message counts.
count(*) filter (where a.state = 'dead')

-- name: matching_dead
-- Part of groups: dead messages that the search finds; the state is judged by all.
count(*) filter (where a.state = 'dead' and {matches})

-- name: groups
-- Each failure with dead messages, counted from the index. Failures with a death in the last 24 hours may be new: first.
select {figures} from messages.message_archive a where a.fingerprint is not null and {seen}
group by a.fingerprint having {dead} > 0
order by count(*) filter (where a.died_at > now() - interval '24 hours' and a.died_at <= now()) > 0 desc, dead desc, a.fingerprint limit %(most)s

-- name: some
-- Those of these that have messages, in whatever state: for a page that refreshes what it shows.
select {figures} from messages.message_archive a where a.fingerprint = any (%(fingerprints)s::text[]) and {seen} group by a.fingerprint

-- name: are_tallied
-- Whether the tallies may be read: grants made table by table do not include a new table. By the catalog.
select coalesce(
    has_table_privilege(to_regclass('messages.failure_tally'), 'select')
    and has_table_privilege(to_regclass('messages.failure_change'), 'select'), false)

-- name: tallied
-- Part of tallied_groups, tallied_some and tallied_found: tallies and later changes are read in one snapshot, and equal
-- a recount of the archive in it.
select a.fingerprint, (coalesce(sum(a.number) filter (where a.state = 'dead'), 0))::bigint as all_dead,
    (coalesce(sum(a.number) filter (where a.state = 'retried'), 0))::bigint as retried,
    (coalesce(sum(a.number) filter (where a.state = 'succeeded'), 0))::bigint as succeeded,
    (coalesce(sum(a.number) filter (where a.state = 'dead_again'), 0))::bigint as dead_again,
    (coalesce(sum(a.number) filter (where a.state = 'discarded'), 0))::bigint as discarded
from (
    select t.fingerprint, t.queue, t.state, t.number from messages.failure_tally t
    union all
    select c.fingerprint, c.queue, c.state, c.number from messages.failure_change c) as a

-- name: newest_of_group
-- Part of the same: each failure's last death.
left join lateral (
    select a.died_at as newest_at from messages.message_archive a where a.fingerprint = k.fingerprint and a.died_at <= now() and {seen}
    order by a.died_at desc, a.seq desc limit 1) as newest on true

-- name: newest_of_day
-- In its place, where the page reads the last death of few groups later.
-- A probe reads what it may find of a block of the index: within a day that is less, and for most groups nothing.
left join lateral (
    select a.died_at as newest_at from messages.message_archive a where a.fingerprint = k.fingerprint
        and a.died_at > now() - interval '24 hours' and a.died_at <= now() and {seen}
    order by a.died_at desc, a.seq desc limit 1) as newest on true

-- name: today_first
-- Part of the same: the order in which a limited number are judged.
coalesce(newest_at > now() - interval '24 hours', false) desc, dead desc, fingerprint

-- name: in_no_order
-- In its place, where all may be judged: a constant, by which no server sorts.
true is true

-- name: tallied_figures
-- Part of the same, in the order of figures: times come from a few index probes for each judged group.
-- Deaths are counted where the state depends on them (whether it grows), or where all are asked for: those of the day
-- only as far as they decide it.
select k.fingerprint, k.dead, k.all_dead,
    greatest(least((select a.died_at from messages.message_archive a where a.fingerprint = k.fingerprint and {seen}
        order by a.died_at, a.seq limit 1), now()), '0001-01-02') as first_at,
    greatest(coalesce(k.newest_at, now()), '0001-01-02') as last_at, r.died_lately,
    case when k.newest_at > now() - interval '24 hours' is not true then 0
        when r.died_lately >= %(least)s then (
            select count(*) from (
                select from messages.message_archive a where a.fingerprint = k.fingerprint
                    and a.died_at > now() - interval '24 hours' and a.died_at <= now() and {seen}
                limit %(decides)s::integer * r.died_lately) as decisive) end as died_today,
    coalesce(k.newest_at > now() - interval '24 hours', false) as is_today,
    case when b.died_at is not null then greatest(b.died_at, '0001-01-02') end as before_today, s.was_silent, s.dead_before,
    now() as counted_at, k.retried, k.succeeded, k.dead_again, k.discarded
from judged k
left join lateral (
    select a.died_at, a.state from messages.message_archive a
    where a.fingerprint = k.fingerprint and a.died_at <= now() - interval '24 hours' and k.newest_at > now() - interval '24 hours' and {seen}
    order by a.died_at desc, a.seq desc limit 1) as b on true
{judging}

-- name: judging
-- Part of tallied_figures and tallied_standings: by the deaths before today (b), where a state depends on them.
cross join lateral (
    select case when b.died_at <= now() - interval '6 days' then (
            select a.died_at from messages.message_archive a where a.fingerprint = k.fingerprint
                and a.died_at > now() - interval '24 hours' and a.died_at <= now() and {seen}
            order by a.died_at, a.seq limit 1) - greatest(b.died_at, '0001-01-02') >= interval '7 days' else false end as was_silent,
        case when b.state = 'dead' then true when b.state is null then false else coalesce((
            select true from messages.message_archive a where a.fingerprint = k.fingerprint and a.state = 'dead'
                and a.died_at <= now() - interval '24 hours' and {seen} order by a.died_at desc, a.seq desc limit 1), false) end as dead_before
    offset 0) as s
cross join lateral (
    select case when k.newest_at > now() - interval '10 minutes' is not true then 0
        when %(all_lately)s or s.dead_before and not s.was_silent then (
            select count(*) from messages.message_archive a where a.fingerprint = k.fingerprint
                and a.died_at > now() - interval '10 minutes' and a.died_at <= now() and {seen}) end as died_lately
    offset 0) as r

-- name: tallied_standings
-- In its place, for thousands of groups: only what a state depends on, as sending and reading it takes as long as
-- finding it. The last death before today is first looked for in the hour before: the second part is read only where
-- the first gives none.
select k.fingerprint, k.dead, k.all_dead, r.died_lately,
    case when k.newest_at is null then 0
        when r.died_lately >= %(least)s then (
            select count(*) from (
                select from messages.message_archive a where a.fingerprint = k.fingerprint
                    and a.died_at > now() - interval '24 hours' and a.died_at <= now() and {seen}
                limit %(decides)s::integer * r.died_lately) as decisive) end as died_today,
    k.newest_at is not null as is_today, b.died_at is not null as died_before, s.was_silent, s.dead_before,
    case when k.newest_at is not null and b.died_at is null then now() end as counted_at,
    k.retried + k.succeeded + k.dead_again > 0 as was_retried, k.dead_again > 0 as died_again
from judged k
left join lateral (
    (select a.died_at, a.state from messages.message_archive a
    where a.fingerprint = k.fingerprint and a.died_at > now() - interval '25 hours' and a.died_at <= now() - interval '24 hours'
        and k.newest_at is not null and {seen}
    order by a.died_at desc, a.seq desc limit 1)
    union all
    (select a.died_at, a.state from messages.message_archive a
    where a.fingerprint = k.fingerprint and a.died_at <= now() - interval '25 hours' and k.newest_at is not null and {seen}
    order by a.died_at desc, a.seq desc limit 1)
    limit 1) as b on true
{judging}

-- name: firsts
-- When the first of each died; no row for a failure without messages.
select k.fingerprint, greatest(least(f.died_at, now()), '0001-01-02') as first_at
from unnest(%(fingerprints)s::text[]) as k (fingerprint)
cross join lateral (
    select a.died_at from messages.message_archive a where a.fingerprint = k.fingerprint and {seen}
    order by a.died_at, a.seq limit 1) as f

-- name: tallied_groups
-- As groups, for all dead messages: the cost depends on the number of failures, not of messages.
with kept as (
    {tallied} where {seen} group by a.fingerprint having sum(a.number) filter (where a.state = 'dead') > 0
), judged as materialized (
    select k.*, k.all_dead as dead, newest.newest_at from kept k {newest} order by {order} limit %(most)s
)
{figures} order by {order}

-- name: tallied_found
-- As groups, for what a search finds: only that is read, and what its failures are judged by.
with matched as materialized (
    {found}
), kept as (
    {tallied} where a.fingerprint = any (array(select fingerprint from matched)) and {seen} group by a.fingerprint
), judged as materialized (
    select k.*, m.found as dead, newest.newest_at from kept k join matched m using (fingerprint) {newest} order by {order} limit %(most)s
)
{figures} order by {order}

-- name: found_in_archive
-- Part of tallied_found.
select a.fingerprint, count(*) as found from messages.message_archive a
where a.state = 'dead' and a.fingerprint is not null and {matches} group by 1

-- name: found_in_queue
-- In its place, where only a queue is asked for: by the same tallies.
select a.fingerprint, sum(a.number)::bigint as found
from (
    select t.fingerprint, t.queue, t.number from messages.failure_tally t where t.state = 'dead' and t.queue = %(queue)s::text
    union all
    select c.fingerprint, c.queue, c.number from messages.failure_change c where c.state = 'dead' and c.queue = %(queue)s::text) as a
where {seen} group by 1 having sum(a.number) > 0

-- name: tallied_some
-- As some.
with kept as (
    {tallied} where a.fingerprint = any (%(fingerprints)s::text[]) and {seen} group by a.fingerprint having sum(a.number) > 0
), judged as materialized (
    select k.*, k.all_dead as dead, newest.newest_at from kept k {newest}
)
{figures}

-- name: fold
-- Folds a number of later changes into the tallies, in one statement: a concurrent count finds each row once.
with moved as (
    delete from messages.failure_change
    where ctid = any (array(select c.ctid from messages.failure_change c limit %(most)s for update skip locked))
    returning fingerprint, queue, state, number
)
insert into messages.failure_tally as t (fingerprint, queue, state, number)
select moved.fingerprint, moved.queue, moved.state, sum(moved.number) from moved
group by 1, 2, 3 having sum(moved.number) <> 0 order by 1, 2, 3
on conflict (fingerprint, queue, state) do update set number = t.number + excluded.number

-- name: forget_none
-- Failures of which the archive has no message any more. A death meanwhile is a change beside the tallies.
delete from messages.failure_tally where number = 0

-- name: recount
-- Finds writes that bypassed the triggers by counting all: how many tallies were wrong, and are right again.
select messages.recount_failures()

-- name: newest
-- Of each of these the newest death: what identifies the failure.
select f.fingerprint, told.* from unnest(%(fingerprints)s::text[]) as f (fingerprint), lateral (
    select id, queue, {told_by}
    from messages.message_archive a where a.fingerprint = f.fingerprint and {seen}
    order by died_at desc, seq desc limit 1) as told

-- name: places
-- Of each of these the newest dead messages, up to a limit: where they died, their type and endpoint.
select f.fingerprint, coalesce(newest.queue, '"messages"."message"') as queue, newest.message_type as type,
    coalesce(newest.endpoint, newest.handled_by) as endpoint, count(*) as messages
from unnest(%(fingerprints)s::text[]) as f (fingerprint), lateral (
    select queue, message_type, endpoint, handled_by from messages.message_archive a
    where a.fingerprint = f.fingerprint and a.state = 'dead' and {seen}
    order by died_at desc, seq desc limit %(most)s) as newest
group by 1, 2, 3, 4 order by messages desc, 2, 3, 4

-- name: hours
-- Deaths of the last 24 hours, by how many hours ago; and how many of them in the last 10 minutes.
select a.fingerprint, least(floor(extract(epoch from now() - a.died_at) / 3600), 23)::integer as ago, count(*) as count,
    count(*) filter (where a.died_at > now() - interval '10 minutes') as lately
from messages.message_archive a
where a.fingerprint = any (%(fingerprints)s::text[]) and a.died_at > now() - interval '24 hours' and a.died_at <= now() and {seen}
group by 1, 2

-- name: bars
-- Deaths of one failure, by how many steps ago.
select floor(extract(epoch from now() - a.died_at) / %(step)s)::integer as ago, count(*) as count
from messages.message_archive a
where a.fingerprint = %(fingerprint)s and a.died_at > now() - %(step)s::integer * %(steps)s::integer * interval '1 second' and a.died_at <= now()
    and {seen}
group by 1

-- name: by_name
-- Dead messages by type, queue or endpoint, and how many causes each has: of the newest up to a cap, never of more.
with found as materialized (
    select {name} as name, a.fingerprint, a.died_at, row_number() over (order by a.died_at desc, a.seq desc) as nth
    from messages.message_archive a where a.state = 'dead' and {matches}
    order by a.died_at desc, a.seq desc limit %(cap)s + 1
), of_cause as (
    select name, fingerprint, count(*) as dead, min(died_at) as first_at, max(died_at) as last_at
    from found where nth <= %(cap)s group by 1, 2
)
select name, sum(dead)::bigint as dead, count(fingerprint) as causes,
    greatest(least(min(first_at), now()), '0001-01-02') as first_at, greatest(least(max(last_at), now()), '0001-01-02') as last_at,
    (select count(*) > %(cap)s from found) as more
from of_cause group by 1 order by dead desc, name limit %(most)s

-- name: tallied_queues
-- As by_name by queue, for all dead messages: those without a fingerprint are counted by their index.
-- First and last deaths are probed by error in the index of the dead, however many there are: in its order, lest the
-- planner walk a queue for those with no error. Original clients name no queue, nor an error.
with kept as (
    select a.queue, a.fingerprint, sum(a.number) as dead
    from (
        select t.queue, t.fingerprint, t.number from messages.failure_tally t where t.state = 'dead'
        union all
        select c.queue, c.fingerprint, c.number from messages.failure_change c where c.state = 'dead'
        union all
        select coalesce(u.queue, '"messages"."message"'), null, 1 from messages.message_archive u
        where u.fingerprint is null and u.result <> 'success' and u.state = 'dead') as a
    where {seen} group by 1, 2 having sum(a.number) > 0
), named as materialized (
    select queue as name, sum(dead)::bigint as dead, count(fingerprint) as causes from kept group by 1
    order by dead desc, name limit %(most)s
)
select n.name, n.dead, n.causes, greatest(least(died.first_at, now()), '0001-01-02') as first_at,
    greatest(least(died.last_at, now()), '0001-01-02') as last_at, false as more
from named n, lateral (
    with recursive error (name) as (
        select min(d.exception_type) from messages.message_archive d where d.state = 'dead' and d.queue = n.name
        union all
        select (select min(d.exception_type) from messages.message_archive d
            where d.state = 'dead' and d.queue = n.name and d.exception_type > error.name)
        from error where error.name is not null
    ), times (first_at, last_at) as (
        select (select min(d.died_at) from messages.message_archive d
                where d.state = 'dead' and d.queue = n.name and d.exception_type = error.name),
            (select max(d.died_at) from messages.message_archive d
                where d.state = 'dead' and d.queue = n.name and d.exception_type = error.name)
        from error where error.name is not null
        union all
        select (select d.died_at from messages.message_archive d
                where d.state = 'dead' and d.queue = n.name and d.exception_type is null
                order by d.exception_type, d.died_at limit 1),
            (select d.died_at from messages.message_archive d
                where d.state = 'dead' and d.queue = n.name and d.exception_type is null
                order by d.exception_type desc, d.died_at desc limit 1)
        union all
        select (select d.died_at from messages.message_archive d
                where d.state = 'dead' and d.queue is null and d.exception_type is null
                order by d.exception_type, d.died_at limit 1),
            (select d.died_at from messages.message_archive d
                where d.state = 'dead' and d.queue is null and d.exception_type is null
                order by d.exception_type desc, d.died_at desc limit 1)
        where n.name = '"messages"."message"'
        union all
        select min(d.died_at), max(d.died_at) from messages.message_archive d
        where d.state = 'dead' and d.queue is null and d.exception_type is not null and n.name = '"messages"."message"'
    )
    select min(times.first_at) as first_at, max(times.last_at) as last_at from times) as died
order by n.dead desc, n.name

-- name: of_type
-- Part of by_name.
coalesce(a.message_type, '')

-- name: of_queue
-- Part of by_name. Original clients name none: theirs is the lease queue.
coalesce(a.queue, '"messages"."message"')

-- name: of_endpoint
-- Part of by_name, as a search finds it: handled_by is an endpoint for lease messages only.
coalesce(a.endpoint, case a.kind when 'lease' then a.handled_by end, '')

-- name: of_message
-- By its key, for the page of one message; and whether it died lately.
select a.fingerprint, a.died_at > now() - interval '10 minutes' and a.died_at <= now() as died_lately
from messages.message_archive a where a.id = %(id)s and a.fingerprint is not null

-- name: members
-- The newest dead messages of a group, with the start of their texts: what they share and where they differ.
select a.id, coalesce(a.queue, '"messages"."message"') as queue, a.message_type as type, a.endpoint, a.machine, a.attempts,
    left(a.headers, 16384) as headers, length(a.headers) as headers_length,
    case when a.kind = 'lease' then left(a.message::text, 8192)
        when octet_length(a.body) <= 8192 then encode(a.body, 'hex') end as content, a.kind, greatest(least(a.died_at, now()), '0001-01-02') as died_at
from messages.message_archive a where a.fingerprint = %(fingerprint)s and a.state = 'dead' and {seen}
order by a.died_at desc, a.seq desc limit %(most)s

-- name: beside
-- What else was archived of a queue meanwhile, the newest: with another failure, or finished.
-- A success after a death of this failure belongs to it. Where nearly all died of it, others are looked for among a
-- limited number of the newest, and no further.
select read.message_type as type, left(read.headers, 16384) as headers, length(read.headers) as headers_length, read.kind
from (
    select a.message_type, a.headers, a.kind, a.fingerprint, a.died_at, a.seq from messages.message_archive a
    where a.queue = %(queue)s and a.died_at >= %(since)s and a.died_at <= %(until)s and {seen}
    order by a.died_at desc, a.seq desc limit %(read)s
) read
where read.fingerprint is distinct from %(fingerprint)s and read.headers is not null
order by read.died_at desc, read.seq desc limit %(most)s

-- name: of_causes
-- For each of these queues and errors, the failures of its newest dead messages, most frequent first: by the index of
-- the dead alone. Original clients name no queue: theirs is the lease queue.
select asked.queue, asked.cause, newest.fingerprint, count(*) as messages
from unnest(%(queues)s::text[], %(causes)s::text[]) as asked (queue, cause), lateral (
    (select a.fingerprint from messages.message_archive a
    where a.state = 'dead' and a.queue = asked.queue and a.exception_type = asked.cause and {seen}
    order by a.died_at desc limit %(most)s)
    union all
    (select a.fingerprint from messages.message_archive a
    where a.state = 'dead' and a.queue is null and asked.queue = '"messages"."message"' and a.exception_type = asked.cause and {seen}
    order by a.died_at desc limit %(most)s)) as newest
group by 1, 2, 3 order by 1, 2, messages desc, 3

-- name: operations
-- Which operations acted last on the newest members, and the states these are in.
select operation, state, count(*) as count from (
    select operation, state from messages.message_archive a where a.fingerprint = %(fingerprint)s and {seen}
    order by a.died_at desc, a.seq desc limit %(most)s) as newest
where operation is not null group by 1, 2 order by 1 desc, 2

-- name: all_fingerprints
-- One after another from the index: as many probes as there are failures, however many messages.
with recursive each (fingerprint) as (
    select min(fingerprint) from messages.message_archive where fingerprint is not null
    union all
    select (select min(a.fingerprint) from messages.message_archive a where a.fingerprint > each.fingerprint)
    from each where each.fingerprint is not null
)
select fingerprint from each where fingerprint is not null
