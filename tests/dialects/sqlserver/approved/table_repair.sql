-- add_body_column: The body as UTF-16 text: a UTF-8 body reads as other letters (BodyString).
alter table [dbo].[Sales] add BodyString as cast(Body as nvarchar(max))

-- add_id: Existing rows get one each.
alter table [dbo].[Sales] add Id uniqueidentifier not null default newid()

-- add_correlationid: Read where an old sender wrote it; never written.
alter table [dbo].[Sales] add CorrelationId varchar(255) null

-- add_replytoaddress: As CorrelationId.
alter table [dbo].[Sales] add ReplyToAddress varchar(255) null

-- add_expires: Existing rows never expire.
alter table [dbo].[Sales] add Expires datetime null

-- retype_expires: UTC without a zone.
alter table [dbo].[Sales] alter column Expires datetime null

-- add_headers: Existing rows have none, and will be exhausted.
alter table [dbo].[Sales] add Headers nvarchar(max) not null default N'{}'

-- retype_headers: In a varchar, each letter outside the code page becomes a question mark.
alter table [dbo].[Sales] alter column Headers nvarchar(max) not null

-- add_body: Existing rows have none, and will be exhausted.
alter table [dbo].[Sales] add Body varbinary(max) null

-- retype_body: Bytes, whatever they mean.
alter table [dbo].[Sales] alter column Body varbinary(max) null

-- add_rowversion: In the order in which the rows are stored.
alter table [dbo].[Sales] add RowVersion bigint identity(1,1) not null

-- replace_rowversion: Nothing assigns the numbers: a new column replaces this one, in the order in which the rows are stored.
alter table [dbo].[Sales] drop column RowVersion;
alter table [dbo].[Sales] add RowVersion bigint identity(1,1) not null

-- retype_id: Fails where a value is no uniqueidentifier.
alter table [dbo].[Sales] alter column Id uniqueidentifier not null

-- retype_due: An instant, in UTC.
alter table [dbo].[Sales] alter column Due datetime not null

-- add_due: Existing rows are due now.
alter table [dbo].[Sales] add Due datetime not null default getutcdate()

-- one_per_topic: An endpoint that moves replaces its address, and has one row per topic.
alter table [dbo].[Sales] add primary key clustered (Endpoint, Topic)

-- indexes: What blocks the change of a column: indexes and keys that contain it or filter by it, and how to recreate them.
select i.name as name, i.type as type, i.is_unique as is_unique, i.is_primary_key as is_primary_key,
    i.is_unique_constraint as is_unique_constraint, i.filter_definition as filter, c.name as [column],
    k.is_descending_key as is_descending, k.is_included_column as is_included
from sys.indexes i
join sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id
join sys.columns c on c.object_id = k.object_id and c.column_id = k.column_id
where i.object_id = object_id(%(table)s) and i.type in (1, 2)
order by i.index_id, k.key_ordinal, k.index_column_id

-- defaults: Likewise defaults, which block changing or dropping their column.
select d.name as name, c.name as [column], d.definition as definition
from sys.default_constraints d
join sys.columns c on c.object_id = d.parent_object_id and c.column_id = d.parent_column_id
where d.parent_object_id = object_id(%(table)s)

-- drop_index: It contains a column that will be changed.
drop index [Index_Dispatched] on [dbo].[Sales]

-- drop_constraint: Likewise a key, or a default.
alter table [dbo].[Sales] drop constraint [pgqueue_1]

-- drop_body_column: It is computed from Body.
alter table [dbo].[Sales] drop column BodyString

-- create_index: As it was, once the column is changed.
create nonclustered index [Index_Dispatched] on [dbo].[Sales] ([Expires]) include ([Id])

-- add_key: Likewise a key.
alter table [dbo].[Sales] add constraint [pgqueue_1] primary key nonclustered ([Expires])

-- add_default: Likewise a default.
alter table [dbo].[Sales] add constraint [pgqueue_1] default (newid()) for [Dispatched]

-- disable_trigger: It is kept: its author may find another way.
disable trigger [pgqueue_1] on [dbo].[Sales]

-- index_rowversion_aside: Where another index orders the rows: a table has one clustered index.
create nonclustered index Index_RowVersion on [dbo].[Sales] (RowVersion)
