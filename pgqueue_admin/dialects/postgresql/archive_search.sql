-- name: state
-- Each part is a condition on a row `a` of the archive; display, counts and acts are composed of the same parts.
a.state = %(value)s

-- name: result
-- By its label: comparing it as an enum needs the type's name, which is the original's.
a.result::text = %(value)s

-- name: unsuccessful
-- Any label but success, also one that is added later.
a.result::text <> 'success'

-- name: kind
-- Transport, lease, control.
a.kind = %(value)s

-- name: kind_message
-- As history counts messages.
a.kind <> 'control'

-- name: queue
-- Original clients name no queue: theirs is the lease queue. For another queue the planner drops that branch.
a.queue = %(value)s or %(value)s::text = '"messages"."message"' and a.queue is null

-- name: within
-- Of the queues that a user may see. Original clients name none: theirs is the lease queue.
coalesce(a.queue, '"messages"."message"') = any (%(values)s::text[])

-- name: queue_starts
-- Behind the schema and its quotes.
position('."' || %(value)s::text in a.queue) > 0

-- name: endpoint
-- Original clients name none either: handled_by stands for it.
a.endpoint = %(value)s or a.endpoint is null and a.kind = 'lease' and a.handled_by = %(value)s

-- name: endpoint_starts
-- Likewise.
starts_with(a.endpoint, %(value)s::text) or a.endpoint is null and a.kind = 'lease' and starts_with(a.handled_by::text, %(value)s::text)

-- name: operation
-- As an array, found by primary key: a semi-join would tempt the planner to walk the archive.
a.id = any (array(select archive_id from messages.operation_item where operation = %(value)s::bigint))

-- name: operation_outcome
-- Likewise, those with this outcome in it.
a.id = any (array(
    select archive_id from messages.operation_item where operation = %(value)s::bigint and outcome = %(outcome)s::text))

-- name: last_operation
-- Messages that nobody has acted on since.
a.operation = %(value)s::bigint

-- name: message_id
-- By its index.
a.message_id = %(value)s

-- name: message_id_starts
-- Row by row: an index serves prefixes in one collation only.
starts_with(a.message_id, %(value)s::text)

-- name: type_has
-- A whole name, or its last part.
a.message_type = %(value)s or right(a.message_type, length(%(value)s) + 1) in ('.' || %(value)s, '+' || %(value)s)

-- name: type_is
-- Exactly this name; an empty one finds messages without a type.
a.message_type = %(value)s or %(value)s::text = '' and a.message_type is null

-- name: type_starts
-- Row by row.
starts_with(a.message_type, %(value)s::text)

-- name: error_has
-- A whole name, or its last part.
a.exception_type = %(value)s or right(a.exception_type, length(%(value)s) + 1) in ('.' || %(value)s, '+' || %(value)s)

-- name: error_is
-- By an index; an empty name finds messages without an error, for which the planner leaves the index.
a.exception_type = %(value)s or %(value)s::text = '' and a.exception_type is null

-- name: error_starts
-- Row by row.
starts_with(a.exception_type, %(value)s::text)

-- name: message_has
-- A part of the error's message, ignoring case.
a.exception_message ilike %(like)s::text

-- name: message_is
-- The whole message.
a.exception_message = %(value)s

-- name: message_starts
-- Its beginning.
starts_with(a.exception_message, %(value)s::text)

-- name: host
-- The machine that the failure names.
a.machine = %(value)s

-- name: host_starts
-- Likewise.
starts_with(a.machine, %(value)s::text)

-- name: fingerprint
-- Apart from others, because tables older than version 6 have no such column.
a.fingerprint = %(value)s

-- name: fingerprints
-- Of several failures.
a.fingerprint = any (%(values)s::text[])

-- name: ids
-- Messages that were found before.
a.id = any (%(value)s::integer[])

-- name: headers
-- In their text as received; it may be no JSON.
a.headers ilike %(like)s::text

-- name: body
-- Compared as bytes: a body may be no text, and its sender chose the encoding.
position(%(bytes)s::bytea in case a.kind when 'lease' then convert_to(a.message::text, 'UTF8') else a.body end) > 0

-- name: anywhere
-- Wherever a person may have read it; of an id a part is enough.
a.exception_message ilike %(like)s::text or a.exception_type ilike %(like)s::text or a.message_type ilike %(like)s::text
    or a.message_id ilike %(like)s::text or a.row_id::text ilike %(like)s::text or a.headers ilike %(like)s::text
    or position(%(bytes)s::bytea in case a.kind when 'lease' then convert_to(a.message::text, 'UTF8') else a.body end) > 0

-- name: header
-- The value behind a header's name, as JSON writes it. Never cast: headers are as received, some truncated or nested.
substring(left(a.headers, 65536) from %(pattern)s::text) = any (%(values)s::text[])

-- name: header_like
-- Its beginning.
substring(left(a.headers, 65536) from %(pattern)s::text) like any (%(values)s::text[])

