-- name: create
-- As an endpoint's installer leaves it; all endpoints of a system share this table.
create table if not exists {table} (
    queueaddress varchar(200) not null,
    endpoint varchar(200) not null,
    topic varchar(200) not null,
    primary key (endpoint, topic)
) with (fillfactor = 100)

-- name: subscribe
-- One row per endpoint and topic: an endpoint that moved replaces its address.
insert into {table} (queueaddress, endpoint, topic)
values (%(queueaddress)s, %(endpoint)s, %(topic)s)
on conflict (endpoint, topic) do update set queueaddress = excluded.queueaddress

-- name: unsubscribe
-- By endpoint and topic, whatever address it has now.
delete from {table} where endpoint = %(endpoint)s and topic = %(topic)s

-- name: subscribers
-- Each queue once, however many of the event's types it asked for.
select distinct queueaddress from {table} where topic = any(%(topics)s::text[]) order by queueaddress
