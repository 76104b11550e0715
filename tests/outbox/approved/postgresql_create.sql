-- As the engine creates it. Safe to run twice, and on a table that the original's script created.
create table if not exists "public"."Shop_Web_OutboxData" (
    "MessageId" varchar(200) not null primary key,
    "Dispatched" boolean not null default false,
    "DispatchedAt" timestamp without time zone,
    "PersistenceVersion" varchar(23),
    "Operations" jsonb not null,
    "CreatedAt" timestamp with time zone default now()
);

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