-- name: header_ilike
-- A part of it, ignoring case.
substring(left(a.headers, 65536) from %(pattern)s::text) ilike any (%(values)s::text[])

-- name: body_path
-- A value within a JSON body.
-- A body that is no JSON, is above 1 MB or opens more than 1,000 brackets does not match: a cast would fail the
-- statement, or exhaust the stack. Bytes that are not ASCII are escaped first, each as its octal number, so that no
-- encoding can fail; the value searched for is escaped likewise. CASE keeps the order of the checks, offset 0 keeps the
-- text from being computed three times.
exists (
    select from (
        select case
            when a.kind = 'lease' then a.message
            when octet_length(a.body) <= 1000000 and position('\x01'::bytea in a.body) = 0 then (
                select case
                    when length(t.text) - length(translate(t.text, '[{{', '')) <= 1000 and pg_input_is_valid(t.text, 'jsonb')
                    then t.text::jsonb end
                from (select replace(
                    regexp_replace(
                        replace(
                            encode(case when substring(a.body from 1 for 3) = '\xefbbbf' then substring(a.body from 4) else a.body end, 'escape'),
                            '\\', chr(1)),
                        '\\([0-7][0-7][0-7])', '\\u0\1', 'g'),
                    chr(1), '\') as text offset 0) t)
            end #> %(path)s::text[] as value
        offset 0
    ) found
    where case when jsonb_typeof(found.value) in ('string', 'number', 'boolean') then found.value #>> '{{}}' end {within})

-- name: can_try_json
-- Servers before 16 learn only by a cast whether a text is JSON, and a failed cast fails the statement.
select exists (select from pg_catalog.pg_proc where proname = 'pg_input_is_valid' and pronamespace = 'pg_catalog'::regnamespace)

-- name: one_of
-- Part of body_path.
= any (%(values)s::text[])

-- name: like_one_of
-- Likewise.
like any (%(values)s::text[])

-- name: ilike_one_of
-- Likewise.
ilike any (%(values)s::text[])

-- name: died_from
-- The time of death; of a success, when it was archived.
a.died_at >= %(value)s::timestamptz

-- name: died_below
-- Likewise.
a.died_at < %(value)s::timestamptz

-- name: died_from_ago
-- By the database's clock, which wrote the time of death.
a.died_at >= now() - make_interval(secs => %(value)s::double precision)

-- name: died_below_ago
-- Likewise.
a.died_at < now() - make_interval(secs => %(value)s::double precision)

-- name: sent_from
-- By the sender's clock.
a.sent_at >= %(value)s::timestamptz

-- name: sent_below
-- Likewise.
a.sent_at < %(value)s::timestamptz

-- name: sent_from_ago
-- Likewise.
a.sent_at >= now() - make_interval(secs => %(value)s::double precision)

-- name: sent_below_ago
-- Likewise.
a.sent_at < now() - make_interval(secs => %(value)s::double precision)

-- name: attempts_from
-- Compared as bigint: a bound may be above any count.
a.attempts >= %(value)s::bigint

-- name: attempts_below
-- Likewise.
a.attempts < %(value)s::bigint

-- name: size_from
-- The length is stored beside the body, which is not read for it.
octet_length(case a.kind when 'lease' then convert_to(a.message::text, 'UTF8') else a.body end) >= %(value)s::bigint

-- name: size_below
-- Likewise.
octet_length(case a.kind when 'lease' then convert_to(a.message::text, 'UTF8') else a.body end) < %(value)s::bigint

-- name: number_from
-- Of the lease queue's own messages: their numbers.
a.seq >= %(value)s::bigint

-- name: number_below
-- Likewise.
a.seq < %(value)s::bigint

-- name: lease_state
-- Likewise, before they end: waiting, locked, over, later.
a.lease_state = %(value)s

-- name: holder_has
-- Likewise, as the holder of the lock named itself.
a.lock_holder ilike %(like)s::text

-- name: holder_is
-- All of it.
a.lock_holder = %(value)s

-- name: holder_starts
-- Its beginning.
starts_with(a.lock_holder, %(value)s::text)

-- name: lane_dead
-- All dead messages are searched before any other.
a.state = 'dead'

-- name: lane_others
-- Those searched after the dead.
a.state <> 'dead'

-- name: in_lane
-- Found first, by columns alone: texts are read of a limited number, whatever the planner thinks of them.
a.id = any (array(
    select a.id from messages.message_archive a
    where {within}
        and (%(newest)s::timestamptz is null or (a.died_at, a.seq) < (%(newest)s::timestamptz, %(newest_seq)s::bigint))
        and (%(oldest)s::timestamptz is null or (a.died_at, a.seq) >= (%(oldest)s::timestamptz, %(oldest_seq)s::bigint))
    order by a.died_at desc, a.seq desc limit %(most)s))

-- name: after_lane
-- Likewise towards the newest.
a.id = any (array(
    select a.id from messages.message_archive a
    where {within} and (a.died_at, a.seq) > (%(newest)s::timestamptz, %(newest_seq)s::bigint)
    order by a.died_at, a.seq limit %(most)s))
