-- name: create
-- As the original's script makes it, and CreatedAt: nothing else tells how long a record waits.
create table if not exists {table} (
    "MessageId" varchar(200) not null primary key,
    "Dispatched" boolean not null default false,
    "DispatchedAt" timestamp without time zone,
    "PersistenceVersion" varchar(23),
    "Operations" jsonb not null,
    "CreatedAt" timestamp with time zone default now()
)

-- name: add_key
-- One record per message.
alter table {table} add primary key ("MessageId")

-- name: indexes
-- Leading columns of its indexes: the original's index names repeat in each table of a schema, so all but one lack theirs.
select distinct a.attname::text as name
from pg_index i
join pg_class c on c.oid = i.indrelid
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
where n.nspname = %(schema)s and c.relname = %(name)s and i.indisvalid

-- name: create_index
-- Named after the table.
create index if not exists {index} on {table} ({column})

-- name: columns
-- The table's columns, from the catalog.
select a.attname::text as name, format_type(a.atttypid, a.atttypmod) as type,
       exists (select from pg_index i where i.indrelid = c.oid and i.indkey[0] = a.attnum
               and i.indnkeyatts = 1 and i.indisunique and i.indisvalid and i.indpred is null) as is_unique
from pg_attribute a
join pg_class c on c.oid = a.attrelid
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relname = %(name)s and a.attnum > 0 and not a.attisdropped

-- name: find
-- The first query for each message: was it handled before, and what of it was not sent.
select "MessageId"::pg_catalog.text as id, "Dispatched" as dispatched, "Operations"::pg_catalog.text as operations
from {table} where "MessageId" operator(pg_catalog.=) %(id)s::pg_catalog.text

-- name: store
-- Waits a while for an uncommitted insert of the same id; the lock timeout is restored for the handlers' statements.
-- In a database other than the queues' it is on disk before its message is gone: what a crash forgot would be lost. A
-- record that a trigger or a policy leaves out fails here: without it the effects would come twice, and the sends
-- never.
with waits as materialized (
    select pg_catalog.current_setting('lock_timeout') as before,
           pg_catalog.set_config('lock_timeout', %(wait)s, true) as now,
           case when %(durable)s::pg_catalog.bool and pg_catalog.current_setting('synchronous_commit')
               operator(pg_catalog.=) 'off' then pg_catalog.set_config('synchronous_commit', 'on', true) end as durable
), written as (
    insert into {table} ("MessageId", "Operations", "PersistenceVersion")
    select %(id)s, %(operations)s::pg_catalog.jsonb, %(version)s from waits where now is not null
    returning (select pg_catalog.set_config('lock_timeout', before, true) from waits)
)
select {is_written} as once from written

-- name: complete
-- Pessimistic: the record exists already, and no other session can have it.
with written as (
    update {table} set "Operations" = %(operations)s::pg_catalog.jsonb
    where "MessageId" operator(pg_catalog.=) %(id)s::pg_catalog.text
    returning 1
)
select {is_written} as once from written

-- name: is_written
-- The text is no number: the cast fails, and the server's error quotes it.
(case when pg_catalog.count(*) operator(pg_catalog.>) 0 then '1'
    else 'the table took no record of the message; a trigger or a policy of it leaves rows out' end)::pg_catalog.int4

-- name: mark
-- Once: a record that the relay marked meanwhile divides by zero, and what this transaction sends is not sent.
-- A duplicate never gets here, so the time for which a record is kept does not slide.
with marked as (
    update {table}
    set "Dispatched" = true, "DispatchedAt" = (pg_catalog.clock_timestamp() at time zone 'utc'), "Operations" = '[]'
    where "MessageId" operator(pg_catalog.=) %(id)s::pg_catalog.text and not "Dispatched"
    returning 1
)
select 1 operator(pg_catalog./) pg_catalog.count(*) as once from marked

-- name: before_mark
-- A transaction of its own that marks has sent by the time of its commit.
-- At serializable the commit may be refused because of what others read: all would be sent again.
set transaction isolation level read committed

-- name: work
-- One check a minute, by both indexes.
-- The oldest record is read: a search for any that is over would start at the table's beginning, where statistics say
-- that many are. The lock belongs to the session: a killed leader loses it.
select pg_try_advisory_lock(hashtextextended('pgqueue outbox ' || %(table)s, 0)) as leads,
       exists (
        select from (
            select "DispatchedAt" as at from {table} where "DispatchedAt" is not null order by "DispatchedAt" limit 1
        ) as oldest
        where oldest.at < (statement_timestamp() at time zone 'utc') - %(keep)s * interval '1 second') as purge,
       exists (select from {table} where "Dispatched" = false and {is_over}) as relay

-- name: is_over
-- By CreatedAt, in tables of ours. A time in the future is a wrong clock's: the record would wait for it.
"CreatedAt" not between statement_timestamp() - %(grace)s * interval '1 second'
    and statement_timestamp() + %(grace)s * interval '1 second'

-- name: is_undated
-- The original's table has no creation time: the caller remembers when it first saw a record.
%(grace)s is not null

-- name: purge
-- A batch, oldest first, without what another cleaner has locked. A clock that moves within the statement could use no index.
delete from {table}
where "MessageId" = any(array(
    select "MessageId" from {table}
    where "DispatchedAt" < (statement_timestamp() at time zone 'utc') - %(keep)s * interval '1 second' and "Dispatched"
    order by "DispatchedAt" limit {most} for update skip locked))

-- name: pending
-- Records that a crash left between commit and dispatch. A worker about to dispatch one has it locked, or waits for us.
select "MessageId"::text as id, "Dispatched" as dispatched, "Operations"::text as operations
from {table} where "Dispatched" = false and {is_over} and "MessageId" <> all(%(without)s::text[])
limit {most} for update skip locked

