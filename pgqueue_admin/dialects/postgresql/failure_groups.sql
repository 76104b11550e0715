-- name: told_by
-- Part of pending, pending_of and newest: what a failure is told by. Of a trace both ends: the latest call is at the beginning of
-- .NET's, and at the end of Python's.
result::text as result, exception_type, left(exception_message, 20000) as exception_message,
    case when length(stack_trace) <= 100000 then stack_trace else concat(left(stack_trace, 50000), right(stack_trace, 50000)) end
        as stack_trace,
    left(retry_blocked_reason, 4000) as retry_blocked_reason, left(details, 4000) as details

-- name: pending
-- What others archived, and what was there before fingerprints. Rows in somebody's hands are left for the next time.
select id, {told_by}
from messages.message_archive where fingerprint is null and result <> 'success'
order by id desc limit %(most)s for update skip locked

-- name: pending_ids
-- Where one of these cannot be read: which they are, before an id.
select id from messages.message_archive
where fingerprint is null and result <> 'success' and (%(before)s::integer is null or id < %(before)s)
order by id desc limit %(most)s

-- name: pending_of
-- Likewise, of these.
select id, {told_by}
from messages.message_archive where id = any (%(ids)s::integer[]) and fingerprint is null
order by id desc for update skip locked

-- name: keep
-- Beside what it is: nothing else of the row changes.
update messages.message_archive a set fingerprint = told.fingerprint
from unnest(%(ids)s::integer[], %(fingerprints)s::text[]) as told (id, fingerprint)
where a.id = told.id

-- name: everywhere
-- Part of the others, for somebody who sees all queues: then the index alone is read.
true

-- name: in_seen
-- Part of the others, for somebody who sees some. Original clients name none: theirs is the lease queue.
(a.queue = any (%(seen)s::text[]) or (a.queue is null and '"messages"."message"' = any (%(seen)s::text[])))

-- name: uncovered
-- By the index of those that have none, and no further than the cap.
select count(*) from (
    select from messages.message_archive a where a.fingerprint is null and a.result <> 'success' and {seen}
    limit %(cap)s + 1) as capped

-- name: figures
-- Part of groups: what a group's state is judged by. Others may write any time as that of a death, also infinity: first and last
-- are within the calendar. What is dated later than now counts as dead, not as died lately: it would for ever. By the index alone,
-- which holds the state beside each death.
a.fingerprint, {dead} as dead, count(*) filter (where a.state = 'dead') as all_dead,
    greatest(least(min(a.died_at), now()), '0001-01-02') as first_at,
    greatest(coalesce(max(a.died_at) filter (where a.died_at <= now()), now()), '0001-01-02') as last_at,
    count(*) filter (where a.died_at > now() - interval '10 minutes' and a.died_at <= now()) as died_lately,
    count(*) filter (where a.died_at > now() - interval '24 hours' and a.died_at <= now()) as died_today,
    min(a.died_at) filter (where a.died_at > now() - interval '24 hours' and a.died_at <= now()) as today_from,
    max(greatest(a.died_at, '0001-01-02')) filter (where a.died_at <= now() - interval '24 hours') as before_today,
    count(*) filter (where a.died_at <= now() - interval '24 hours' and a.state = 'dead') as dead_before, now() as counted_at,
    count(*) filter (where a.state = 'retried') as retried, count(*) filter (where a.state = 'succeeded') as succeeded,
    count(*) filter (where a.state = 'dead_again') as dead_again, count(*) filter (where a.state = 'discarded') as discarded

-- name: all_dead
-- Part of groups: every dead message counts.
count(*) filter (where a.state = 'dead')

-- name: matching_dead
-- Part of groups: those that the search finds, while the state is judged by all.
count(*) filter (where a.state = 'dead' and {matches})

-- name: groups
-- Each failure of which something lies dead, counted from the index. What died in the last 24 hours may be new, and comes first.
select {figures} from messages.message_archive a where a.fingerprint is not null and {seen}
group by a.fingerprint having {dead} > 0
order by count(*) filter (where a.died_at > now() - interval '24 hours' and a.died_at <= now()) > 0 desc, dead desc, a.fingerprint limit %(most)s

-- name: group
-- One, whatever became of its messages.
select {figures} from messages.message_archive a where a.fingerprint = %(fingerprint)s and {seen} group by a.fingerprint

-- name: some
-- Those of these that have messages, whatever became of them: for a page that follows what it shows.
select {figures} from messages.message_archive a where a.fingerprint = any (%(fingerprints)s::text[]) and {seen} group by a.fingerprint

-- name: newest
-- Of each of these the newest death, dead ones before others: what the failure is told by.
select f.fingerprint, told.* from unnest(%(fingerprints)s::text[]) as f (fingerprint), lateral (
    select id, queue, {told_by}
    from messages.message_archive a where a.fingerprint = f.fingerprint and {seen}
    order by died_at desc, seq desc limit 1) as told

