-- name: create
-- Lies beside the outbox table. One row is no decision: it holds the name that marks this coordinator's transactions.
create table if not exists {table} (
    "Id" varchar(32) not null primary key,
    "Databases" text not null,
    "DecidedAt" timestamp with time zone not null default now()
)

-- name: columns
-- The table's columns, from the catalog.
select a.attname::text as name, exists (
    select from pg_index i where i.indrelid = c.oid and i.indkey[0] = a.attnum
    and i.indnkeyatts = 1 and i.indisunique and i.indisvalid and i.indpred is null) as is_unique
from pg_attribute a
join pg_class c on c.oid = a.attrelid
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relname = %(name)s and a.attnum > 0 and not a.attisdropped

-- name: identify
-- The first process sets the identity; all processes of an endpoint are one coordinator.
insert into {table} ("Id", "Databases") values (%(id)s, %(identity)s) on conflict do nothing

-- name: identity
-- The identity that the first process set.
select "Databases" as identity from {table} where "Id" = %(id)s

-- name: decide
-- The decision must be on disk before others see it: they commit because of it. A row that is left out fails here.
with durable as materialized (
    select case pg_catalog.current_setting('synchronous_commit') when 'off'
        then pg_catalog.set_config('synchronous_commit', 'on', true) end as now
), written as (
    insert into {table} ("Id", "Databases") select %(id)s, %(databases)s from durable
    returning 1
)
select {is_written} as once from written

-- name: decided
-- Few rows: a decision is deleted once none of its transactions is prepared any more.
select "Id"::text as id, "Databases" as names from {table} where "Id" <> %(id)s

-- name: wait_briefly
-- For an uncommitted insert of the same id.
select set_config('lock_timeout', '500ms', true)

-- name: forget
-- By the primary key.
delete from {table} where "Id" = any(%(ids)s::text[])

-- name: tables
-- Which of these are decision tables: as with outbox tables, reading them runs no foreign code.
select c.oid::bigint as oid, n.nspname as schema, c.relname as "table"
from unnest(%(schemas)s::text[], %(names)s::text[]) as asked (schema, name)
join pg_namespace n on n.nspname = asked.schema
join pg_class c on c.relnamespace = n.oid and c.relname = asked.name
where c.relkind = 'r' and not c.relrowsecurity
  and has_table_privilege(c.oid, 'SELECT') and has_schema_privilege(n.oid, 'USAGE')
  and 2 = (
    select count(*) from pg_attribute a
    where a.attrelid = c.oid and not a.attisdropped
      and (a.attname, a.atttypid) in (('Id', 'varchar'::regtype), ('Databases', 'text'::regtype)))

-- name: some
-- The coordinator's identity, and which of these ids it has decided; by the primary key.
select "Id" as id, "Databases" as names from {table} where "Id" = any(%(ids)s::text[])
