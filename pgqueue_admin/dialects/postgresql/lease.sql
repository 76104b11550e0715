-- name: is_installed
-- By the catalog: the engine's tables may be missing, or older than leases.
select exists (
    select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
    where n.nspname operator(pg_catalog.=) 'messages' and c.relname operator(pg_catalog.=) 'notify_round')

-- name: publish
-- Also in the caller's session, with its zone and search path: the original's times are UTC without a zone, names are in full.
insert into messages.message (created_at, message)
select pg_catalog.now() at time zone 'utc', published.message::pg_catalog.jsonb
from pg_catalog.unnest(%(messages)s::pg_catalog.text[]) with ordinality as published (message, place)
order by published.place
returning id

-- name: claim
-- One statement finds unlocked rows and locks them; rows that another session is locking are skipped. An expired lock is not free.
update messages.message m
set lock_expires_at = {until}, token_expires_at = {until}, lock_token = pg_catalog.gen_random_uuid(),
    attempts = m.attempts operator(pg_catalog.+) 1, {noted}
where m.id operator(pg_catalog.=) any (array(
    select id from messages.message
    where lock_expires_at is null and available_at operator(pg_catalog.<=) pg_catalog.statement_timestamp()
    order by available_at, id limit {most} for update skip locked))
returning m.id, m.lock_token::pg_catalog.text as token, m.created_at at time zone 'utc' as created_at,
    m.message::pg_catalog.text as message, m.attempts, m.lock_expires_at at time zone 'utc' as expires_at

-- name: with_holder
-- Part of claim: what happens when the lock expires, and, for readers, who holds it.
release_expired = (m.attempts operator(pg_catalog.+) 1) operator(pg_catalog.<=) %(releases)s::integer,
    lock_holder = %(holder)s::pg_catalog.text

-- name: without_holder
-- Likewise in tables older than version 10.
release_expired = (m.attempts operator(pg_catalog.+) 1) operator(pg_catalog.<=) %(releases)s::integer

-- name: held_by
-- Part of expire: the holder, as it named itself when it claimed.
case when m.lock_token is not null and m.token_expires_at operator(pg_catalog.=) m.lock_expires_at
     then pg_catalog.left(m.lock_holder, 200) end

-- name: held_by_nobody_knows
-- Likewise in tables older than version 10.
null::pg_catalog.text

-- name: keeps_holders
-- By the catalog.
select exists (
    select from pg_catalog.pg_attribute
    where attrelid operator(pg_catalog.=) pg_catalog.to_regclass('messages.message') and attname operator(pg_catalog.=) 'lock_holder'
        and not attisdropped)

-- name: until
-- The end of a lock, in the original's form.
(pg_catalog.statement_timestamp() at time zone 'utc')
    operator(pg_catalog.+) (%(seconds)s::double precision operator(pg_catalog.*) interval '1 second')

-- name: is_held
-- By this token, and not locked without one since: an original worker takes over a message whose lock has expired.
m.lock_token operator(pg_catalog.=) held.token and m.token_expires_at operator(pg_catalog.=) m.lock_expires_at

-- name: is_over
-- By one clock, the database's.
m.lock_expires_at operator(pg_catalog.<=) (pg_catalog.statement_timestamp() at time zone 'utc')

-- name: renew
-- An expired lock is not renewed, even where nobody has noticed yet: it has ended.
update messages.message m set lock_expires_at = {until}, token_expires_at = {until}
from rows from (pg_catalog.unnest(%(ids)s::integer[]), pg_catalog.unnest(%(tokens)s::pg_catalog.uuid[])) as held (id, token)
where m.id operator(pg_catalog.=) held.id and {is_held} and not ({is_over})
returning m.lock_token::pg_catalog.text as token

-- name: finish
-- Deletes and archives together, or neither. After the lock's end, unless the message would be released, it ends as lock_expired.
with held as materialized (
    select * from rows from (
        pg_catalog.unnest(%(ids)s::integer[]), pg_catalog.unnest(%(tokens)s::pg_catalog.uuid[]),
        pg_catalog.unnest(%(results)s::pg_catalog.text[]), pg_catalog.unnest(%(details)s::pg_catalog.text[]),
        pg_catalog.unnest(%(types)s::pg_catalog.text[]), pg_catalog.unnest(%(exception_types)s::pg_catalog.text[]),
        pg_catalog.unnest(%(exception_messages)s::pg_catalog.text[]), pg_catalog.unnest(%(stack_traces)s::pg_catalog.text[])
    ) as held (id, token, said, details, message_type, exception_type, exception_message, stack_trace)
), gone as (
    delete from messages.message m using held
    where m.id operator(pg_catalog.=) held.id and {is_held}
    returning m.id, m.created_at, m.message, m.attempts, held.said, held.details, held.message_type, held.exception_type,
        held.exception_message, held.stack_trace, {is_over} and not m.release_expired as is_late
), ended as (
    select *, case when is_late then 'lock_expired' else said end as result from gone
), archived as (
    insert into messages.message_archive (
        created_at, archived_at, message, result, handled_by, details, kind, queue, message_id, message_type, exception_type,
        exception_message, stack_trace, endpoint, machine, attempts, sent_at)
    select created_at, pg_catalog.now() at time zone 'utc', message, result::public.message_status, %(handled_by)s::pg_catalog.text,
        case when is_late then pg_catalog.concat('Ended as ', said, ' when its lock was over. ', details) else details end,
        'lease', %(queue)s::pg_catalog.text, id::pg_catalog.text, message_type, exception_type, exception_message, stack_trace,
        %(handled_by)s::pg_catalog.text, %(machine)s::pg_catalog.text, attempts, created_at at time zone 'utc'
    from ended where %(archive_success)s::boolean or result operator(pg_catalog.<>) 'success'
    order by ended.id
    returning id, message_id
)
select ended.id, ended.result, archived.id as archive_id
from ended left join archived on archived.message_id operator(pg_catalog.=) ended.id::pg_catalog.text

