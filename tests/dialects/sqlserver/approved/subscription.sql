-- create: All endpoints of a system share this table.
create table [dbo].[SubscriptionRouting] (
    QueueAddress nvarchar(200) not null,
    Endpoint nvarchar(200) not null,
    Topic nvarchar(200) not null,
    primary key clustered (Endpoint, Topic)
)

-- subscribe: One row per endpoint and topic: an endpoint that moved replaces its address. Two who subscribe at once take turns.
merge [dbo].[SubscriptionRouting] with (tablock) as target
using (select %(queueaddress)s as QueueAddress, %(endpoint)s as Endpoint, %(topic)s as Topic) as wanted
on target.Endpoint = wanted.Endpoint and target.Topic = wanted.Topic
when matched then update set QueueAddress = wanted.QueueAddress
when not matched then
    insert (QueueAddress, Endpoint, Topic) values (wanted.QueueAddress, wanted.Endpoint, wanted.Topic);

-- unsubscribe: By endpoint and topic, whatever address it has now.
delete from [dbo].[SubscriptionRouting] where Endpoint = %(endpoint)s and Topic = %(topic)s

-- subscribers: Each queue once, however many of the event's types it asked for.
select distinct QueueAddress as queueaddress from [dbo].[SubscriptionRouting] where Topic in (%(topic_0)s, %(topic_1)s) order by QueueAddress

-- topic: One of subscribers.
%(topic_0)s
