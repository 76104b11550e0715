-- A job of dbms_scheduler, each minute. Running the script again replaces the job.
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
        job_action => 'declare
            cursor due is
                select rowidtochar(rowid) from "SHOP_WEB_OD"
                where Dispatched = 1 and DispatchedAt < sys_extract_utc(systimestamp) - numtodsinterval(7, ''day'')
                for update skip locked;
            found sys.odcivarchar2list;
        begin
            loop
                open due;
                fetch due bulk collect into found limit 4000;
                close due;
                forall place in 1 .. found.count
                    delete from "SHOP_WEB_OD" where rowid = chartorowid(found(place));
                commit;
                exit when found.count < 4000;
            end loop;
        end;',
        repeat_interval => 'FREQ=MINUTELY',
        enabled => true
    );
end;
/
