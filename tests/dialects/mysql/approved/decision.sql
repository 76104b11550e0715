-- create: Beside the outbox table. One row is no decision: it says by which name this coordinator's transactions are known.
create table if not exists `Sales_OutboxData` (
    Id varchar(32) character set ascii collate ascii_bin not null primary key,
    `Databases` text not null,
    DecidedAt timestamp(6) not null default current_timestamp(6)
) engine = InnoDB default character set ascii

-- columns: What the table has; a table without transactions would decide at once.
select c.column_name as name, t.engine as engine, exists (
    select 1 from information_schema.statistics s
    where s.table_schema = c.table_schema and s.table_name = c.table_name
    group by s.index_name
    having count(*) = 1 and max(s.column_name = c.column_name) = 1 and max(s.non_unique) = 0
) as is_unique
from information_schema.columns c
join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name
where c.table_schema = coalesce(nullif(%(schema)s, ''), database()) and c.table_name = %(name)s

-- identify: Whoever comes first: all processes of an endpoint are one coordinator.
insert ignore into `Sales_OutboxData` (Id, `Databases`) values (%(id)s, %(identity)s)

-- identity: As the first has said.
select `Databases` as identity from `Sales_OutboxData` where Id = %(id)s

-- decide: One commit with the record of the message.
insert into `Sales_OutboxData` (Id, `Databases`) values (%(id)s, %(databases)s)

-- decided: Few: each is forgotten once nothing is prepared of it.
select Id as id, `Databases` as names from `Sales_OutboxData` where Id <> %(id)s

-- wait_briefly: For who inserts the same: he has not ended. In whole seconds: there is none shorter.
set @decision_wait = @@session.innodb_lock_wait_timeout, session innodb_lock_wait_timeout = 1

-- wait_as_before: The session goes on.
set session innodb_lock_wait_timeout = @decision_wait

-- forget: By the key.
delete from `Sales_OutboxData` where Id in %(ids)s

-- tables: Of these, which are tables of decisions; of the session's database.
select t.table_schema as `schema`, t.table_name as `table` from information_schema.tables t
where t.table_schema = database() and t.table_name in %(names)s and t.table_type = 'BASE TABLE' and 2 = (
    select count(*) from information_schema.columns c
    where c.table_schema = t.table_schema and c.table_name = t.table_name and (
        (c.column_name = 'Id' and c.column_type = 'varchar(32)')
        or (c.column_name = 'Databases' and c.column_type = 'text')))

-- some: Who decides there, and which of these it has decided; by the key.
select Id as id, `Databases` as names from `Sales_OutboxData` where Id in %(ids)s
