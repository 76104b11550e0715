-- name: create
-- Byte for byte what an endpoint's installer leaves in the catalog.
create table if not exists {table} (
    id uuid not null default gen_random_uuid(),
    headers text not null,
    body bytea,
    due timestamp with time zone not null,
    primary key (id)
) with (fillfactor = 100)

-- name: indexes
-- Checked first: "create index if not exists" waits for every uncommitted writer of the table.
select count(*)
from pg_index i
join pg_class c on c.oid = i.indrelid
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
where n.nspname = %(schema)s and c.relname = %(name)s and a.attname = 'due'

-- name: create_index
-- The mover looks only for the soonest.
create index if not exists {index} on {table} (due)

-- name: store
-- The server's clock counts a delay from the start of the transaction; an instant is the same in every session's zone.
insert into {table} (headers, body, due)
select headers, body,
    coalesce(at, pg_catalog.now() operator(pg_catalog.+) (delay_ms operator(pg_catalog.*) interval '1 millisecond'))
from rows from (
    pg_catalog.unnest(%(headers)s::pg_catalog.text[]), pg_catalog.unnest(%(bodies)s::pg_catalog.bytea[]),
    pg_catalog.unnest(%(ats)s::pg_catalog.timestamptz[]), pg_catalog.unnest(%(delays_ms)s::bigint[])
) as message (headers, body, at, delay_ms)

-- name: move_due
-- Soonest first. Rows that another mover has locked are left to it; the array is computed once, whatever the plan.
-- Returns how many the queue took, and of how many: a trigger on it may drop rows silently.
with due as (
    delete from {table}
    where id = any(array(
        select id from {table} where due <= now() order by due limit {batch} for update skip locked))
    returning id, headers, body, due
), moved as (
    -- an id that is in the queue already would be refused, and with it all due messages
    insert into {queue} (id, headers, body)
    select case when exists (select from {queue} there where there.id = due.id) then gen_random_uuid() else due.id end,
           headers, body
    from due order by due returning 1
)
select (select count(*) from moved) as taken, (select count(*) from due) as due

-- name: next_due
-- In how many seconds, counted from the start of the transaction; 'infinity' is never, and has no distance.
-- Overdue rows are left out: another mover has them locked, and they would hide the next one.
select extract(epoch from due - now())::float8 from {table} where due > now() and due < 'infinity' order by due limit 1
