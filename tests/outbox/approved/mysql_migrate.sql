-- Adds what the original's table lacks. Gives up if another session holds the table for more than five seconds.
set session lock_wait_timeout = 5;
set @ddl = if(exists (
    select 1 from information_schema.columns
    where table_schema = database() and table_name = 'Shop_Web_OutboxData' and column_name = 'CreatedAt'
), 'do 0', 'alter table `Shop_Web_OutboxData` add column CreatedAt timestamp(6) null default current_timestamp(6)');
prepare outbox_ddl from @ddl;
execute outbox_ddl;

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
