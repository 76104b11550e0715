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
-- As an endpoint would make it.
{outbox:create}

-- name: indexes
-- By column, whatever it is called.
for missing in (select 1 from sys.dual where not exists (
    select 1 from sys.all_ind_columns
    where table_owner = {schema_text} and table_name = {name_text} and column_name = 'DISPATCHED' and column_position = 1
)) loop
    execute immediate {statement_text:index_dispatched};
end loop;

-- name: index_dispatched
-- As an endpoint would make it.
{outbox:create_index}

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
-- Until one is short; each is a transaction. What somebody has locked is left for the next time.
declare
    cursor due is
        {part:due};
    found sys.odcivarchar2list;
begin
    loop
        open due;
        fetch due bulk collect into found limit 4000;
        close due;
        forall place in 1 .. found.count
            {part:purge};
        commit;
        exit when found.count < 4000;
    end loop;
end;

-- name: due
-- Each is locked when it is fetched; rownum would count what somebody has locked.
select rowidtochar(rowid) from {table}
where Dispatched = 1 and DispatchedAt < sys_extract_utc(systimestamp) - numtodsinterval({keep_days}, 'day')
for update skip locked

-- name: purge
-- One of them.
delete from {table} where rowid = chartorowid(found(place))
