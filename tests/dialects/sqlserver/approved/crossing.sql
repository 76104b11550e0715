-- create: Made by an administrator, once: by its rows this server tells afterwards which transactions it has committed.
create table [dbo].[PgqueueCrossing] (
    Id uniqueidentifier not null primary key,
    At datetime2 not null default sysutcdatetime()
)

-- state: Whether the table is there for this login, and whether a commit here may be undone by a crash.
select case when object_id(%(table)s, N'U') is null then 0 else 1 end as is_there,
    case when has_perms_by_name(%(table)s, N'OBJECT', N'SELECT') = 1 and has_perms_by_name(%(table)s, N'OBJECT', N'INSERT') = 1
        and has_perms_by_name(%(table)s, N'OBJECT', N'DELETE') = 1 then 1 else 0 end as is_ours,
    case when delayed_durability = 2 then 1 else 0 end as is_delayed
from sys.databases where database_id = db_id()

-- here: Made anew where a copy is to be a database of its own.
select lower(convert(char(36), service_broker_guid)) as place from sys.databases where database_id = db_id()

-- mark: In the transaction that it stands for.
insert into [dbo].[PgqueueCrossing] (Id) values (cast(%(id)s as uniqueidentifier))

-- commit_outcome: Waits for whoever is still about to commit it: then it is there, or it never will be. A replica may not have it yet.
select count(*) as found,
    case when cast(databasepropertyex(db_name(), N'Updateability') as nvarchar(60)) = N'READ_WRITE' then 1 else 0 end as is_primary
from [dbo].[PgqueueCrossing] with (readcommittedlock) where Id = cast(%(id)s as uniqueidentifier)

-- forget: It is asked no more.
delete from [dbo].[PgqueueCrossing] where Id = cast(%(id)s as uniqueidentifier)

-- take: As receive finds them, but held and not deleted. Of so many bytes, and one in any case.
with near as (
    select top (200) Id, CorrelationId, ReplyToAddress, Expires, Headers, RowVersion,
        datalength(Headers) + coalesce(datalength(Body), 0) as bytes
    from [dbo].[Sales] with (updlock, readpast, rowlock)
    order by RowVersion
), batch as (
    select Id, CorrelationId, ReplyToAddress, Expires, Headers, RowVersion, row_number() over (order by RowVersion) as nth,
        sum(cast(bytes as bigint)) over (order by RowVersion rows unbounded preceding) as carried
    from near
)
select lower(convert(char(36), Id)) as id, CorrelationId as correlation_id, ReplyToAddress as reply_to, Expires as expires,
    Headers as headers, RowVersion as seq
from batch where nth = 1 or carried <= %(most)s order by RowVersion

-- body: Of one that is held. The number alone may be another row's, too, where somebody set identities by hand.
select Body as body from [dbo].[Sales] with (updlock, readpast, rowlock) where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier)

-- remove: One that is held.
delete from [dbo].[Sales] with (rowlock, readpast) where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier)

-- delayed_body: As body, of a delayed one: its index has when it is due.
select Body as body from [dbo].[Sales] with (updlock, readpast, rowlock) where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s

-- remove_delayed: As remove, of a delayed one.
delete from [dbo].[Sales] with (rowlock, readpast) where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s
