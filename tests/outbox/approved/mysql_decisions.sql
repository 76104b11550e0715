-- For an outbox with other databases: which of its transactions over several databases commit. Safe to run twice.
create table if not exists `Shop_Web_OutboxData_Decision` (
    Id varchar(32) character set ascii collate ascii_bin not null primary key,
    `Databases` text not null,
    DecidedAt timestamp(6) not null default current_timestamp(6)
) engine = InnoDB default character set ascii;
