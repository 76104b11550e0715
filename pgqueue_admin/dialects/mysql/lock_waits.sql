-- name: behind_prepared
-- Lock waits behind prepared transactions, which no session has. Of the whole server; MariaDB only, needs PROCESS.
select l.lock_table as `table`, w.requesting_trx_id as waits
from information_schema.innodb_lock_waits w
join information_schema.innodb_trx b on b.trx_id = w.blocking_trx_id and b.trx_mysql_thread_id = 0
join information_schema.innodb_locks l on l.lock_id = w.blocking_lock_id
