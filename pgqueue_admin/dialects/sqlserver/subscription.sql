-- name: create
-- All endpoints of a system share this table.
create table {table} (
    QueueAddress nvarchar(200) not null,
    Endpoint nvarchar(200) not null,
    Topic nvarchar(200) not null,
    primary key clustered (Endpoint, Topic)
)

-- name: subscribe
-- One row per endpoint and topic: an endpoint that moved replaces its address. Concurrent subscribers take turns.
-- The casts are one letter longer than the key: a longer name is refused, not cut. As nvarchar(max), which the driver
-- sends, a name would use no index.
merge {table} with (holdlock, tablock) as target
using (
    select %(queueaddress)s as QueueAddress, cast(%(endpoint)s as nvarchar(201)) as Endpoint, cast(%(topic)s as nvarchar(201)) as Topic
) as wanted
on target.Endpoint = wanted.Endpoint and target.Topic = wanted.Topic
when matched then update set QueueAddress = wanted.QueueAddress
when not matched then
    insert (QueueAddress, Endpoint, Topic) values (wanted.QueueAddress, wanted.Endpoint, wanted.Topic);

-- name: unsubscribe
-- By endpoint and topic, whatever the address is now.
delete from {table} where Endpoint = cast(%(endpoint)s as nvarchar(201)) and Topic = cast(%(topic)s as nvarchar(201))

-- name: subscribers
-- Each queue once, however many of the event's types it subscribed to.
select distinct QueueAddress as queueaddress from {table} where Topic in ({topics}) order by QueueAddress

-- name: topic
-- One topic of subscribers.
cast(%(topic_{place})s as nvarchar(201))

-- name: rows
-- For display: locked rows are skipped, and more rows than anybody subscribes to are cut.
select top ({most}) QueueAddress as queueaddress, Endpoint as endpoint, Topic as topic
from {table} with (readpast, readcommittedlock) order by Topic, Endpoint, QueueAddress

-- name: present
-- From the catalog, which lists what the login may see.
select n.name as [schema], t.name as [table]
from openjson(%(schemas)s) s
join openjson(%(tables)s) a on a.[key] = s.[key]
join sys.schemas n on n.name = cast(s.value as nvarchar(128)) collate database_default
join sys.tables t on t.schema_id = n.schema_id and t.name = cast(a.value as nvarchar(128)) collate database_default

-- name: published
-- The newest published messages of an audit queue: the only trace of events that have no subscriber.
select cast(cast(newest.Headers as nvarchar(max)) as varbinary(max)) as headers_utf16
from (select top ({most}) Headers from {table} with (readpast, readcommittedlock) order by RowVersion desc) as newest
where datalength(newest.Headers) < 131072 and newest.Headers like N'%%"NServiceBus.MessageIntent"%%Publish%%'
