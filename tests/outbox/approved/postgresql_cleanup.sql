-- By pg_cron, each minute, run in its database (elsewhere by cron.schedule_in_database). Running it again replaces the job.
select cron.schedule('"public"."Shop_Web_OutboxData" clean-up', '* * * * *', 'delete from "public"."Shop_Web_OutboxData"
where "MessageId" in (
    select "MessageId" from "public"."Shop_Web_OutboxData"
    where "DispatchedAt" < (statement_timestamp() at time zone ''utc'') - interval ''7 days'' and "Dispatched"
    order by "DispatchedAt" limit 100000 for update skip locked)');
