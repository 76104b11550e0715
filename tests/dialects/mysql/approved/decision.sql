-- create: Lies beside the outbox table. One row is no decision: it holds the name that marks this coordinator's transactions.
create table if not exists `Sales_OutboxData` (
    Id varchar(32) character set ascii collate ascii_bin not null primary key,
    `Databases` text not null,
    DecidedAt timestamp(6) not null default current_timestamp(6)
) engine = InnoDB default character set ascii

-- columns: Columns and engine of the table: an engine without transactions would keep a decision before its commit.
select c.column_name as name, t.engine as engine, exists (
    select 1 from information_schema.statistics s
    where s.table_schema = c.table_schema and s.table_name = c.table_name
    group by s.index_name
    having count(*) = 1 and max(s.column_name = c.column_name) = 1 and max(s.non_unique) = 0
) as is_unique
from information_schema.columns c
join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name
where c.table_schema = coalesce(nullif(%(schema)s, ''), database()) and c.table_name = %(name)s

-- identify: The first process sets the identity; all processes of an endpoint are one coordinator.
insert ignore into `Sales_OutboxData` (Id, `Databases`) values (%(id)s, %(identity)s)

-- identity: The identity that the first process set.
select `Databases` as identity from `Sales_OutboxData` where Id = %(id)s

-- decide: Committed together with the record of the message.
insert into `Sales_OutboxData` (Id, `Databases`) values (%(id)s, %(databases)s)

-- decided: Few rows: a decision is deleted once none of its transactions is prepared any more.
select Id as id, `Databases` as names from `Sales_OutboxData` where Id <> %(id)s

-- wait_briefly: An insert waits one second for an uncommitted insert of the same id. The unit is whole seconds.
set @decision_wait = @@session.innodb_lock_wait_timeout, session innodb_lock_wait_timeout = 1

-- wait_as_before: Restores the lock timeout, since the session is used further.
set session innodb_lock_wait_timeout = @decision_wait

-- forget: By the primary key.
delete from `Sales_OutboxData` where Id in %(ids)s

-- tables: Which of the named tables are decision tables; of the session's database.
select t.table_schema as `schema`, t.table_name as `table` from information_schema.tables t
where t.table_schema = database() and t.table_name in %(names)s and t.table_type = 'BASE TABLE' and 2 = (
    select count(*) from information_schema.columns c
    where c.table_schema = t.table_schema and c.table_name = t.table_name and (
        (c.column_name = 'Id' and c.column_type = 'varchar(32)')
        or (c.column_name = 'Databases' and c.column_type = 'text')))

-- some: The coordinator's identity, and which of these ids it has decided; by the primary key.
select Id as id, `Databases` as names from `Sales_OutboxData` where Id in %(ids)s