-- name: places
-- Of each of these its newest dead ones, so many: where they died, of which type, whose.
select f.fingerprint, coalesce(newest.queue, '"messages"."message"') as queue, newest.message_type as type,
    coalesce(newest.endpoint, newest.handled_by) as endpoint, count(*) as messages
from unnest(%(fingerprints)s::text[]) as f (fingerprint), lateral (
    select queue, message_type, endpoint, handled_by from messages.message_archive a
    where a.fingerprint = f.fingerprint and a.state = 'dead' and {seen}
    order by died_at desc, seq desc limit %(most)s) as newest
group by 1, 2, 3, 4 order by messages desc, 2, 3, 4

-- name: hours
-- Deaths of the last 24 hours, by how many hours ago.
select a.fingerprint, least(floor(extract(epoch from now() - a.died_at) / 3600), 23)::integer as ago, count(*) as count
from messages.message_archive a
where a.fingerprint = any (%(fingerprints)s::text[]) and a.died_at > now() - interval '24 hours' and a.died_at <= now() and {seen}
group by 1, 2

-- name: bars
-- Deaths of one, by how many steps ago.
select floor(extract(epoch from now() - a.died_at) / %(step)s)::integer as ago, count(*) as count
from messages.message_archive a
where a.fingerprint = %(fingerprint)s and a.died_at > now() - %(step)s::integer * %(steps)s::integer * interval '1 second' and a.died_at <= now()
    and {seen}
group by 1

-- name: by_name
-- What lies dead, by type, queue or endpoint instead, and of how many causes.
select {name} as name, count(*) as dead, count(distinct a.fingerprint) as causes,
    greatest(least(min(a.died_at), now()), '0001-01-02') as first_at, greatest(least(max(a.died_at), now()), '0001-01-02') as last_at
from messages.message_archive a where a.state = 'dead' and {matches}
group by 1 order by dead desc, name limit %(most)s

-- name: of_type
-- Part of by_name.
coalesce(a.message_type, '')

-- name: of_queue
-- Part of by_name. Original clients name none: theirs is the lease queue.
coalesce(a.queue, '"messages"."message"')

-- name: of_endpoint
-- Part of by_name, as a search finds it: who handled it is an endpoint for lease messages alone.
coalesce(a.endpoint, case a.kind when 'lease' then a.handled_by end, '')

-- name: members
-- The newest dead ones of a group, with the start of what they are: what they share and where they differ is read from these.
select a.id, coalesce(a.queue, '"messages"."message"') as queue, a.message_type as type, a.endpoint, a.machine, a.attempts,
    left(a.headers, 16384) as headers, length(a.headers) as headers_length,
    case when a.kind = 'lease' then left(a.message::text, 8192)
        when octet_length(a.body) <= 8192 then encode(a.body, 'hex') end as content, a.kind, greatest(least(a.died_at, now()), '0001-01-02') as died_at
from messages.message_archive a where a.fingerprint = %(fingerprint)s and a.state = 'dead' and {seen}
order by a.died_at desc, a.seq desc limit %(most)s

-- name: beside
-- What else was archived of a queue meanwhile, the newest: dead of something else, or finished. What succeeded after it had died of
-- this is of this. Where nearly all died of it, others are looked for among so many of the newest, and no further.
select read.message_type as type, left(read.headers, 16384) as headers, length(read.headers) as headers_length, read.kind
from (
    select a.message_type, a.headers, a.kind, a.fingerprint, a.died_at, a.seq from messages.message_archive a
    where a.queue = %(queue)s and a.died_at >= %(since)s and a.died_at <= %(until)s and {seen}
    order by a.died_at desc, a.seq desc limit %(read)s
) read
where read.fingerprint is distinct from %(fingerprint)s and read.headers is not null
order by read.died_at desc, read.seq desc limit %(most)s

-- name: of_causes
-- Of each of these queues and errors the failures of its newest dead ones, so many, the most first: by the index of the dead alone.
-- Original clients name no queue: theirs is the lease queue.
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
-- Which operations acted last on the newest members, and what became of these.
select operation, state, count(*) as count from (
    select operation, state from messages.message_archive a where a.fingerprint = %(fingerprint)s and {seen}
    order by a.died_at desc, a.seq desc limit %(most)s) as newest
where operation is not null group by 1, 2 order by 1 desc, 2

-- name: all_fingerprints
-- One after another from the index: so many probes as there are failures, however many messages.
with recursive each (fingerprint) as (
    select min(fingerprint) from messages.message_archive where fingerprint is not null
    union all
    select (select min(a.fingerprint) from messages.message_archive a where a.fingerprint > each.fingerprint)
    from each where each.fingerprint is not null
)
select fingerprint from each where fingerprint is not null
