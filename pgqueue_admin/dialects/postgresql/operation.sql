-- name: freeze_matching
-- One statement fixes the set: messages that die later are not in it.
insert into messages.operation_item (operation, position, archive_id, queue)
select %(operation_id)s, row_number() over (order by a.died_at, a.seq), a.id, a.queue
from messages.message_archive a where {matches}

-- name: freeze_ids
-- The selected messages, oldest first; ids that are not in the archive are left out.
insert into messages.operation_item (operation, position, archive_id, queue)
select %(operation_id)s, row_number() over (order by a.died_at, a.seq), a.id, a.queue
from messages.message_archive a where a.id = any (%(ids)s::integer[])

-- name: freeze_sent
-- What a retry has sent and nobody has acted on since, unless its row was seen to have left; in the retry's order.
insert into messages.operation_item (operation, position, archive_id, queue)
select %(operation_id)s, row_number() over (order by i.position), a.id, i.target
from messages.operation_item i join messages.message_archive a on a.id = i.archive_id
where i.operation = %(source)s and i.sent_as is not null and i.left_at is null and i.outcome = 'done'
  and a.state = 'retried' and a.operation = i.operation

-- name: taken_back
-- Operations of which messages were taken back while they waited: their figures have changed.
-- An edited message is found by the row that it was retried from, whose end was recorded with the act.
select distinct operation from messages.operation_item
where outcome = 'skipped' and archive_id = any (array(
    select unnest(%(ids)s::integer[])
    union select e.archive_id from messages.archive_event e where e.verb = 'died again' and e.xid = any (array(
        select distinct n.xid from messages.archive_event n
        where n.archive_id = any (%(ids)s::integer[]) and n.verb in ('discarded', 'moved out')))))

-- name: queues
-- The size of the frozen set by queue: what the confirmation shows.
select queue, count(*) as count from messages.operation_item where operation = %(operation_id)s
group by queue order by count desc, queue

-- name: counts
-- An operation's progress is counted from its items, never from what a process remembered.
select count(*) as count, count(*) filter (where outcome is null) as open,
    count(*) filter (where outcome = 'done') as done, count(*) filter (where outcome = 'skipped') as skipped,
    count(*) filter (where outcome = 'failed') as failed
from messages.operation_item where operation = %(operation_id)s

-- name: next_chunk
-- Two workers on one operation take different items; a killed worker's items come back with the rollback.
-- Limited by the size of the headers that a chunk may read, with at least one message; near: how many were available.
-- until: the last position of its stage, as items that another worker has locked are skipped.
with near as materialized (
    select position, archive_id from messages.operation_item
    where operation = %(operation_id)s and outcome is null and position <= %(until)s and {is_here}
    order by position limit %(limit)s for update skip locked
)
select position, archive_id, near from (
    select n.position, n.archive_id, count(*) over () as near, row_number() over up_to as nth,
        sum(octet_length(a.headers)) over up_to as read
    from near n left join messages.message_archive a on a.id = n.archive_id
    window up_to as (order by n.position rows unbounded preceding)
) chunk where nth = 1 or read is null or read <= %(most)s order by nth

-- name: is_here
-- Part of next_chunk and next_position: not on its way into another database by this operation.
not exists (
    select from messages.crossing_put p join messages.crossing c on c.id = p.crossing
    where p.archive_id = operation_item.archive_id and c.operation = operation_item.operation)

-- name: all_are_here
-- In its place, where the engine's tables are older than crossings.
true

-- name: begin_chunk
-- Released when the chunk's transaction ends, however it ends: until then others see that a chunk runs.
select pg_advisory_xact_lock_shared(hashtext('pgqueue operation'), %(operation_id)s::integer)

-- name: in_hand
-- Whether a chunk runs now; makes nobody wait.
select exists (
    select from pg_catalog.pg_locks l
    where l.locktype = 'advisory'
      and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
      and l.classid::int8 = hashtext('pgqueue operation')::int8 & 4294967295
      and l.objid::int8 = %(operation_id)s
      and l.objsubid = 2
)

