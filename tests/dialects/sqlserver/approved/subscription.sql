-- create: All endpoints of a system share this table.
create table [dbo].[SubscriptionRouting] (
    QueueAddress nvarchar(200) not null,
    Endpoint nvarchar(200) not null,
    Topic nvarchar(200) not null,
    primary key clustered (Endpoint, Topic)
)

-- subscribe: One row per endpoint and topic: an endpoint that moved replaces its address. Concurrent subscribers take turns.
-- The casts are one letter longer than the key: a longer name is refused, not cut. As nvarchar(max), which the driver
-- sends, a name would use no index.
merge [dbo].[SubscriptionRouting] with (holdlock, tablock) as target
using (
    select %(queueaddress)s as QueueAddress, cast(%(endpoint)s as nvarchar(201)) as Endpoint, cast(%(topic)s as nvarchar(201)) as Topic
) as wanted
on target.Endpoint = wanted.Endpoint and target.Topic = wanted.Topic
when matched then update set QueueAddress = wanted.QueueAddress
when not matched then
    insert (QueueAddress, Endpoint, Topic) values (wanted.QueueAddress, wanted.Endpoint, wanted.Topic);

-- unsubscribe: By endpoint and topic, whatever the address is now.
delete from [dbo].[SubscriptionRouting] where Endpoint = cast(%(endpoint)s as nvarchar(201)) and Topic = cast(%(topic)s as nvarchar(201))

-- subscribers: Each queue once, however many of the event's types it subscribed to.
select distinct QueueAddress as queueaddress from [dbo].[SubscriptionRouting] where Topic in (cast(%(topic_0)s as nvarchar(201)), cast(%(topic_1)s as nvarchar(201))) order by QueueAddress

-- topic: One topic of subscribers.
cast(%(topic_0)s as nvarchar(201))

-- rows: For display: locked rows are skipped, and more rows than anybody subscribes to are cut.
select top (10) QueueAddress as queueaddress, Endpoint as endpoint, Topic as topic
from [dbo].[SubscriptionRouting] with (readpast, readcommittedlock) order by Topic, Endpoint, QueueAddress

-- present: From the catalog, which lists what the login may see.
select n.name as [schema], t.name as [table]
from openjson(%(schemas)s) s
join openjson(%(tables)s) a on a.[key] = s.[key]
join sys.schemas n on n.name = cast(s.value as nvarchar(128)) collate database_default
join sys.tables t on t.schema_id = n.schema_id and t.name = cast(a.value as nvarchar(128)) collate database_default

-- published: The newest published messages of an audit queue: the only trace of events that have no subscriber.
select cast(cast(newest.Headers as nvarchar(max)) as varbinary(max)) as headers_utf16
from (select top (10) Headers from [dbo].[SubscriptionRouting] with (readpast, readcommittedlock) order by RowVersion desc) as newest
where datalength(newest.Headers) < 131072 and newest.Headers like N'%%"NServiceBus.MessageIntent"%%Publish%%'
