-- Adds what the original's table lacks. Gives up if another session holds the table for more than five seconds.
set quoted_identifier on;
set lock_timeout 5000;
if col_length(N'[dbo].[Shop_Web_OutboxData]', N'CreatedAt') is null
    alter table [dbo].[Shop_Web_OutboxData] add CreatedAt datetime2 null default sysutcdatetime() with values;
if not exists (
    select 1 from sys.indexes i
    join sys.index_columns c on c.object_id = i.object_id and c.index_id = i.index_id and c.key_ordinal = 1
    where i.object_id = object_id(N'[dbo].[Shop_Web_OutboxData]', N'U') and col_name(c.object_id, c.column_id) = N'DispatchedAt'
)
    create index Index_DispatchedAt on [dbo].[Shop_Web_OutboxData] (DispatchedAt) where Dispatched = 1;
if not exists (
    select 1 from sys.indexes i
    join sys.index_columns c on c.object_id = i.object_id and c.index_id = i.index_id and c.key_ordinal = 1
    where i.object_id = object_id(N'[dbo].[Shop_Web_OutboxData]', N'U') and col_name(c.object_id, c.column_id) = N'Dispatched'
)
    create index Index_Dispatched on [dbo].[Shop_Web_OutboxData] (Dispatched) where Dispatched = 0;
