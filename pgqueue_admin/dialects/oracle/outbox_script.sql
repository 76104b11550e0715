-- name: create
-- Safe to run twice, and on a table that the original's script created. For SQL*Plus and SQLcl.
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
-- As an endpoint creates it.
{outbox:create}

-- name: indexes
-- Found by column, whatever the index is called.
for missing in (select 1 from sys.dual where not exists (
    select 1 from sys.all_ind_columns
    where table_owner = {schema_text} and table_name = {name_text} and column_name = 'DISPATCHED' and column_position = 1
)) loop
    execute immediate {statement_text:index_dispatched};
end loop;

-- name: index_dispatched
-- As an endpoint creates it.
{outbox:create_index}

-- name: migrate
-- Adds what the original's table lacks. Gives up if another session holds the table for more than five seconds.
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
-- Existing records get the time of the migration.
alter table {table} add (CreatedAt timestamp default sys_extract_utc(systimestamp))

-- name: cleanup
-- A job of dbms_scheduler, each minute. Running the script again replaces the job.
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
-- Until a batch is short; one transaction a batch. Locked rows are left for the next run.
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
-- Rows are locked when they are fetched; rownum would count those that others have locked.
select rowidtochar(rowid) from {table}
where Dispatched = 1 and DispatchedAt < sys_extract_utc(systimestamp) - numtodsinterval({keep_days}, 'day')
for update skip locked

-- name: purge
-- One row of the batch.
delete from {table} where rowid = chartorowid(found(place))
