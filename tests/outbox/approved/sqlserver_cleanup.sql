-- A job of SQL Server Agent, each minute, in the database where this runs. Running it again replaces the job.
set xact_abort on;
declare @database sysname = db_name();
declare @job nvarchar(400) = concat(N'Outbox clean-up ', @database, N' ', N'[dbo].[Shop_Web_OutboxData]');
if len(@job) > 128
begin;
    throw 50000, N'The names of the database and of the table are too long for the name of a job.', 1;
end;
begin transaction;
if exists (select 1 from msdb.dbo.sysjobs where name = @job)
    exec msdb.dbo.sp_delete_job @job_name = @job, @delete_unused_schedule = 1;
exec msdb.dbo.sp_add_job @job_name = @job;
exec msdb.dbo.sp_add_jobstep @job_name = @job, @step_name = N'Delete', @subsystem = N'TSQL',
    @database_name = @database, @command = N'set quoted_identifier on;
    declare @deleted int = 4000;
    while @deleted = 4000
    begin
        delete top (4000) from [dbo].[Shop_Web_OutboxData] with (rowlock, readpast)
        where Dispatched = 1 and DispatchedAt < dateadd(day, -7, getutcdate())
        option (maxdop 1);
        set @deleted = @@rowcount;
    end';
exec msdb.dbo.sp_add_jobschedule @job_name = @job, @name = N'Each minute', @freq_type = 4, @freq_interval = 1,
    @freq_subday_type = 4, @freq_subday_interval = 1;
exec msdb.dbo.sp_add_jobserver @job_name = @job;
commit;
