-- begin: Until the transaction ends, the server refuses commit, rollback and DDL.
xa begin 'a', 'stock', 1

-- end: The transaction takes no more writes.
xa end 'a', 'stock', 1

-- prepare: From here on the transaction survives its session and a restart of the server.
xa prepare 'a', 'stock', 1

-- commit: Another session can do it only once the session that prepared it is gone.
xa commit 'a', 'stock', 1

-- rollback: Another session can do it only once the session that prepared it is gone.
xa rollback 'a', 'stock', 1

-- prepared: The prepared transactions of the whole server.
xa recover
