"""A queue whose own trigger fails under our search path takes no retry; the reason is reported."""

from django.contrib.auth.models import User

from pgqueue_admin.archive import dead_messages
from pgqueue_admin.models.queue_database import queue_database
from tests.archived_messages import BILLING, REFUSED, archived, dead, number_in

NOTES = """
create table public.noted (id uuid);
create function public.note_it() returns trigger language plpgsql as $$
    begin insert into noted values (new.id); return new; end $$;
create trigger note_it before insert on public."Billing" for each row execute function public.note_it()
"""


def test_its_messages_fail_with_the_servers_words_and_the_cure(ana: User) -> None:
    ours = dead(exception=REFUSED)[0]
    other = next(each for each in dead(500) if each.queue not in {BILLING, None} and each.has_target)
    with queue_database().write_session() as session:
        session.run(NOTES)
        before = number_in(BILLING)
        failed, done = dead_messages.retry(session, [ours.id, other.id], "ana")
        assert (failed.result, done.result) == ("failed", "done")
        assert 'relation "noted" does not exist' in str(failed.why)
        assert "alter function public.note_it() set search_path = public, pg_temp" in str(failed.why)
        assert (archived(ours.id).state, number_in(BILLING)) == ("dead", before)
        session.run("alter function public.note_it() set search_path = public, pg_temp")
        assert [each.result for each in dead_messages.retry(session, [ours.id], "ana")] == ["done"]