-- name: look_up_each
-- Before record, for the rest of its transaction.
-- The planner has no statistics of a new operation and expects few rows, of any outcome: it would read the whole set
-- for each chunk, and a hundred thousand messages would take all day.
select set_config('enable_seqscan', 'off', true) as seqscan, set_config('enable_hashjoin', 'off', true) as hashjoin,
    set_config('enable_mergejoin', 'off', true) as mergejoin

-- name: record
-- The outcome of each message, in the transaction that acted on it; sent_too: where the tables have that column.
-- The operation is repeated beside each message, and the outcome is tested in a case, so that no index of either tempts
-- the planner.
update messages.operation_item i
set outcome = o.outcome, why = o.why, previous_actor = o.previous_actor, previous_at = o.previous_at, target = o.target,
    at = clock_timestamp(){sent_too}
from (
    select %(operation_id)s::bigint as operation, chunk.*
    from unnest(%(ids)s::integer[], %(outcomes)s::text[], %(whys)s::text[], %(whos)s::text[], %(whens)s::timestamptz[],
                %(targets)s::text[], %(sent_as)s::text[])
        as chunk (archive_id, outcome, why, previous_actor, previous_at, target, sent_as)
    offset 0
) o
where i.operation = o.operation and i.archive_id = o.archive_id and case when i.outcome is null then true end

-- name: sent_too
-- Part of record: the row of its target as which a message was retried.
, sent_as = o.sent_as

-- name: nothing_sent
-- Likewise, in tables older than version 7, which lack the column.
/* none */

-- name: next_position
-- The first item that is not acted on; null: there is none. By the index of those.
select position from messages.operation_item where operation = %(operation_id)s and outcome is null and {is_here}
order by position limit 1

-- name: tried
-- The state of the trial, by the clock of the database that recorded it: how many were sent, how many of these wait in
-- their target, and how many seconds ago the last was acted on.
select count(*) filter (where i.outcome = 'done') as sent,
    count(*) filter (where i.outcome = 'done' and i.left_at is null and a.state = 'retried' and a.operation = i.operation)
        as waiting,
    extract(epoch from clock_timestamp() - max(i.at))::float8 as seconds
from messages.operation_item i left join messages.message_archive a on a.id = i.archive_id
where i.operation = %(operation_id)s and i.position <= %(last)s

-- name: since_last
-- How many seconds ago the last message was acted on, by the clock that recorded it.
select extract(epoch from clock_timestamp() - max(at))::float8
from messages.operation_item where operation = %(operation_id)s

-- name: sent_waiting
-- A page of items that were sent and not seen to have left, by position: no process holds them all.
select position, sent_as, target from messages.operation_item
where operation = %(operation_id)s and sent_as is not null and left_at is null and position > %(after)s
order by position limit %(limit)s

-- name: still_there
-- Which of these rows are in the queue: a read that takes nothing and waits for nobody.
select q.id::text from {table} q where q.id = any (%(ids)s::uuid[])

-- name: still_in_lease_queue
-- Likewise lease messages, whose rows have numbers.
select m.id::text from messages.message m where m.id = any (%(ids)s::text[]::integer[])

-- name: left
-- Marks items as seen to have left, once.
update messages.operation_item set left_at = clock_timestamp()
where operation = %(operation_id)s and position = any (%(positions)s::integer[]) and left_at is null

-- name: deaths
-- What stops a staged retry: how many of the trial died again, and the most deaths among a number of messages sent one
-- after another, in all or to one queue: among those of other queues a queue's own deaths would be too few. Deaths up
-- to a position no longer count, once a person has seen them and went on.
with sent as (
    select i.position, a.queue, row_number() over (order by i.position) as nth,
        row_number() over (partition by a.queue order by i.position) as nth_of_queue,
        coalesce(a.state = 'dead_again' and a.operation = i.operation, false) as died
    from messages.operation_item i left join messages.message_archive a on a.id = i.archive_id
    where i.operation = %(operation_id)s and i.outcome = 'done' and i.position > %(judged_from)s
)
select count(*) filter (where position <= %(tried)s) as of_the_tried, coalesce(max(greatest(number, of_queue)), 0) as worst,
    coalesce(max(of_queue), 0) > coalesce(max(number), 0) as is_of_one_queue
