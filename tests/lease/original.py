"""The statements of oliverlambson/pgmq at 8c2265a, verbatim, as its worker runs them (sheet A3, A4)."""

import json
from datetime import timedelta
from typing import Any

import psycopg

TAKE = """
SELECT 1
FROM messages.message
WHERE id = %s
FOR UPDATE NOWAIT;
"""
LOCK = """
UPDATE messages.message
SET lock_expires_at = CURRENT_TIMESTAMP + %s
WHERE
    id = %s
    AND (lock_expires_at IS NULL OR lock_expires_at < CURRENT_TIMESTAMP)
RETURNING *;
"""
DELETE = "DELETE FROM messages.message WHERE id = %s;"
ARCHIVE = """
INSERT INTO messages.message_archive (
    created_at,
    message,
    result,
    handled_by,
    details
)
VALUES (
    %s,
    %s,
    %s,
    %s,
    %s
)
RETURNING *;
"""
CLEANUP_COPY = """
INSERT INTO messages.message_archive (created_at, message, result, handled_by)
SELECT
    created_at,
    message,
    'lock_expired'::message_status,
    'pg_cron.expired_lock_cleanup' AS handled_by
FROM
    messages.message
WHERE
    lock_expires_at < NOW();
"""
CLEANUP_DELETE = """
DELETE FROM messages.message
WHERE
    lock_expires_at < NOW();
"""
CLEANUP = f"""
CREATE OR REPLACE FUNCTION expired_lock_cleanup() RETURNS void AS $$
BEGIN
    BEGIN
        -- Insert expired messages into the archive table
        {CLEANUP_COPY}
        -- Delete expired messages from the original table
        {CLEANUP_DELETE}
    EXCEPTION
        WHEN OTHERS THEN
            ROLLBACK;
            RAISE;
    END;
END;
$$ LANGUAGE plpgsql;
"""
NOTIFY = """
CREATE OR REPLACE FUNCTION non_locked_notify() RETURNS void AS $$
DECLARE
    message RECORD;
BEGIN
    FOR message IN
        SELECT id FROM messages.message
        WHERE lock_expires_at IS NULL
          AND date_trunc('minute', created_at) < date_trunc('minute', now())
    LOOP
        PERFORM pg_notify('new_message', message.id::TEXT);
    END LOOP;
END;
$$ LANGUAGE plpgsql;
"""

Session = psycopg.Connection[Any]


def retrieve(session: Session, message: int, seconds: float = 60) -> Any | None:
    """Lock the row and return it; None if another worker has it."""
    with session.transaction():
        try:
            session.execute(TAKE, [message])
        except psycopg.errors.LockNotAvailable:
            taken = False
        else:
            taken = True
            row = session.execute(LOCK, [timedelta(seconds=seconds), message]).fetchone()
        if not taken:
            raise psycopg.Rollback
        return row
    return None


def finish(session: Session, row: Any, result: str, details: str | None = None) -> None:
    """As the end of its worker's callback: it checks neither its lock nor what the delete removed."""
    with session.transaction():
        session.execute(DELETE, [row[0]])
        session.execute(ARCHIVE, [row[1], json.dumps(row[2]), result, "worker", details])
