-- name: add_body_column
-- The body as UTF-16 text: a UTF-8 body reads as other letters (BodyString).
alter table {table} add BodyString as cast(Body as nvarchar(max))

-- name: add_id
-- Existing rows get one each.
alter table {table} add Id uniqueidentifier not null default newid()

-- name: add_correlationid
-- Read where an old sender wrote it; never written.
alter table {table} add CorrelationId varchar(255) null

-- name: add_replytoaddress
-- As CorrelationId.
alter table {table} add ReplyToAddress varchar(255) null

-- name: add_expires
-- Existing rows never expire.
alter table {table} add Expires datetime null

-- name: retype_expires
-- UTC without a zone.
alter table {table} alter column Expires datetime null

-- name: add_headers
-- Existing rows have none, and will be exhausted.
alter table {table} add Headers nvarchar(max) not null default N'{}'

-- name: retype_headers
-- In a varchar, each letter outside the code page becomes a question mark.
alter table {table} alter column Headers nvarchar(max) not null

-- name: add_body
-- Existing rows have none, and will be exhausted.
alter table {table} add Body varbinary(max) null

-- name: retype_body
-- Bytes, whatever they mean.
alter table {table} alter column Body varbinary(max) null

-- name: add_rowversion
-- In the order in which the rows are stored.
alter table {table} add RowVersion bigint identity(1,1) not null

-- name: replace_rowversion
-- Nothing assigns the numbers: a new column replaces this one, in the order in which the rows are stored.
alter table {table} drop column RowVersion;
alter table {table} add RowVersion bigint identity(1,1) not null

-- name: retype_id
-- Fails where a value is no uniqueidentifier.
alter table {table} alter column Id uniqueidentifier not null

-- name: retype_due
-- An instant, in UTC.
alter table {table} alter column Due datetime not null

-- name: add_due
-- Existing rows are due now.
alter table {table} add Due datetime not null default getutcdate()

-- name: one_per_topic
-- An endpoint that moves replaces its address, and has one row per topic.
alter table {table} add primary key clustered (Endpoint, Topic)

-- name: indexes
-- What blocks the change of a column: indexes and keys that contain it or filter by it, and how to recreate them.
select i.name as name, i.type as type, i.is_unique as is_unique, i.is_primary_key as is_primary_key,
    i.is_unique_constraint as is_unique_constraint, i.filter_definition as filter, c.name as [column],
    k.is_descending_key as is_descending, k.is_included_column as is_included
from {catalog}sys.indexes i
join {catalog}sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id
join {catalog}sys.columns c on c.object_id = k.object_id and c.column_id = k.column_id
where i.object_id = object_id(%(table)s) and i.type in (1, 2)
order by i.index_id, k.key_ordinal, k.index_column_id

-- name: defaults
-- Likewise defaults, which block changing or dropping their column.
select d.name as name, c.name as [column], d.definition as definition
from {catalog}sys.default_constraints d
join {catalog}sys.columns c on c.object_id = d.parent_object_id and c.column_id = d.parent_column_id
where d.parent_object_id = object_id(%(table)s)

-- name: drop_index
-- It contains a column that will be changed.
drop index {index} on {table}

-- name: drop_constraint
-- Likewise a key, or a default.
alter table {table} drop constraint {name}

-- name: drop_body_column
-- It is computed from Body.
alter table {table} drop column BodyString

-- name: create_index
-- As it was, once the column is changed.
create {kind} index {index} on {table} ({keys}){rest}

-- name: add_key
-- Likewise a key.
alter table {table} add constraint {name} {key} ({keys})

-- name: add_default
-- Likewise a default.
alter table {table} add constraint {name} default {definition} for {column}

-- name: disable_trigger
-- It is kept: its author may find another way.
disable trigger {name} on {table}

-- name: index_rowversion_aside
-- Where another index orders the rows: a table has one clustered index.
create nonclustered index Index_RowVersion on {table} (RowVersion)