from (
    select position, count(*) over (order by nth range between %(others)s::bigint preceding and current row) as number,
        count(*) over (partition by queue order by nth_of_queue range between %(others)s::bigint preceding and current row) as of_queue
    from sent where died
) died

-- name: known_as
-- Part of tally and items_of_class: what is known of a message by now.
-- Picked up by an endpoint that never reports: not known, whatever is likely. An endpoint of ours is waited for until
-- the time is over. For a message that has left the archive its events still tell.
case
    when i.outcome is null then 'open'
    when i.outcome <> 'done' then i.outcome
    when a.id is null then coalesce((
        select case e.verb when 'succeeded' then 'succeeded' else 'dead' end from messages.archive_event e
        where e.archive_id = i.archive_id and e.operation = i.operation and e.verb in ('succeeded', 'died again')
        order by e.id desc limit 1), 'unknown')
    when a.operation is distinct from i.operation then 'unknown'
    when a.state = 'succeeded' then 'succeeded'
    when a.state = 'dead_again' then case
        when again.fingerprint is null or a.fingerprint is null then 'dead'
        when again.fingerprint = a.fingerprint then 'same' else 'other' end
    when a.state <> 'retried' then 'unknown'
    when i.left_at is null then 'sent'
    when a.retry_token is null and a.kind <> 'lease' or i.left_at < now() - %(patience)s::interval then 'unknown'
    else 'picked'
end

-- name: edited_id
-- Part of with_class: the id of the message sent edited, as message_edit.new_id makes it; null if none is edited.
substr(encode(sha256(convert_to(%(seed)s::text || ':' || a.id, 'UTF8')), 'hex'), 1, 32)::uuid::text

-- name: with_class
-- Part of tally and items_of_class: the item, its message, and the death that followed, which was archived in the
-- transaction that recorded it on the former row. An operation may have 100,000 events, a message has a few: the index
-- is on these.
messages.operation_item i
left join messages.message_archive a on a.id = i.archive_id
left join lateral (
    select n.id, n.fingerprint, n.exception_type, n.exception_message
    from messages.archive_event e join messages.message_archive n
        on n.message_id = case a.kind when 'lease' then a.retried_as::text else coalesce({edited_id}, a.message_id) end
        and n.xid = e.xid and n.id <> a.id
    where e.archive_id = a.id and e.verb = 'died again' and e.operation is not distinct from i.operation
    order by n.id limit 1
) again on i.outcome = 'done' and a.state = 'dead_again'

-- name: tally
-- Where each message of a staged retry stands, counted by stage.
select case when i.position <= %(tried)s then 'try' when i.position <= %(some)s then 'some' else 'rest' end as stage,
    {known_as} as what, count(*) as count, min(i.left_at) as first_left_at
from {with_class}
where i.operation = %(operation_id)s
group by 1, 2

-- name: items_of_class
-- A page of the set, by position, of the classes that are asked for.
select * from (
    select i.position, i.archive_id, i.queue, i.outcome, i.why, i.previous_actor, i.previous_at, i.target, i.at, i.left_at,
        a.state, a.message_type, a.message_id, a.exception_type, a.died_at, a.resolved_by, a.resolved_at, a.ended_at,
        a.operation as last_operation, a.retry_token is not null or a.kind = 'lease' as is_told,
        again.id as again_id, again.exception_type as again_type, left(again.exception_message, 400) as again_message,
        {known_as} as what
    from {with_class}
    where i.operation = %(operation_id)s and i.position > %(after)s and i.archive_id > 0
) item
where %(classes)s::text[] is null or what = any (%(classes)s::text[])
order by position limit %(limit)s

