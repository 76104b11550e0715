-- name: create
-- Created by an administrator, once. Its rows tell afterwards which transactions this server has committed.
create table {table} (
    Id uniqueidentifier not null primary key,
    At datetime2 not null default sysutcdatetime()
)

-- name: state
-- Whether this login sees the table and may use it, and whether a crash may undo a commit here.
select case when object_id(%(table)s, N'U') is null then 0 else 1 end as is_there,
    case when has_perms_by_name(%(table)s, N'OBJECT', N'SELECT') = 1 and has_perms_by_name(%(table)s, N'OBJECT', N'INSERT') = 1
        and has_perms_by_name(%(table)s, N'OBJECT', N'DELETE') = 1 then 1 else 0 end as is_ours,
    case when delayed_durability = 2 then 1 else 0 end as is_delayed
from sys.databases where database_id = db_id()

-- name: here
-- The identity of this database; renewed where a copy is to be a database of its own.
select lower(convert(char(36), service_broker_guid)) as place from sys.databases where database_id = db_id()

-- name: mark
-- Written in the transaction that it stands for.
insert into {table} (Id) values (cast(%(id)s as uniqueidentifier))

-- name: commit_outcome
-- Waits for an uncommitted mark: afterwards the row exists, or never will. A replica may not have it yet.
select count(*) as found,
    case when cast(databasepropertyex(db_name(), N'Updateability') as nvarchar(60)) = N'READ_WRITE' then 1 else 0 end as is_primary
from {table} with (readcommittedlock) where Id = cast(%(id)s as uniqueidentifier)

-- name: forget
-- The outcome is not queried again.
delete from {table} where Id = cast(%(id)s as uniqueidentifier)

-- name: take
-- Finds rows as receive does, but locks them instead of deleting. Limited by bytes, with at least one row.
with near as (
    select top ({limit}) Id, CorrelationId, ReplyToAddress, Expires, Headers, RowVersion,
        datalength(Headers) + coalesce(datalength(Body), 0) as bytes
    from {table} with (updlock, readpast, rowlock)
    order by RowVersion
), batch as (
    select Id, CorrelationId, ReplyToAddress, Expires, Headers, RowVersion, row_number() over (order by RowVersion) as nth,
        sum(cast(bytes as bigint)) over (order by RowVersion rows unbounded preceding) as carried
    from near
)
select lower(convert(char(36), Id)) as id, CorrelationId as correlation_id, ReplyToAddress as reply_to, Expires as expires,
    Headers as headers, RowVersion as seq
from batch where nth = 1 or carried <= %(most)s order by RowVersion

-- name: body
-- Body of a held row. RowVersion alone may match another row, where identities were inserted by hand.
select Body as body from {table} with (updlock, readpast, rowlock) where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier)

-- name: remove
-- Deletes a held row.
delete from {table} with (rowlock, readpast) where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier)

-- name: delayed_body
-- As body, for a delayed message: the index is on Due.
select Body as body from {table} with (updlock, readpast, rowlock) where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s

-- name: remove_delayed
-- As remove, for a delayed message.
delete from {table} with (rowlock, readpast) where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s
