-- Safe to run twice, and on a table that the original's script created.
set quoted_identifier on;
if object_id(N'[dbo].[Shop_Web_OutboxData]', N'U') is null
    create table [dbo].[Shop_Web_OutboxData] (
        MessageId nvarchar(200) collate Latin1_General_BIN2 not null,
        Dispatched bit not null default 0,
        DispatchedAt datetime null,
        PersistenceVersion varchar(23) not null,
        Operations nvarchar(max) not null,
        CreatedAt datetime2 null default sysutcdatetime(),
        primary key nonclustered (MessageId)
    );
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
