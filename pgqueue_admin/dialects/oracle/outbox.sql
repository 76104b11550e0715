-- name: create
-- The original's table and CreatedAt, when a record was written. Columns are unquoted: the catalog has them in upper case.
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
-- One record per message.
alter table {table} add primary key (MessageId)

-- name: create_index
-- The original's index: finds undispatched records and those due for clean-up.
create index {index} on {table} (Dispatched, DispatchedAt)

-- name: indexes
-- The leading columns of the table's indexes.
select distinct k.column_name as "name"
from sys.all_indexes i
join sys.all_ind_columns k on k.index_owner = i.owner and k.index_name = i.index_name and k.column_position = 1
where i.table_owner = nvl(:owner, sys_context('userenv', 'current_schema')) and i.table_name = :name and i.status <> 'UNUSABLE'

-- name: columns
-- The table's columns, and whether each alone is a unique key.
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
-- The user, if it lacks the grant that the leader's lock needs: this view lists only what the user may use.
select sys_context('userenv', 'session_user') as "name" from sys.dual
where not exists (
    select 1 from sys.all_objects where owner = 'SYS' and object_name = 'DBMS_LOCK' and object_type = 'PACKAGE'
)

-- name: find
-- The first query for each message. A session or column that compares by a language may match other ids: bytes decide.
select MessageId as "id", Dispatched as "dispatched", Operations as "operations"
from {table}
where MessageId = unistr(:id) and nlssort(MessageId, 'NLS_SORT=BINARY') = nlssort(unistr(:id), 'NLS_SORT=BINARY')

-- name: store
-- Waits for an uncommitted insert of the same id. The server has no timeout for that, so the driver needs one.
-- The operations come last, as long values must, and not in a block, which takes no value longer than 32,767 bytes.
insert into {table} (MessageId, PersistenceVersion, Operations) values (unistr(:id), :version, :operations)

-- name: complete
-- Pessimistic: the record exists already, and no other session can have it.
update {table} set Operations = :operations where MessageId = unistr(:id)

-- name: mark
-- Once: if the relay has marked the record meanwhile, it fails, and what this transaction sends is not sent.
begin
    update {table} set Dispatched = 1, DispatchedAt = sys_extract_utc(systimestamp), Operations = '[]'
    where MessageId = unistr(:id) and Dispatched = 0;
    if sql%rowcount = 0 then
        raise_application_error(-20001, 'the record was marked as dispatched already');
    end if;
end;

-- name: work
-- One check a minute, by the index. The lock belongs to the session, across its commits: a killed leader loses it.
-- A row lock would end with the first batch. Requested by number: a name would be written into the catalog, and
-- committed, each time.
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
-- By CreatedAt, in tables of ours. A time in the future is a wrong clock's: the record would wait for it.
CreatedAt not between sys_extract_utc(systimestamp) - numtodsinterval(:grace / 1000000, 'second')
    and sys_extract_utc(systimestamp) + numtodsinterval(:grace / 1000000, 'second')

-- name: is_undated
-- The original's table has no creation time: the caller remembers when it first saw a record.
:grace is not null

-- name: purge
-- Without what another cleaner has locked.
-- By a cursor: rownum counts rows before locked ones are skipped, so a second cleaner would find nothing.
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
-- Records that a crash left between commit and dispatch. A worker about to dispatch one has it locked, or waits for us.
-- What was dispatched before it was locked is checked again. Ids come as JSON: an in-list takes 1,000.
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
