-- name: lock
-- The original takes this one lock around adding the column, and around nothing else.
select pg_advisory_xact_lock(%(key)s)

-- name: exists
-- By name, ignoring case: it was created unquoted, so the catalog has it in lower case.
select exists (
    select from pg_attribute a
    join pg_class c on c.oid = a.attrelid
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = %(schema)s and c.relname = %(name)s and lower(a.attname) = 'bodystring' and not a.attisdropped)

-- name: add
-- Printable ASCII stays, all else is octal: a generated column may not depend on an encoding.
alter table {table} add column bodystring text generated always as (encode(body, 'escape')) stored
