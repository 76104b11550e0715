-- Adds what the original's table lacks. Gives up if another session holds the table for more than five seconds.
set define off
alter session set ddl_lock_timeout = 5;

begin
    for missing in (select 1 from sys.dual where not exists (
        select 1 from sys.all_tab_columns
        where owner = sys_context('userenv', 'current_schema') and table_name = 'SHOP_WEB_OD' and column_name = 'CREATEDAT'
    )) loop
        execute immediate 'alter table "SHOP_WEB_OD" add (CreatedAt timestamp default sys_extract_utc(systimestamp))';
    end loop;
    for missing in (select 1 from sys.dual where not exists (
        select 1 from sys.all_ind_columns
        where table_owner = sys_context('userenv', 'current_schema') and table_name = 'SHOP_WEB_OD' and column_name = 'DISPATCHED' and column_position = 1
    )) loop
        execute immediate 'create index "SHOP_WEB_OD_IX" on "SHOP_WEB_OD" (Dispatched, DispatchedAt)';
    end loop;
end;
/
