-- As the engine creates it. Safe to run twice, and on a table that the original's script created.
create table if not exists `Shop_Web_OutboxData` (
    MessageId varchar(200) character set utf8mb4 collate utf8mb4_bin not null primary key,
    Dispatched bit(1) not null default b'0',
    DispatchedAt datetime null,
    PersistenceVersion varchar(23) not null,
    Operations json not null,
    CreatedAt timestamp(6) null default current_timestamp(6),
    index Index_DispatchedAt (DispatchedAt),
    index Index_Dispatched (Dispatched)
) default character set ascii;

set @ddl = if(exists (
    select 1 from information_schema.statistics
    where table_schema = database() and table_name = 'Shop_Web_OutboxData' and column_name = 'DispatchedAt' and seq_in_index = 1
), 'do 0', 'create index Index_DispatchedAt on `Shop_Web_OutboxData` (DispatchedAt)');
prepare outbox_ddl from @ddl;
execute outbox_ddl;
set @ddl = if(exists (
    select 1 from information_schema.statistics
    where table_schema = database() and table_name = 'Shop_Web_OutboxData' and column_name = 'Dispatched' and seq_in_index = 1
), 'do 0', 'create index Index_Dispatched on `Shop_Web_OutboxData` (Dispatched)');
prepare outbox_ddl from @ddl;
execute outbox_ddl;
deallocate prepare outbox_ddl;
