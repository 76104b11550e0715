-- name: create
-- As the engine creates it. Safe to run twice, and on a table that the original's script created.
{outbox:create};

do {block:indexes};

-- name: indexes
-- By column, not by name: the original gives its two names to the first table of a schema, and the others get none.
begin
    if not exists (
        select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = {table_text}::regclass and i.indisvalid and a.attname = 'DispatchedAt'
    ) then
        create index {name:_DispatchedAt} on {table} ("DispatchedAt");
    end if;
    if not exists (
        select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = {table_text}::regclass and i.indisvalid and a.attname = 'Dispatched'
    ) then
        create index {name:_Dispatched} on {table} ("Dispatched");
    end if;
end

-- name: migrate
-- Adds what the original's table lacks. Writers wait while an index is built; the script itself waits five seconds at most.
begin;
set local lock_timeout = '5s';
alter table {table} add column if not exists "CreatedAt" timestamp with time zone default now();
do {block:indexes};
commit;

-- name: cleanup
-- By pg_cron, each minute, run in its database (elsewhere by cron.schedule_in_database). Running it again replaces the job.
select cron.schedule({job_text}, '* * * * *', {statement_text:purge});

-- name: purge
-- At most 100,000 a minute: what one transaction may hold. Locked records are left for the next run.
delete from {table}
where "MessageId" in (
    select "MessageId" from {table}
    where "DispatchedAt" < (statement_timestamp() at time zone 'utc') - interval '{keep_days} days' and "Dispatched"
    order by "DispatchedAt" limit 100000 for update skip locked)

-- name: decisions
-- For an outbox with other databases: which of its transactions over several databases commit. Safe to run twice.
{decision:create};
