-- name: create
-- All endpoints of a system share this table.
create table {table} (
    QueueAddress nvarchar(200) not null,
    Endpoint nvarchar(200) not null,
    Topic nvarchar(200) not null,
    primary key clustered (Endpoint, Topic)
)

-- name: subscribe
-- One row per endpoint and topic: an endpoint that moved replaces its address. Two who subscribe at once take turns.
merge {table} with (tablock) as target
using (select %(queueaddress)s as QueueAddress, %(endpoint)s as Endpoint, %(topic)s as Topic) as wanted
on target.Endpoint = wanted.Endpoint and target.Topic = wanted.Topic
when matched then update set QueueAddress = wanted.QueueAddress
when not matched then
    insert (QueueAddress, Endpoint, Topic) values (wanted.QueueAddress, wanted.Endpoint, wanted.Topic);

-- name: unsubscribe
-- By endpoint and topic, whatever address it has now.
delete from {table} where Endpoint = %(endpoint)s and Topic = %(topic)s

-- name: subscribers
-- Each queue once, however many of the event's types it asked for.
select distinct QueueAddress as queueaddress from {table} where Topic in ({topics}) order by QueueAddress

-- name: topic
-- One of subscribers.
%(topic_{place})s