-- name: release
-- Notifies others if it can be claimed at once; what is due later is found then. Not after an expiry that would archive it.
with held as materialized (
    select %(id)s::integer as id, %(token)s::pg_catalog.uuid as token
), released as (
    update messages.message m
    set lock_expires_at = null, token_expires_at = null, lock_token = null, release_expired = false,
        available_at = coalesce(%(at)s::pg_catalog.timestamptz, pg_catalog.statement_timestamp()
            operator(pg_catalog.+) (%(seconds)s::double precision operator(pg_catalog.*) interval '1 second'))
    from held where m.id operator(pg_catalog.=) held.id and {is_held} and (m.release_expired or not ({is_over}))
    returning m.id, m.available_at operator(pg_catalog.<=) pg_catalog.statement_timestamp() as is_due
)
select id, case when is_due then pg_catalog.pg_notify('new_message', id::pg_catalog.text) end from released

-- name: expire
-- One statement, on rows that it holds: deletes nothing that it did not archive, and nothing locked anew meanwhile.
-- Two at once share the rows. Foreign locks are archived; of ours the claim has said which are released.
with over as materialized (
    select m.id, m.release_expired and m.lock_token is not null
            and m.token_expires_at operator(pg_catalog.=) m.lock_expires_at as is_released
    from messages.message m where {is_over}
    order by m.lock_expires_at limit {most} for update skip locked
), gone as (
    delete from messages.message m using over
    where m.id operator(pg_catalog.=) over.id and over.is_released is not true
    returning m.id, m.created_at, m.message, m.attempts, m.lock_expires_at, {held_by} as held_by
), archived as (
    insert into messages.message_archive (
        created_at, archived_at, message, result, handled_by, details, kind, queue, message_id, attempts, sent_at)
    select created_at, pg_catalog.now() at time zone 'utc', message, 'lock_expired', %(handled_by)s::pg_catalog.text,
        pg_catalog.concat('Its lock was over at ', pg_catalog.to_char(lock_expires_at, 'YYYY-MM-DD HH24:MI:SS.MS'), ' UTC.',
            ' It was held by ' operator(pg_catalog.||) held_by operator(pg_catalog.||) '.'),
        'lease', %(queue)s::pg_catalog.text, id::pg_catalog.text, attempts, created_at at time zone 'utc'
    from gone order by gone.id
    returning id
), released as (
    update messages.message m
    set lock_expires_at = null, token_expires_at = null, lock_token = null, release_expired = false,
        available_at = pg_catalog.statement_timestamp()
    from over where m.id operator(pg_catalog.=) over.id and over.is_released
    returning m.id
), told as materialized (
    select pg_catalog.pg_notify('new_message', id::pg_catalog.text) from released
)
select (select pg_catalog.count(*) from archived) as archived, (select pg_catalog.count(*) from told) as released

-- name: renotify
-- Goes round by id, so that each has its turn however many there are; a concurrent call leaves it to this one. The rows of
-- the last minute too: one NOTIFY too many is nothing, one too few waits.
with place as materialized (
    select after from messages.notify_round for update skip locked
), waiting as materialized (
    (select m.id, 1 as turn from messages.message m, place
     where m.id operator(pg_catalog.>) place.after and {waits} order by m.id limit {most})
    union all
    (select m.id, 2 from messages.message m, place
     where m.id operator(pg_catalog.<=) place.after and {waits} order by m.id limit {most})
), told as materialized (
    select id, turn from waiting order by turn, id limit {most}
), moved as (
    update messages.notify_round set after = coalesce(
        (select id from told order by turn desc, id desc limit 1), 0)
    where exists (select from place)
)
select pg_catalog.count(pg_catalog.pg_notify('new_message', id::pg_catalog.text)) from told

-- name: waits
-- What a worker could claim now.
m.lock_expires_at is null and m.available_at operator(pg_catalog.<=) pg_catalog.statement_timestamp()