-- name: items
-- A page of the frozen set with each message's outcome and its state since; by position, and by outcome if asked, or by
-- the state that followed from this operation.
select i.position, i.archive_id, i.queue, i.outcome, i.why, i.previous_actor, i.previous_at, i.target, i.at,
    a.state, a.message_type, a.message_id, a.exception_type, a.died_at, a.resolved_by, a.resolved_at,
    a.operation as last_operation
from messages.operation_item i left join messages.message_archive a on a.id = i.archive_id
where i.operation = %(operation_id)s and i.position > %(after)s and i.archive_id > 0
  and (%(outcome)s::text is null or coalesce(i.outcome, 'open') = %(outcome)s
       or i.outcome = 'done' and a.operation = i.operation and a.state = %(outcome)s)
order by i.position limit %(limit)s

-- name: samples
-- Some of the set, for the preview: read by position, however large the set is.
select i.position, i.archive_id, i.queue, a.message_type, a.exception_type, a.died_at
from messages.operation_item i left join messages.message_archive a on a.id = i.archive_id
where i.operation = %(operation_id)s and i.position = any (%(positions)s::integer[])
order by i.position

-- name: to_edit
-- A page of what a retry of the frozen set would send, to preview an edit: limited by the size of the headers that a
-- page may read, with at least one message. Bodies are read apart, few at once.
with near as materialized (
    select i.position, a.id, a.kind, a.message_type, a.headers, octet_length(a.body) as body_bytes
    from messages.operation_item i join messages.message_archive a on a.id = i.archive_id
    where i.operation = %(operation_id)s and i.outcome is null and i.position > %(after)s and a.state = %(state)s
    order by i.position limit %(limit)s
)
select position, id, kind, message_type, headers, body_bytes from (
    select n.*, row_number() over up_to as nth, sum(octet_length(n.headers)) over up_to as read
    from near n window up_to as (order by n.position rows unbounded preceding)
) page where nth = 1 or read is null or read <= %(most)s order by position

-- name: set_targets
-- Where a retry of the frozen set would put its messages, and how many of them; also the queues where they died and
-- their types, by which rules apply. What can be put nowhere, whatever exists, is not fit; what names no queue can be
-- put where a rule says. Messages that somebody else has acted on since are not put back.
select case a.kind when 'lease' then 'messages' else a.target_schema end as schema,
    case a.kind when 'lease' then 'message' else a.target_table end as "table",
    a.kind, a.queue, a.message_type, a.retry_blocked_reason is null and a.body is not null or a.kind = 'lease' as is_fit, count(*) as count
from messages.operation_item i join messages.message_archive a on a.id = i.archive_id
where i.operation = %(operation_id)s and i.outcome is null and a.state = %(state)s
group by 1, 2, 3, 4, 5, 6 order by 7 desc, 1, 2

