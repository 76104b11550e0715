"""The page that starts a trial says what it does not cover; each result has an address."""

from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from pgqueue_admin.models import AuditEntry, Endpoint, Trial, database_clock
from pgqueue_admin.services import trials
from pgqueue_admin.services.operations import selection
from tests.archived_messages import person
from tests.console.recorded import REFUSED, Recorded


@pytest.fixture(scope="module")
def billing(looked_at: Recorded) -> list[int]:
    """Dead messages of a queue that our endpoint receives from."""
    Endpoint.objects.create(name="Billing", table="Billing", desired_processes=0)
    return looked_at.dead(4, exception=REFUSED)


@pytest.fixture(scope="module")
def ana(looked_at: Recorded) -> User:
    return person("ana of trials", "retry_message", "discard_message", "read_message")


@pytest.fixture
def as_ana(ana: User) -> Client:
    client = Client()
    client.force_login(ana)
    return client


@pytest.fixture(scope="module")
def trial(billing: list[int], ana: User) -> Trial:
    made = trials.start(billing, ana, "console", "before the retry")
    facts = (("succeeds", "", ""), ("raises", "Shop.OutOf<b>", "order 4711"), ("left", "", "may stand"))
    for position, (outcome, raised, why) in enumerate(facts, 1):
        made.items.filter(position=position).update(outcome=outcome, raised=raised, why=why, same_cause=False)
    return made


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return " ".join(unescape(answer.content.decode()).split())


def test_trial_question_counts_messages_and_names_its_limits(as_ana: Client, billing: list[int]) -> None:
    html = shown(as_ana, f"{reverse('trial_new')}?q=state:dead")
    assert "the first 200 of" in html, html
    assert "What a handler does outside its transaction is not undone" in html
    assert "No supervisor is heard of" in html


def test_message_that_cannot_be_tried_says_why(as_ana: Client, looked_at: Recorded, billing: list[int]) -> None:
    (other,) = looked_at.dead(1, queue='"public"."Newsletter"')
    html = shown(as_ana, f"{reverse('trial_new')}?id={other}")
    assert "Its queue is gone" in html
    assert "None of them can be tried." in html


@pytest.mark.parametrize("asked", ["", "?id=999999999", "?id=x"])
def test_without_a_message_it_teaches(as_ana: Client, looked_at: Recorded, asked: str) -> None:
    html = shown(as_ana, reverse("trial_new") + asked)
    assert ("None of them can be tried" if "9" in asked else "No message is chosen") in html


@pytest.mark.parametrize("asked", ["?q=(", "?q=state:discarded", "?operation=99"])
def test_a_bad_choice_is_said(as_ana: Client, looked_at: Recorded, asked: str) -> None:
    assert 'role="alert"' in shown(as_ana, reverse("trial_new") + asked)


def test_a_trial_is_asked_for_and_audited(as_ana: Client, billing: list[int]) -> None:
    answer = as_ana.post(reverse("trial_new"), {"id": billing[:2], "reason": "is it mended?"})
    made = Trial.objects.latest("id")
    assert (answer.status_code, answer["Location"]) == (303, reverse("trial", args=[made.pk]))
    assert [item.endpoint for item in made.items.all()] == ["Billing", "Billing"]
    entry = AuditEntry.objects.filter(verb="try")[0]
    assert (entry.count, entry.reason, entry.after) == (2, "is it mended?", {"trial": made.pk})
    audit = shown(as_ana, f"{reverse('audit')}?q=did:tried")
    assert reverse("trial", args=[made.pk]) in audit


def test_trial_needs_the_retry_right(looked_at: Recorded, billing: list[int]) -> None:
    client = Client()
    client.force_login(person("vera of trials", "read_message"))
    before = Trial.objects.count()
    assert client.post(reverse("trial_new"), {"id": billing[:1]}).status_code == 303
    assert Trial.objects.count() == before
    assert "needs the right" in shown(client, f"{reverse('trial_new')}?id={billing[0]}")


def test_the_result_says_each(as_ana: Client, trial: Trial) -> None:
    html = shown(as_ana, reverse("trial", args=[trial.pk]))
    assert "1 of 4 messages would succeed, 1 still raises OutOf<b>, 1 left its transaction, 1 to go." in html
    assert "another cause than it died of" in html
    assert "order 4711" in html
    assert "every 2s" in html
    only = shown(as_ana, f"{reverse('trial', args=[trial.pk])}?o=raises")
    assert "order 4711" in only
    assert "may stand" not in only


def test_error_of_a_trial_needs_the_read_right(looked_at: Recorded, trial: Trial) -> None:
    client = Client()
    client.force_login(person("otto of trials", "retry_message"))
    html = shown(client, reverse("trial", args=[trial.pk]))
    assert "OutOf<b>" in html
    assert "order 4711" not in html


def test_trial_not_run_in_time_is_unknown(as_ana: Client, billing: list[int], ana: User) -> None:
    late = trials.start(billing[:1], ana, "console")
    Trial.objects.filter(pk=late.pk).update(until=database_clock.now() - timedelta(seconds=1))
    html = shown(as_ana, reverse("trial", args=[late.pk]))
    assert "0 of 1 message would succeed, 1 is not known." in html
    assert "Nobody tried it in time" in html
    assert "every 2s" not in html


def test_trial_is_offered_on_operation_and_message_pages(as_ana: Client, billing: list[int], ana: User) -> None:
    operation = selection.freeze("retry", billing, ana, "console")
    made = trials.start(billing, ana, "console", operation=operation.pk)
    preview = shown(as_ana, reverse("operation", args=[operation.pk]))
    assert f"{reverse('trial_new')}?operation={operation.pk}" in preview
    assert "Try 4 without effect…" in preview
    assert reverse("trial", args=[made.pk]) in preview
    assert f"{reverse('trial_new')}?id={billing[0]}" in shown(as_ana, reverse("archived_message", args=[billing[0]]))
    assert "Try 4 messages without effect" in shown(as_ana, f"{reverse('trial_new')}?operation={operation.pk}")
