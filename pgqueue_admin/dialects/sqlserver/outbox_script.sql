-- name: create
-- Safe to run twice, and on a table that the original's script created.
set quoted_identifier on;
if object_id({table_text}, N'U') is null
    {outbox:create};
{part:indexes};

-- name: indexes
-- Found by column, whatever the index is called. Index names are per table in SQL Server.
if not exists (
    select 1 from sys.indexes i
    join sys.index_columns c on c.object_id = i.object_id and c.index_id = i.index_id and c.key_ordinal = 1
    where i.object_id = object_id({table_text}, N'U') and col_name(c.object_id, c.column_id) = N'DispatchedAt'
)
    {part:index_dispatched_at};
if not exists (
    select 1 from sys.indexes i
    join sys.index_columns c on c.object_id = i.object_id and c.index_id = i.index_id and c.key_ordinal = 1
    where i.object_id = object_id({table_text}, N'U') and col_name(c.object_id, c.column_id) = N'Dispatched'
)
    {part:index_dispatched}

-- name: index_dispatched_at
-- Dispatched records only, as the original's: clean-up looks for them.
create index Index_DispatchedAt on {table} (DispatchedAt) where Dispatched = 1

-- name: index_dispatched
-- Undispatched records only: the relay looks for them each minute.
create index Index_Dispatched on {table} (Dispatched) where Dispatched = 0

-- name: migrate
-- Adds what the original's table lacks. Gives up if another session holds the table for more than five seconds.
set quoted_identifier on;
set lock_timeout 5000;
if col_length({table_text}, N'CreatedAt') is null
    {part:created_at};
{part:indexes};

-- name: created_at
-- Existing records get the time of the migration.
alter table {table} add CreatedAt datetime2 null default sysutcdatetime() with values

-- name: cleanup
-- A job of SQL Server Agent, each minute, in the database where this runs. Running it again replaces the job.
set xact_abort on;
declare @database sysname = db_name();
declare @job nvarchar(400) = concat(N'Outbox clean-up ', @database, N' ', {table_text});
if len(@job) > 128
begin;
    throw 50000, N'The names of the database and of the table are too long for the name of a job.', 1;
end;
begin transaction;
if exists (select 1 from msdb.dbo.sysjobs where name = @job)
    exec msdb.dbo.sp_delete_job @job_name = @job, @delete_unused_schedule = 1;
exec msdb.dbo.sp_add_job @job_name = @job;
exec msdb.dbo.sp_add_jobstep @job_name = @job, @step_name = N'Delete', @subsystem = N'TSQL',
    @database_name = @database, @command = {statement_text:batches};
exec msdb.dbo.sp_add_jobschedule @job_name = @job, @name = N'Each minute', @freq_type = 4, @freq_interval = 1,
    @freq_subday_type = 4, @freq_subday_interval = 1;
exec msdb.dbo.sp_add_jobserver @job_name = @job;
commit;

-- name: batches
-- Until a batch is short. A table with a filtered index refuses deletes while quoted identifiers are off, as in Agent's steps.
set quoted_identifier on;
declare @deleted int = 4000;
while @deleted = 4000
begin
    {part:purge};
    set @deleted = @@rowcount;
end

-- name: purge
-- Fewer rows than make the server lock the whole table; locked rows are left for the next run.
delete top (4000) from {table} with (rowlock, readpast)
where Dispatched = 1 and DispatchedAt < dateadd(day, -{keep_days}, getutcdate())
option (maxdop 1)