-- name: outlook
-- All that an idle worker has to know, by the first entry of each of the two indexes that claim and expire walk.
select
    (select (extract(epoch from available_at operator(pg_catalog.-) pg_catalog.statement_timestamp()))::double precision
     from messages.message where lock_expires_at is null order by available_at, id limit 1) as claim_in,
    (select (extract(epoch from lock_expires_at
        operator(pg_catalog.-) (pg_catalog.statement_timestamp() at time zone 'utc')))::double precision
     from messages.message where lock_expires_at is not null order by lock_expires_at limit 1) as expire_in

-- name: ask_for_dead
-- Once for ever: a trigger keeps messages that die from then on.
insert into messages.dead_consumer default values on conflict do nothing

-- name: claim_dead
-- Each to one of the concurrent callers. A caller that is killed gives nothing back: the message is due again at its time.
with due as materialized (
    select archive_id from messages.dead_delivery
    where available_at operator(pg_catalog.<=) pg_catalog.statement_timestamp()
    order by available_at limit {most} for update skip locked
), claimed as (
    update messages.dead_delivery d set given = d.given operator(pg_catalog.+) 1,
        available_at = pg_catalog.statement_timestamp()
            operator(pg_catalog.+) (%(seconds)s::double precision operator(pg_catalog.*) interval '1 second')
    from due where d.archive_id operator(pg_catalog.=) due.archive_id
    returning d.archive_id, d.given
)
select c.archive_id, c.given, a.message::pg_catalog.text as message, a.message_id, a.result::pg_catalog.text as result, a.details,
    a.exception_type, a.exception_message, a.handled_by, a.attempts,
    a.created_at at time zone 'utc' as created_at, a.archived_at at time zone 'utc' as archived_at
from claimed c left join messages.message_archive a on a.id operator(pg_catalog.=) c.archive_id

-- name: end_dead
-- For whichever handler has handled it, be it the second time.
delete from messages.dead_delivery where archive_id operator(pg_catalog.=) %(id)s::integer

-- name: delay_dead
-- After a failure.
update messages.dead_delivery set available_at = pg_catalog.statement_timestamp()
    operator(pg_catalog.+) (%(seconds)s::double precision operator(pg_catalog.*) interval '1 second')
where archive_id operator(pg_catalog.=) %(id)s::integer

-- name: dead_due_in
-- All that an idle handler of the dead has to know.
select (extract(epoch from available_at operator(pg_catalog.-) pg_catalog.statement_timestamp()))::double precision
from messages.dead_delivery order by available_at limit 1

-- name: seen
-- Identifies a message's lock, differently from all others: ours by its token, which a renewal keeps; an original
-- client's by its end; no lock is empty. For tables of the original by the end alone.
coalesce(case when m.token_expires_at operator(pg_catalog.=) m.lock_expires_at then m.lock_token::pg_catalog.text end,
    extract(epoch from m.lock_expires_at)::pg_catalog.text, '')

-- name: release_seen
-- By hand: only with the lock that the person saw. A row that is being changed at this moment is skipped.
with held as materialized (
    select m.id from messages.message m
    where m.id operator(pg_catalog.=) %(id)s::integer and m.lock_expires_at is not null
        and {seen} operator(pg_catalog.=) %(seen)s::pg_catalog.text
    for update skip locked
), released as (
    update messages.message m
    set lock_expires_at = null, token_expires_at = null, lock_token = null, release_expired = false,
        available_at = pg_catalog.statement_timestamp()
    from held where m.id operator(pg_catalog.=) held.id
    returning m.id
)
select id, pg_catalog.pg_notify('new_message', id::pg_catalog.text) from released

-- name: end_seen
-- By hand: deletes and archives together, only with the lock that the person saw, or none. The archive names the person.
with held as materialized (
    select m.id from messages.message m
    where m.id operator(pg_catalog.=) %(id)s::integer and {seen} operator(pg_catalog.=) %(seen)s::pg_catalog.text
    for update skip locked
), gone as (
    delete from messages.message m using held where m.id operator(pg_catalog.=) held.id
    returning m.id, m.created_at, m.message, m.attempts,
        coalesce(m.message operator(pg_catalog.->) 'kind', m.message operator(pg_catalog.->) 0) as kind
), archived as (
    insert into messages.message_archive (
        created_at, archived_at, message, result, handled_by, details, kind, queue, message_id, message_type, attempts, sent_at)
    select created_at, pg_catalog.now() at time zone 'utc', message, %(result)s::public.message_status,
        %(handled_by)s::pg_catalog.text, %(details)s::pg_catalog.text, 'lease', %(queue)s::pg_catalog.text, id::pg_catalog.text,
        case when pg_catalog.jsonb_typeof(kind) operator(pg_catalog.=) 'string'
             then pg_catalog.left(kind operator(pg_catalog.#>>) '{{}}', 500) end,
        attempts, created_at at time zone 'utc'
    from gone
    returning id
), noted as (
    insert into messages.archive_event (archive_id, who, verb, target)
    select id, %(who)s::pg_catalog.text, 'ended', %(queue)s::pg_catalog.text from archived
)
select id from archived

-- name: seen_now
-- Why nothing was done: it has ended, or somebody else has locked it.
select {seen} as seen from messages.message m where m.id operator(pg_catalog.=) %(id)s::integer
