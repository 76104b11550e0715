-- name: create
-- Safe to run twice, and on a table that the original's script made. For SQL*Plus and SQLcl.
set define off

begin
    for missing in (select 1 from sys.dual where not exists (
        select 1 from sys.all_tables where owner = {schema_text} and table_name = {name_text}
    )) loop
        execute immediate {statement_text:table};
    end loop;
    {part:indexes}
end;
/

-- name: table
-- The original's, and when each record was written.
create table {table} (
    MessageId nvarchar2(200) not null,
    Dispatched number(1,0) default 0 not null check (Dispatched in (0, 1)),
    DispatchedAt timestamp,
    PersistenceVersion varchar2(23) not null,
    Operations clob not null,
    CreatedAt timestamp default sys_extract_utc(systimestamp),
    constraint {name:_PK} primary key (MessageId)
)

-- name: indexes
-- By column, whatever it is called.
for missing in (select 1 from sys.dual where not exists (
    select 1 from sys.all_ind_columns
    where table_owner = {schema_text} and table_name = {name_text} and column_name = 'DISPATCHED' and column_position = 1
)) loop
    execute immediate {statement_text:index_dispatched};
end loop;

-- name: index_dispatched
-- What is undispatched and what is to be cleaned up are looked up by it.
create index {qualified:_IX} on {table} (Dispatched, DispatchedAt)

-- name: migrate
-- What the original's table lacks. It gives up where somebody holds the table for longer than five seconds.
set define off
alter session set ddl_lock_timeout = 5;

begin
    for missing in (select 1 from sys.dual where not exists (
        select 1 from sys.all_tab_columns
        where owner = {schema_text} and table_name = {name_text} and column_name = 'CREATEDAT'
    )) loop
        execute immediate {statement_text:created_at};
    end loop;
    {part:indexes}
end;
/

-- name: created_at
-- Records that are there already count from now on.
alter table {table} add (CreatedAt timestamp default sys_extract_utc(systimestamp))

-- name: cleanup
-- By a job of dbms_scheduler, each minute. Run again it replaces the job.
set define off

declare
    unknown_job exception;
    pragma exception_init(unknown_job, -27475);
begin
    begin
        dbms_scheduler.drop_job(job_name => {job_text}, force => true);
    exception
        when unknown_job then null;
    end;
    dbms_scheduler.create_job(
        job_name => {job_text},
        job_type => 'PLSQL_BLOCK',
        job_action => {statement_text:batches},
        repeat_interval => 'FREQ=MINUTELY',
        enabled => true
    );
end;
/

-- name: batches
-- Until one finds nothing; each is a transaction.
begin
    loop
        {part:purge};
        exit when sql%rowcount = 0;
        commit;
    end loop;
    commit;
end;

-- name: purge
-- As many as the original deletes at once.
delete from {table}
where Dispatched = 1 and DispatchedAt < sys_extract_utc(systimestamp) - interval '7' day and rownum <= 4000
