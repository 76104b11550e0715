-- name: begin
-- Until the transaction ends, the server refuses commit, rollback and DDL.
xa begin {xid}

-- name: end
-- The transaction takes no more writes.
xa end {xid}

-- name: prepare
-- From here on the transaction survives its session and a restart of the server.
xa prepare {xid}

-- name: commit
-- Another session can do it only once the session that prepared it is gone.
xa commit {xid}

-- name: rollback
-- Another session can do it only once the session that prepared it is gone.
xa rollback {xid}

-- name: prepared
-- The prepared transactions of the whole server.
xa recover
