-- For an outbox with other databases: which of its transactions over several databases commit. Safe to run twice.
create table if not exists "public"."Shop_Web_OutboxData_Decision" (
    "Id" varchar(32) not null primary key,
    "Databases" text not null,
    "DecidedAt" timestamp with time zone not null default now()
);
