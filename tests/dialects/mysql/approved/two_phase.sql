-- begin: Until its end neither commit nor rollback nor DDL is taken.
xa begin 'a', 'stock', 1

-- end: Nothing is written in it any more.
xa end 'a', 'stock', 1

-- prepare: From here on it outlives session and server.
xa prepare 'a', 'stock', 1

-- commit: By another session only once the one that prepared it is gone.
xa commit 'a', 'stock', 1

-- rollback: By another session only once the one that prepared it is gone.
xa rollback 'a', 'stock', 1

-- prepared: Of the whole server.
xa recover
