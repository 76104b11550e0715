"""The engine's tables as earlier versions of the program created them."""

from pgqueue_admin.archive import foreign_code
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

ARCHIVE_NAMES = {
    "became": "resolution",
    "became_by": "resolved_by",
    "became_at": "resolved_at",
    "found_in": "ingested_from",
    "no_retry": "retry_blocked_reason",
}

WITHOUT_LEASES = """
drop view messages.message_dead;
drop trigger lease_note_deleted on messages.message;
drop trigger lease_mark_ending on messages.message_archive;
drop function messages.note_deleted(), messages.mark_ending();
drop table messages.notify_round;
alter table messages.message alter column created_at set default current_timestamp, drop column attempts,
    drop column available_at, drop column lock_token, drop column token_expires_at, drop column release_expired;
drop index messages.message_archive_endings;
alter table messages.message_archive drop column second_ending_of,
    alter column archived_at set default current_timestamp;
create view messages.message_dead as select * from messages.message_archive where state = 'dead';
"""

WITHOUT_SCHEDULES = """
drop function messages.run_schedules(integer, interval, text);
drop function messages.send_scheduled(messages.schedule, timestamptz, timestamp);
drop table messages.schedule_run, messages.schedule_look, messages.schedule;
"""


WITHOUT_RETRIES = """
drop view messages.message_dead;
drop trigger lease_note_retried on messages.message;
drop function messages.note_retried();
alter table messages.message drop column retried_from;
alter table messages.message_archive drop column retried_as;
create view messages.message_dead as select * from messages.message_archive where state = 'dead';
"""


WITHOUT_DELIVERIES = """
drop trigger lease_deliver_dead on messages.message_archive;
drop function messages.deliver_dead();
drop table messages.dead_delivery, messages.dead_consumer;
"""


WITHOUT_FINGERPRINTS = """
drop view messages.message_dead;
alter table messages.message_archive drop column fingerprint;
create view messages.message_dead as select * from messages.message_archive where state = 'dead';
"""


WITHOUT_STAGES = "alter table messages.operation_item drop column sent_as, drop column left_at"


WITHOUT_CROSSINGS = "drop table messages.crossing_put, messages.crossing_copy, messages.crossing"


WITHOUT_RULES = """
alter table messages.message drop column lock_holder;
drop trigger lease_keep_for_rules on messages.message_archive;
drop function messages.keep_for_rules();
drop table messages.lease_rule, messages.lease_rule_dead, messages.lease_rule_retry;
"""


WITHOUT_TALLIES = """
drop trigger failure_died on messages.message_archive;
drop trigger failure_changed on messages.message_archive;
drop trigger failure_deleted on messages.message_archive;
drop trigger failure_truncated on messages.message_archive;
drop function messages.count_failure(), messages.count_changed_failures(), messages.count_deleted_failures(),
    messages.count_no_failures(), messages.recount_failures();
drop table messages.failure_tally, messages.failure_change;
"""


ITEMS_AS_BEFORE = """
alter table messages.operation_item rename column previous_actor to who_before;
alter table messages.operation_item rename column previous_at to when_before;
"""


def set_back(engine: Connection, version: int) -> None:
    """Return the schema to what the program created at that version; keep the rows."""
    if version < 13:
        engine.run(ITEMS_AS_BEFORE)
    if version < 12:
        _send_unasked(engine)
    if version < 11:
        engine.run(WITHOUT_TALLIES)
    if version < 10:
        engine.run(WITHOUT_RULES)
    if version < 9:
        engine.run(WITHOUT_CROSSINGS)
    if version < 8:
        _name_as_before(engine)
    if version < 7:
        engine.run(WITHOUT_STAGES)
    if version < 6:
        engine.run(WITHOUT_FINGERPRINTS)
    if version < 5:
        engine.run(WITHOUT_DELIVERIES)
        engine.run(WITHOUT_RETRIES)
        engine.run(WITHOUT_SCHEDULES)
    if version < 4:
        engine.run(WITHOUT_LEASES)
    if version < 3:
        engine.run("alter function public.new_message_nofify() reset search_path")
        engine.run("drop view messages.message_dead; alter table messages.message_archive drop column retry_token")
        engine.run("create view messages.message_dead as select * from messages.message_archive where state = 'dead'")
    if version < 2:
        engine.run("drop table messages.history_reader")
    engine.run(f"update messages.engine_schema set version = {version}")


def _send_unasked(engine: Connection) -> None:
    """The schedule function without its check for foreign triggers on a queue."""
    parts = foreign_code.parts(foreign_code.INSERT)
    head, begin, rest = postgresql().schema.create_schedule_functions(**parts).as_string(None).partition("\nbegin\n")
    _, insert, rest = rest.partition("    if sent.kind = 'lease'")
    engine.run((head + begin + insert + rest).replace("%%", "%"))


def _name_as_before(engine: Connection) -> None:
    for before, now in ARCHIVE_NAMES.items():
        engine.run(f"alter table messages.message_archive rename column {now} to {before}")
        engine.run(f"alter view messages.message_dead rename column {now} to {before}")
    engine.run("alter table messages.operation_item rename column position to place")
    function = postgresql().schema.note_retried().as_string(None)
    engine.run(function.replace("set resolution =", "set became =").replace("%", "%%"))
    engine.run("alter function messages.note_retried() set search_path = pg_catalog, pg_temp")