-- name: targets
-- What a retry into each address would meet, by the catalog alone: no statement reads the table, so no foreign code runs.
select asked.schema, asked."table", current_user::text as role, shape.columns,
    exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary) as has_primary_key,
    (select d.refobjid::regclass::text from pg_depend d
     where d.classid = 'pg_attrdef'::regclass and d.refclassid = 'pg_class'::regclass
       and d.objid = (select f.oid from pg_attrdef f join pg_attribute a on a.attrelid = f.adrelid and a.attnum = f.adnum
                      where f.adrelid = c.oid and a.attname = 'seq')
       and (select relkind from pg_class where oid = d.refobjid) = 'S'
     union all
     select a.attname from pg_attribute a
     where a.attrelid = c.oid and a.attname = 'seq' and a.attidentity <> '' limit 1) as sequence,
    has_schema_privilege(n.oid, 'usage') and not exists (
        select from pg_attribute a
        where a.attrelid = c.oid and a.attname = any (written.columns)
          and not has_column_privilege(c.oid, a.attnum, 'insert')
    ) and not exists (
        select from pg_depend d join pg_attrdef f on f.oid = d.objid
        where d.classid = 'pg_attrdef'::regclass and d.refclassid = 'pg_class'::regclass and f.adrelid = c.oid
          and case (select relkind from pg_class where oid = d.refobjid) when 'S'
              then not has_sequence_privilege(d.refobjid, 'usage, update') end
    ) as may_insert,
    (select array_agg(a.attname::text order by a.attnum) from pg_attribute a
     where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       and case when a.attname = any (written.columns) then a.attgenerated <> '' or a.attidentity = 'a'
                else a.attnotnull and not a.atthasdef and a.attidentity = '' end) as must_have,
    row_security_active(c.oid) and not exists (
        select from pg_policy p
        where p.polrelid = c.oid and p.polcmd in ('a', '*') and p.polpermissive
          and exists (select from unnest(p.polroles) r (oid) where r.oid = 0 or pg_has_role(r.oid, 'usage'))
    ) as is_closed,
    code.runs
from unnest(%(schemas)s::text[], %(tables)s::text[]) as asked (schema, "table")
left join pg_namespace n on n.nspname = asked.schema
left join pg_class c on c.relnamespace = n.oid and c.relname = asked."table" and c.relkind in ('r', 'p')
left join lateral (
    select jsonb_object_agg(a.attname, format_type(a.atttypid, null)) as columns
    from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
) shape on true
cross join lateral (
    select case when shape.columns ?& array['message', 'lock_expires_at'] then array['created_at', 'message', 'retried_from']
                else array['id', 'expires', 'headers', 'body'] end as columns
) written
left join lateral ({runs_as_ours}) code on true

