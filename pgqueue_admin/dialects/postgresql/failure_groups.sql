-- name: pending
-- What others archived, and what was there before fingerprints. Rows in somebody's hands are left for the next time. Of a trace
-- both ends: the latest call is at the beginning of .NET's, and at the end of Python's.
select id, result::text as result, exception_type, left(exception_message, 20000) as exception_message,
    case when length(stack_trace) <= 100000 then stack_trace else concat(left(stack_trace, 50000), right(stack_trace, 50000)) end
        as stack_trace,
    left(no_retry, 4000) as no_retry, left(details, 4000) as details
from messages.message_archive where fingerprint is null and result <> 'success'
order by id desc limit %(most)s for update skip locked

-- name: keep
-- Beside what it is: nothing else of the row changes.
update messages.message_archive a set fingerprint = told.fingerprint
from unnest(%(ids)s::integer[], %(fingerprints)s::text[]) as told (id, fingerprint)
where a.id = told.id

-- name: uncovered
-- By the index of those that have none, and no further than the cap.
select count(*) from (
    select from messages.message_archive where fingerprint is null and result <> 'success' limit %(cap)s + 1) as capped
