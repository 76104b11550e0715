-- name: create
-- The original's, and when each record was written. Columns are not quoted: the catalog has them in upper case.
create table {table} (
    MessageId nvarchar2(200) not null,
    Dispatched number(1,0) default 0 not null check (Dispatched in (0, 1)),
    DispatchedAt timestamp,
    PersistenceVersion varchar2(23) not null,
    Operations clob not null,
    CreatedAt timestamp default sys_extract_utc(systimestamp),
    constraint {key} primary key (MessageId)
)

-- name: add_key
-- One record of a message.
alter table {table} add primary key (MessageId)

-- name: create_index
-- The original's: what is undispatched and what is to be cleaned up are looked up by it.
create index {index} on {table} (Dispatched, DispatchedAt)

-- name: indexes
-- Which columns lead an index.
select distinct k.column_name as "name"
from sys.all_indexes i
join sys.all_ind_columns k on k.index_owner = i.owner and k.index_name = i.index_name and k.column_position = 1
where i.table_owner = nvl(:owner, sys_context('userenv', 'current_schema')) and i.table_name = :name and i.status <> 'UNUSABLE'

-- name: columns
-- What the table has, and which column alone is a unique key.
select c.column_name as "name",
    case
        when c.data_type in ('NVARCHAR2', 'VARCHAR2') then c.data_type || '(' || c.char_length || ')'
        when c.data_type = 'NUMBER' then c.data_type || '(' || c.data_precision || ',' || c.data_scale || ')'
        else c.data_type
    end as "type",
    case when exists (
        select 1 from sys.all_indexes i
        join sys.all_ind_columns k on k.index_owner = i.owner and k.index_name = i.index_name and k.column_position = 1
        where i.table_owner = c.owner and i.table_name = c.table_name and k.column_name = c.column_name
          and i.uniqueness = 'UNIQUE' and i.status <> 'UNUSABLE'
          and not exists (
            select 1 from sys.all_ind_columns o
            where o.index_owner = i.owner and o.index_name = i.index_name and o.column_position = 2)
    ) then 1 else 0 end as "is_unique"
from sys.all_tab_columns c
where c.owner = nvl(:owner, sys_context('userenv', 'current_schema')) and c.table_name = :name

-- name: may_not_lead
-- Whom the grant is missing that the lock of the leader needs; what may not be used is not in this view.
select sys_context('userenv', 'session_user') as "name" from sys.dual
where not exists (
    select 1 from sys.all_objects where owner = 'SYS' and object_name = 'DBMS_LOCK' and object_type = 'PACKAGE'
)

-- name: find
-- Asked first of each message. Where a session or a column compares by a language two ids may be one: only the same bytes were handled.
select MessageId as "id", Dispatched as "dispatched", Operations as "operations"
from {table}
where MessageId = unistr(:id) and nlssort(MessageId, 'NLS_SORT=BINARY') = nlssort(unistr(:id), 'NLS_SORT=BINARY')

-- name: store
-- Who inserts the same waits for the one before him: the server knows no limit of that, so the driver has to. The operations come
-- last, as long values must, and not in a block, which takes none that are longer than 32,767 bytes.
insert into {table} (MessageId, PersistenceVersion, Operations) values (unistr(:id), :version, :operations)

-- name: complete
-- Pessimistic: the record is there already, and nobody else can have it.
update {table} set Operations = :operations where MessageId = unistr(:id)

-- name: mark
-- Once: where the relay marked it meanwhile, what is sent in this transaction is not sent.
begin
    update {table} set Dispatched = 1, DispatchedAt = sys_extract_utc(systimestamp), Operations = '[]'
    where MessageId = unistr(:id) and Dispatched = 0;
    if sql%rowcount = 0 then
        raise_application_error(-20001, 'the record was marked as dispatched already');
    end if;
end;

-- name: work
-- One look a minute, by the index. The lock is the session's, over its commits: a leader that is killed leads no more. A row's lock
-- would end with the first batch. By number: a name would be written into the catalog, and committed, each time.
declare
    leads integer := sys.dbms_lock.request(
        id => sys.dbms_utility.get_hash_value(
            'pgqueue outbox ' || nvl(:owner, sys_context('userenv', 'current_schema')) || '.' || :name, 0, 1073741824
        ),
        lockmode => sys.dbms_lock.x_mode,
        timeout => 0,
        release_on_commit => false
    );
    answer sys_refcursor;
begin
    open answer for
        select case when leads in (0, 4) then 1 else 0 end as "leads",
            case when exists (
                select 1 from {table}
                where Dispatched = 1
                  and DispatchedAt < sys_extract_utc(systimestamp) - numtodsinterval(:keep / 1000000, 'second')
            ) then 1 else 0 end as "purge",
            case when exists (select 1 from {table} where Dispatched = 0 and {is_over}) then 1 else 0 end as "relay"
        from sys.dual;
    sys.dbms_sql.return_result(answer);
end;

-- name: is_over
-- By when it was written, where the table is one of ours. What is of the future was written by a clock that was wrong: it would wait for it.
CreatedAt not between sys_extract_utc(systimestamp) - numtodsinterval(:grace / 1000000, 'second')
    and sys_extract_utc(systimestamp) + numtodsinterval(:grace / 1000000, 'second')

-- name: is_undated
-- The original's table does not say when a record was written: whoever asks remembers when he saw it first.
:grace is not null

-- name: purge
-- What another cleaner has locked he deletes. By a cursor: rownum is counted before what is locked is left out, so a second cleaner
-- would find nothing.
declare
    cursor due is
        select rowidtochar(rowid) from {table}
        where Dispatched = 1 and DispatchedAt < sys_extract_utc(systimestamp) - numtodsinterval(:keep / 1000000, 'second')
        for update skip locked;
    found sys.odcivarchar2list;
    answer sys_refcursor;
begin
    open due;
    fetch due bulk collect into found limit {most};
    close due;
    forall place in 1 .. found.count
        delete from {table} where rowid = chartorowid(found(place));
    open answer for select count(*) as "deleted" from table(found);
    sys.dbms_sql.return_result(answer);
end;

-- name: pending
-- What a crash left between commit and dispatch; a worker that is about to send it has it locked, or waits for us. What was sent
-- before it was locked is looked at again. As JSON: an in-list takes 1,000.
declare
    cursor waiting is
        select rowidtochar(rowid) from {table}
        where Dispatched = 0 and {is_over}
          and not exists (
            select 1 from json_table(:without, '$[*]' columns (id varchar2(4000) path '$')) seen
            where unistr(seen.id) = MessageId)
        for update skip locked;
    found sys.odcivarchar2list;
    answer sys_refcursor;
begin
    open waiting;
    fetch waiting bulk collect into found limit {most};
    close waiting;
    open answer for
        select MessageId as "id", Dispatched as "dispatched", Operations as "operations" from {table}
        where rowid in (select chartorowid(column_value) from table(found)) and Dispatched = 0;
    sys.dbms_sql.return_result(answer);
end;
