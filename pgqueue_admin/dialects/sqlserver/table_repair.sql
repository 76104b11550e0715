-- name: add_body_column
-- The body as text of two bytes a letter: what is UTF-8 reads as other letters (BodyString).
alter table {table} add BodyString as cast(Body as nvarchar(max))

-- name: add_id
-- Rows that are there get one each.
alter table {table} add Id uniqueidentifier not null default newid()

-- name: add_correlationid
-- Read where an old sender left it; never written.
alter table {table} add CorrelationId varchar(255) null

-- name: add_replytoaddress
-- As the other.
alter table {table} add ReplyToAddress varchar(255) null

-- name: add_expires
-- What is there never expires.
alter table {table} add Expires datetime null

-- name: retype_expires
-- UTC without a zone.
alter table {table} alter column Expires datetime null

-- name: add_headers
-- Rows that are there have none, and will be exhausted.
alter table {table} add Headers nvarchar(max) not null default N'{}'

-- name: retype_headers
-- In a varchar each letter beyond the code page becomes a question mark.
alter table {table} alter column Headers nvarchar(max) not null

-- name: add_body
-- Rows that are there have none, and will be exhausted.
alter table {table} add Body varbinary(max) null

-- name: retype_body
-- Bytes, whatever they mean.
alter table {table} alter column Body varbinary(max) null

-- name: add_rowversion
-- In the order in which the rows lie there.
alter table {table} add RowVersion bigint identity(1,1) not null

-- name: replace_rowversion
-- Numbers that nobody gives: another column takes the place of this one, in the order in which the rows lie there.
alter table {table} drop column RowVersion;
alter table {table} add RowVersion bigint identity(1,1) not null

-- name: retype_id
-- What is no uniqueidentifier cannot become one.
alter table {table} alter column Id uniqueidentifier not null

-- name: retype_due
-- An instant, in UTC.
alter table {table} alter column Due datetime not null

-- name: add_due
-- What is there is due now.
alter table {table} add Due datetime not null default getutcdate()

-- name: one_per_topic
-- An endpoint that moves replaces its address, and subscribes nowhere twice.
alter table {table} add primary key clustered (Endpoint, Topic)
