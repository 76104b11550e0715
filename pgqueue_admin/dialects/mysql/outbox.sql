-- name: create
-- As the original's script makes it, and when each record was written. Ids are compared byte by byte: two that differ by case are two.
create table if not exists {table} (
    MessageId varchar(200) character set utf8mb4 collate utf8mb4_bin not null primary key,
    Dispatched bit(1) not null default b'0',
    DispatchedAt datetime null,
    PersistenceVersion varchar(23) not null,
    Operations json not null,
    CreatedAt timestamp(6) null default current_timestamp(6),
    index Index_DispatchedAt (DispatchedAt),
    index Index_Dispatched (Dispatched)
) default character set ascii
