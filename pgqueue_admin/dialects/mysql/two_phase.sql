-- name: begin
-- Until its end neither commit nor rollback nor DDL is taken.
xa begin {xid}

-- name: end
-- Nothing is written in it any more.
xa end {xid}

-- name: prepare
-- From here on it outlives session and server.
xa prepare {xid}

-- name: commit
-- By another session only once the one that prepared it is gone.
xa commit {xid}

-- name: rollback
-- By another session only once the one that prepared it is gone.
xa rollback {xid}

-- name: prepared
-- Of the whole server.
xa recover
