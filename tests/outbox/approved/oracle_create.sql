-- Safe to run twice, and on a table that the original's script created. For SQL*Plus and SQLcl.
set define off

begin
    for missing in (select 1 from sys.dual where not exists (
        select 1 from sys.all_tables where owner = sys_context('userenv', 'current_schema') and table_name = 'SHOP_WEB_OD'
    )) loop
        execute immediate 'create table "SHOP_WEB_OD" (
            MessageId nvarchar2(200) not null,
            Dispatched number(1,0) default 0 not null check (Dispatched in (0, 1)),
            DispatchedAt timestamp,
            PersistenceVersion varchar2(23) not null,
            Operations clob not null,
            CreatedAt timestamp default sys_extract_utc(systimestamp),
            constraint "SHOP_WEB_OD_PK" primary key (MessageId)
        )';
    end loop;
    for missing in (select 1 from sys.dual where not exists (
        select 1 from sys.all_ind_columns
        where table_owner = sys_context('userenv', 'current_schema') and table_name = 'SHOP_WEB_OD' and column_name = 'DISPATCHED' and column_position = 1
    )) loop
        execute immediate 'create index "SHOP_WEB_OD_IX" on "SHOP_WEB_OD" (Dispatched, DispatchedAt)';
    end loop;
end;
/
