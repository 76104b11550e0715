-- Adds what the original's table lacks. Writers wait while an index is built; the script itself waits five seconds at most.
begin;
set local lock_timeout = '5s';
alter table "public"."Shop_Web_OutboxData" add column if not exists "CreatedAt" timestamp with time zone default now();
do $outbox$
begin
    if not exists (
        select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = '"public"."Shop_Web_OutboxData"'::regclass and i.indisvalid and a.attname = 'DispatchedAt'
    ) then
        create index "Shop_Web_OutboxData_DispatchedAt" on "public"."Shop_Web_OutboxData" ("DispatchedAt");
    end if;
    if not exists (
        select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = '"public"."Shop_Web_OutboxData"'::regclass and i.indisvalid and a.attname = 'Dispatched'
    ) then
        create index "Shop_Web_OutboxData_Dispatched" on "public"."Shop_Web_OutboxData" ("Dispatched");
    end if;
end
$outbox$;
commit;
