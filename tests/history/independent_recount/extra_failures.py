"""Failures that the recorded shop lacks: beside a retry's success, a new error, messages dead twice on one day, steps
weeks after others.
"""

from typing import Any


def added(database: Any) -> None:
    for each in (_FAILED_TOO, _HANDLED_TWICE, _DIED_AGAIN, _A_WEEK_LATER):
        database.run(each)


_RETRIED = """
select
    told ->> 'NServiceBus.MessageId' as message_id,
    row_number() over (order by told ->> 'NServiceBus.MessageId') as place,
    to_timestamp(told ->> 'NServiceBus.ProcessingEnded', 'YYYY-MM-DD HH24:MI:SS:US') as ended_at
from (select headers::jsonb as told from audit) audit where told ? 'ServiceControl.Retry.UniqueMessageId'
"""
_FAILED_TOO = f"""
insert into messages.message_archive (
    created_at, message, result, handled_by, kind, queue, message_id, message_type, headers, body, exception_type,
    exception_message, stack_trace, failed_queue, endpoint, sent_at, died_at
)
select
    created_at, message, result, handled_by, kind, queue, retried.message_id, message_type,
    replace(replace(headers, dead.message_id, retried.message_id), exception_type, error), body, error,
    exception_message, stack_trace, failed_queue, endpoint, sent_at,
    retried.ended_at + case when place > 2 then interval '-90 seconds' else '90 seconds' end
from ({_RETRIED}) retried, (
    select * from messages.message_archive where endpoint = 'Sales' order by seq limit 1
) dead, lateral (
    select case when retried.ended_at < '2026-11-18' then exception_type else 'Shop.New' end as error
) failure
"""
_HANDLED_TWICE = """
insert into audit (id, headers, body)
select gen_random_uuid(), headers, body from audit where headers like '%"ServiceControl.Retry.UniqueMessageId"%'
order by seq limit 1
"""
_DIED_AGAIN = """
insert into messages.message_archive (
    created_at, message, result, handled_by, kind, queue, message_id, message_type, headers, body, exception_type,
    exception_message, stack_trace, failed_queue, endpoint, sent_at, died_at
)
select
    created_at, message, result, handled_by, kind, queue, message_id, message_type, headers, body, exception_type,
    exception_message, stack_trace, failed_queue, endpoint, sent_at,
    date_trunc('day', died_at, 'UTC') + case when died_at < date_trunc('day', died_at, 'UTC') + interval '20 hours'
        then interval '20 hours' else '1 hour' end
from messages.message_archive where exception_type is not null and died_at >= '2026-11-14' and died_at < '2026-11-15'
order by seq limit 30
"""
_A_WEEK_LATER = """
insert into audit (id, headers, body)
select gen_random_uuid(), replace(headers, '2026-11-14 12:', '2026-11-21 12:'), body from audit
where headers like '%"NServiceBus.ProcessingEnded":"2026-11-14 12:%' order by seq limit 300
"""
