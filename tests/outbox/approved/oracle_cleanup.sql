-- By a job of dbms_scheduler, each minute. Run again it replaces the job.
set define off

declare
    unknown_job exception;
    pragma exception_init(unknown_job, -27475);
begin
    begin
        dbms_scheduler.drop_job(job_name => '"SHOP_WEB_OD_CJ"', force => true);
    exception
        when unknown_job then null;
    end;
    dbms_scheduler.create_job(
        job_name => '"SHOP_WEB_OD_CJ"',
        job_type => 'PLSQL_BLOCK',
        job_action => 'begin
            loop
                delete from "SHOP_WEB_OD"
                where Dispatched = 1 and DispatchedAt < sys_extract_utc(systimestamp) - interval ''7'' day and rownum <= 4000;
                exit when sql%rowcount = 0;
                commit;
            end loop;
            commit;
        end;',
        repeat_interval => 'FREQ=MINUTELY',
        enabled => true
    );
end;
/