-- name: runs_as_ours
-- Part of targets and would_run, and of schema.send_scheduled: what of other roles runs as ours with these acts on a table c (4 insert,
-- 8 delete, 16 update), by the catalog alone. Triggers and rules; and functions, operators and domains that defaults, generated columns,
-- checks, indexes, partition keys, policies and types of columns lead to. To a domain its owner adds a check when he likes, and
-- to a type of his a cast.
with recursive family as (
    select array(select c.oid union select relid from pg_partition_tree(c.oid)) as oids
), reached as (
    select part.what, part.name, part.classid::oid as classid, part.objid
    from family cross join lateral (
        select 'default of column' as what, a.attname as name, 'pg_attrdef'::regclass as classid, f.oid as objid
        from pg_attrdef f join pg_attribute a on a.attrelid = f.adrelid and a.attnum = f.adnum
        where f.adrelid = any (family.oids)
        union all
        select 'check', k.conname, 'pg_constraint'::regclass, k.oid from pg_constraint k where k.conrelid = any (family.oids)
        union all
        select 'index', x.relname, 'pg_class'::regclass, i.indexrelid
        from pg_index i join pg_class x on x.oid = i.indexrelid where i.indrelid = any (family.oids)
        union all
        select 'partition key', x.relname, 'pg_class'::regclass, x.oid
        from pg_class x where x.oid = any (family.oids) and x.relkind = 'p'
        union all
        select 'policy', y.polname, 'pg_policy'::regclass, y.oid
        from pg_policy y where y.polrelid = c.oid and row_security_active(c.oid)
        union all
        select 'type of column', a.attname, 'pg_type'::regclass, a.atttypid
        from pg_attribute a where a.attrelid = any (family.oids) and a.attnum > 0 and a.atttypid >= 16384
    ) part
    union
    select reached.what, reached.name, further.classid, further.objid
    from reached left join pg_type t on reached.classid = 'pg_type'::regclass and t.oid = reached.objid
    cross join lateral (
        select d.refclassid as classid, d.refobjid as objid from pg_depend d
        where d.classid = reached.classid and d.objid = reached.objid and case d.refclassid
            when 'pg_proc'::regclass then coalesce(t.typtype, 'd') = 'd'
            when 'pg_operator'::regclass then true
            when 'pg_type'::regclass then true
            when 'pg_class'::regclass then t.oid is not null end
        union all -- as a list, of which the planner expects few
        select 'pg_constraint'::regclass, of_domain
        from unnest(array(select k.oid from pg_constraint k where k.contypid = t.oid)) as of_domain
    ) further
    -- these and not the other two; and any number: of both the planner expects few, and compiles nothing that runs for a millisecond
    where reached.classid = any (array['pg_attrdef'::regclass, 'pg_constraint'::regclass, 'pg_class'::regclass,
        'pg_policy'::regclass, 'pg_type'::regclass]::oid[]) and reached.objid between 1 and 4294967295
)
select array_agg(distinct concat(what, ' ', quote_ident(name), ' of role ', quote_ident(pg_get_userbyid(owner)))) as runs
from (
    select 'trigger' as what, t.tgname as name, p.proowner as owner
    from family join pg_trigger t on t.tgrelid = any (family.oids) join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and t.tgenabled in ('O', 'A') and t.tgtype & {acts} <> 0 and not p.prosecdef
    union all
    select 'rule', r.rulename, c.relowner from pg_rewrite r
    where r.ev_class = c.oid and r.ev_enabled <> 'D' and r.rulename <> '_RETURN'
      and case r.ev_type when '3' then 4 when '4' then 8 when '2' then 16 else 28 end & {acts} <> 0
    union all
    select reached.what, reached.name, case reached.classid
        when 'pg_proc'::regclass then (select p.proowner from pg_proc p where p.oid = reached.objid)
        when 'pg_operator'::regclass then (select o.oprowner from pg_operator o where o.oid = reached.objid)
        else (select t.typowner from pg_type t where t.oid = reached.objid and t.typtype = 'd' and t.oid >= 16384) end
    from reached
    where reached.classid = any (array['pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass]::oid[])
    union all
    select 'type of column', a.attname, t.typowner from pg_attribute a join pg_type t on t.oid = a.atttypid
    where a.attrelid = c.oid and t.oid >= 16384
      and a.attname in ('id', 'expires', 'headers', 'body', 'created_at', 'message')
) found
where owner <> (select u.oid from pg_roles u where u.rolname = current_user) and not {is_engines}

-- name: is_engines
-- Part of runs_as_ours: the owner of the engine's tables made what is attached to them, and its functions run in any case.
exists (
    select from pg_class e join pg_namespace s on s.oid = e.relnamespace and s.nspname = 'messages'
    where e.relnamespace = c.relnamespace and e.relname in (c.relname, 'engine_schema') and e.relowner = found.owner
      and c.relname in ('message', 'message_archive', 'archive_event'))

-- name: of_kind
-- Part of would_run and of schema.send_scheduled: anything but a table runs the code of its owner.
case when c.relkind in ('r', 'p') then code.runs else array[concat(
    case c.relkind when 'f' then 'foreign table' else 'view' end, ' ', quote_ident(c.relname), ' of role ',
    quote_ident(pg_get_userbyid(c.relowner)))] end

-- name: hold_table
-- As a writer locks it: nobody adds a trigger or swaps the table until our commit, which no row lock prevents, and no
-- other writer waits.
lock table {table} in row exclusive mode

-- name: would_run
-- For one table; acts as in runs_as_ours.
select {of_kind} from pg_class c join pg_namespace n on n.oid = c.relnamespace cross join lateral ({runs_as_ours}) code
where n.nspname = %(schema)s and c.relname = %(name)s

-- name: not_done
-- Outcomes other than done, and open items, for a person who reads the result at a prompt.
select i.archive_id, i.queue, i.outcome, i.why, i.previous_actor, i.previous_at, i.target, a.state
from messages.operation_item i left join messages.message_archive a on a.id = i.archive_id
where i.operation = %(operation_id)s and i.outcome is distinct from 'done' and i.archive_id > 0
order by i.position

-- name: states
-- The states of the frozen messages up to now: retried, succeeded, dead again, still dead. of_this: how many of these
-- this operation acted on, and nobody has since.
select coalesce(a.state, 'gone') as state, count(*) as count,
    count(*) filter (where i.outcome = 'done' and a.operation = i.operation) as of_this
from messages.operation_item i left join messages.message_archive a on a.id = i.archive_id
where i.operation = %(operation_id)s and i.archive_id > 0
group by 1 order by 2 desc

-- name: made_of
-- The whole frozen set, and apart by type and by cause, for the preview: a row per name, not per combination.
select case grouping(a.message_type, a.exception_type) when 3 then 'all' when 1 then 'type' else 'cause' end as what,
    coalesce(a.message_type, a.exception_type) as name, count(*) as count, min(a.died_at) as oldest_at,
    max(a.died_at) as newest_at
from messages.operation_item i left join messages.message_archive a on a.id = i.archive_id
where i.operation = %(operation_id)s
group by grouping sets ((), (a.message_type), (a.exception_type))

-- name: causes
-- Whether the set's causes still occur: its most frequent causes, by the index of fingerprints, and their deaths since
-- a time, also those in the set; deaths dated later than now do not count.
with cause as materialized (
    select a.fingerprint, count(*) as number
    from messages.operation_item i join messages.message_archive a on a.id = i.archive_id
    where i.operation = %(operation_id)s and a.fingerprint is not null
    group by a.fingerprint order by 2 desc limit %(most)s
)
select array(select fingerprint from cause order by number desc) as fingerprints,
    count(died.died_at) filter (where died.died_at > now() - interval '1 hour') as in_an_hour,
    count(died.died_at) filter (where died.died_at >= %(mark_at)s::timestamptz) as since_mark,
    greatest(max(died.died_at), '0001-01-02') as last_at
from cause cross join lateral (
    select a.died_at from messages.message_archive a
    where a.fingerprint = cause.fingerprint and a.died_at <= now()
      and a.died_at > least(now() - interval '1 hour', %(mark_at)s::timestamptz)
    union all
    (select a.died_at from messages.message_archive a
     where a.fingerprint = cause.fingerprint and a.died_at <= least(now() - interval '1 hour', %(mark_at)s::timestamptz)
     order by a.died_at desc limit 1)
) died

-- name: changed
-- Frozen messages that somebody else has acted on since the freeze.
select count(*) as count, max(a.resolved_by) as who
from messages.operation_item i join messages.message_archive a on a.id = i.archive_id
where i.operation = %(operation_id)s and i.outcome is null and a.state <> %(state)s

-- name: forget
-- A frozen set that was never started is deleted but for its first position, which names no message any more: it
-- reserves the number against other consoles, whose messages would be taken for those of this operation.
with dropped as (
    delete from messages.operation_item where operation = %(operation_id)s and outcome is null and position > 1
)
update messages.operation_item set archive_id = 0, queue = null, outcome = 'skipped', why = 'Never started.'
where operation = %(operation_id)s and outcome is null and position = 1

-- name: outcome
-- Waits for a session that has the item locked, so that the answer is its outcome and not that there is none yet.
select archive_id, outcome, why, previous_actor, previous_at, target, operation from messages.operation_item
where operation = %(operation_id)s and archive_id = %(archive_id)s for update

-- name: highest
-- Sets are stored beside the queues, their numbers come from the console's database: a new console begins at 1 again.
select coalesce(max(operation), 0) from messages.operation_item

-- name: pass_over
-- On the console's database: the next operation gets a number above these.
-- Numbers are drawn one by one, which a role with USAGE may do; setting the sequence needs UPDATE, and could go back
-- where two do so at once.
with next as materialized (
    select s.name, nextval(s.name) as number from (select pg_get_serial_sequence(%(table)s, 'id')::regclass as name) s
)
select count(nextval(next.name)) from next, generate_series(next.number + 1, %(highest)s::bigint)