-- name: hold_pending
-- Those of these records that are pending; one that is being sent at this moment is skipped.
select "MessageId"::text as id, "Dispatched" as dispatched, "Operations"::text as operations
from {table} where "MessageId" = any(%(ids)s::text[]) and not "Dispatched"
order by "MessageId" for update skip locked

-- name: tables
-- By their columns, whatever their names; only tables without policies, whose reading runs no foreign code.
-- A user-defined type may have a cast function: our comparisons would run it.
select c.oid::bigint as oid, n.nspname as schema, c.relname as "table", nullif(c.reltuples, -1)::bigint as rows,
    exists (select from pg_attribute a where a.attrelid = c.oid and not a.attisdropped
            and a.attname = 'CreatedAt' and a.atttypid = 'timestamptz'::regtype) as says_when,
    array(
        select distinct a.attname::text from pg_index i
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = c.oid and i.indisvalid) as indexed,
    has_table_privilege(c.oid, 'SELECT') and has_schema_privilege(n.oid, 'USAGE') as may_read
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and not c.relrowsecurity
  and (cardinality(%(schemas)s::text[]) = 0 or n.nspname = any(%(schemas)s::text[]))
  and 5 = (
    select count(*) from pg_attribute a
    where a.attrelid = c.oid and not a.attisdropped
      and (a.attname, a.atttypid) in (
          ('MessageId', 'varchar'::regtype), ('Dispatched', 'bool'::regtype), ('DispatchedAt', 'timestamp'::regtype),
          ('PersistenceVersion', 'varchar'::regtype), ('Operations', 'jsonb'::regtype)))
order by n.nspname, c.relname limit {most}

-- name: runs
-- Code of others that would run as us when a record is marked or deleted: triggers, rules, indexes, checks, policies; by the catalog.
with asked as (
    select c.oid, c.relowner from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = %(schema)s and c.relname = %(name)s and c.relkind in ('r', 'p')
)
select array_agg(distinct concat(what, ' ', quote_ident(name), ' of role ', quote_ident(pg_get_userbyid(owner))))
from (
    select 'trigger' as what, t.tgname as name, p.proowner as owner
    from asked
    join pg_trigger t on t.tgrelid = asked.oid or t.tgrelid in (select relid from pg_partition_tree(asked.oid))
    join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and t.tgenabled in ('O', 'A') and t.tgtype & %(trigger)s::integer <> 0 and not p.prosecdef
    union all
    select 'rule', r.rulename, asked.relowner from asked join pg_rewrite r on r.ev_class = asked.oid
    where r.ev_type = %(rule)s::"char" and r.ev_enabled <> 'D'
    union all
    select 'index', i.indexrelid::regclass::text, asked.relowner from asked join pg_index i on i.indrelid = asked.oid
    where i.indexprs is not null or i.indpred is not null
    union all
    select 'check', k.conname, asked.relowner from asked join pg_constraint k on k.conrelid = asked.oid
    where k.contype = 'c'
    union all
    select 'policy', y.polname, asked.relowner from asked join pg_policy y on y.polrelid = asked.oid
    where row_security_active(asked.oid)
) found
where owner <> (select u.oid from pg_roles u where u.rolname = current_user)

-- name: count_pending
-- Counted up to a limit, by the index on Dispatched.
select count(*) from (select from {table} where "Dispatched" = false limit {most}) as pending

-- name: count_dispatched
-- Counted up to a limit, newest first: at the oldest end of the index clean-up leaves dead entries.
select count(*) from (
    select from {table} where "DispatchedAt" is not null order by "DispatchedAt" desc limit {most}) as dispatched

-- name: oldest_pending
-- Of a limited number of pending records; only in tables of ours, which have CreatedAt.
select min("CreatedAt") as since
from (select "CreatedAt" from {table} where "Dispatched" = false limit {most}) as pending

-- name: oldest_kept
-- How far clean-up has got, by the index on DispatchedAt; run only if that index exists.
select "DispatchedAt" at time zone 'utc' as at from {table} where "DispatchedAt" is not null
order by "DispatchedAt" limit 1

-- name: list_pending
-- Some pending records without their payloads. A payload that is no array has no number of operations.
select "MessageId"::text as id, {created_at} as created_at, octet_length("Operations"::text) as size,
    case jsonb_typeof("Operations") when 'array' then jsonb_array_length("Operations") end as operations
from {table} where "Dispatched" = false and "MessageId" > %(after)s::text
order by "MessageId" limit {most}

-- name: list_dispatched
-- Some dispatched records, as long as clean-up leaves them; by message id, which is the key.
select "MessageId"::text as id, "DispatchedAt" at time zone 'utc' as dispatched_at from {table}
where "Dispatched" and "MessageId" > %(after)s::text order by "MessageId" limit {most}

-- name: pending_ids
-- Ids of pending records, a page at a time; locks nothing, reads no payload.
select "MessageId"::text as id from {table} where "Dispatched" = false and "MessageId" > %(after)s::text
order by "MessageId" limit {most}

-- name: still_pending
-- Which of these are still pending; locks nothing, reads no payload.
select "MessageId"::text as id from {table} where "MessageId" = any(%(ids)s::text[]) and not "Dispatched"

-- name: created_at
-- Tables of ours know since when a record waits.
"CreatedAt"

-- name: unknown_at
-- The original's table does not.
null::timestamptz

-- name: record
-- One record, cut to what a page shows.
select "MessageId"::text as id, "Dispatched" as dispatched, "DispatchedAt" at time zone 'utc' as dispatched_at,
    "PersistenceVersion"::text as version, {created_at} as created_at, octet_length("Operations"::text) as size,
    left("Operations"::text, {most}) as operations
from {table} where "MessageId" = %(id)s::text
