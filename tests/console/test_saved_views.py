"""Saved views: the address of a list under a name, private or shared, which never leads to another site."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from pgqueue_admin.models import AuditEntry, DefaultView, SavedView
from tests.console.pages import Answer
from tests.console.recorded import Recorded

Q = "state:dead type:ChargeCard"


@pytest.fixture(autouse=True)
def none_yet(looked_at: Recorded) -> None:
    SavedView.objects.all().delete()
    AuditEntry.objects.filter(noun="view").delete()


def saved(client: Client, name: str = "Cards", of: str = "archive", query: str = f"q={Q}", **more: str) -> Answer:
    return client.post("/views/", {"of": of, "query": query, "name": name, **more}, follow=True)


def place(name: str = "Cards") -> str:
    """The address of a private view, which has a random slug."""
    return f"/views/{SavedView.objects.get(name=name, is_shared=False).slug}/"


def shown(answer: Any) -> str:
    return " ".join(unescape(re.sub("<[^>]+>", " ", answer.content.decode())).split())


@pytest.mark.parametrize(
    ("page", "query", "kept"),
    [
        ("/archive/", f"q={Q}&facets=open&after=x&w=y&from=z", "q=state%3Adead+type%3AChargeCard&facets=open"),
        ("/archive/", "q=", "q="),
        ("/archive/", "", ""),
        ("/queues/", "q=kind:input&sort=-ready", "q=kind%3Ainput&sort=-ready"),
        ("/failures/", "q=queue:Billing&by=type&after=x", "q=queue%3ABilling&by=type"),
        ("/audit/", "q=who:ana&after=x", "q=who%3Aana"),
    ],
)
def test_view_is_saved_from_its_page_and_opened_again(looked_at: Recorded, page: str, query: str, kept: str) -> None:
    html = looked_at.viewer.get(f"{page}?{query}").content.decode()
    form = looked_at.viewer.get(unescape(re.findall(r'href="(/views/\?of=[^"]+)"', html)[0])).content.decode()
    fields = {name: unescape(value) for name, value in re.findall(r'name="(of|query)" value="([^"]*)"', form)}
    answer = saved(looked_at.viewer, "Mine", **fields)
    address = f"{page}?{kept}" if kept else page
    assert answer.redirect_chain[0] == (address, 303)
    assert "Saved as “Mine”. Only you see it." in shown(answer)
    opened = looked_at.viewer.get(place("Mine"))
    assert (opened.status_code, opened["Location"]) == (302, address)
    if page != "/queues/":
        again = looked_at.viewer.get(address).content.decode()
        assert re.search(rf'href="{place("Mine")}" aria-current="page"\s+title="yours">Mine<', again)


def test_ones_own_are_nobody_elses(looked_at: Recorded) -> None:
    saved(looked_at.viewer)
    assert "Cards" in shown(looked_at.viewer.get("/archive/"))
    for act in ("", "rename/", "remove/"):
        get = looked_at.operator.post if act else looked_at.operator.get
        assert get(place() + act).status_code == 404
    assert "Cards" not in shown(looked_at.operator.get("/archive/"))
    assert "Cards" not in shown(looked_at.operator.get("/views/"))
    assert AuditEntry.objects.filter(noun="view").count() == 0


def test_shared_ones_are_everybodys_and_each_change_is_audited(looked_at: Recorded) -> None:
    answer = saved(looked_at.operator, shared="yes")
    assert "Everybody sees it." in shown(answer)
    assert "Cards" in shown(looked_at.viewer.get("/archive/"))
    assert looked_at.viewer.get("/views/cards/").status_code == 302
    looked_at.second.post("/views/cards/rename/", {"name": "All cards"})
    assert looked_at.viewer.get("/views/cards/").status_code == 302, "the address that was passed on"
    looked_at.second.post("/views/cards/remove/")
    written = AuditEntry.objects.filter(noun="view").order_by("pk").values_list("who", "verb", "subject")
    assert list(written) == [
        ("ana", "create", "Cards"),
        ("tomas", "set", "All cards"),
        ("tomas", "remove", "All cards"),
    ]
    said = shown(looked_at.viewer.get("/audit/?q=on:view"))
    assert "created the shared view Cards" in said
    assert "removed the shared view All cards" in said


def test_sharing_needs_a_right(looked_at: Recorded) -> None:
    assert "needs the right" in shown(looked_at.viewer.get("/views/?of=archive&query=q="))
    assert "Nothing was saved: sharing views needs the right" in shown(saved(looked_at.viewer, shared="yes"))
    assert not SavedView.objects.exists()
    saved(looked_at.operator, shared="yes")
    for act, did in (("rename", "renamed"), ("remove", "removed")):
        answer: Answer = looked_at.viewer.post(f"/views/cards/{act}/", {"name": "x"}, follow=True)
        assert f"Nothing was {did}: sharing views needs the right" in shown(answer)
    assert SavedView.objects.get().name == "Cards"


def test_a_removed_one_is_brought_back(looked_at: Recorded) -> None:
    saved(looked_at.viewer)
    answer: Answer = looked_at.viewer.post(f"{place()}remove/", follow=True)
    assert "Removed “Cards”." in shown(answer)
    form = answer.content.decode().split('action="/views/"')[1].split("</form>")[0]
    fields = {name: unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form)}
    looked_at.viewer.post("/views/", fields)
    assert looked_at.viewer.get(place())["Location"] == "/archive/?q=state%3Adead+type%3AChargeCard"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"name": ""}, "a name has 1 to 60 printable letters"),
        ({"name": "x" * 61}, "a name has 1 to 60 printable letters"),
        ({"name": "a\u202eb"}, "a name has 1 to 60 printable letters"),
        ({"of": "https://evil.example"}, "this page has no views"),
        ({"of": "settings"}, "this page has no views"),
        ({"query": "q=" + "x" * 4_000}, "longer than 4,000 letters"),
    ],
)
def test_invalid_view_is_refused_with_its_reason(looked_at: Recorded, more: dict[str, str], why: str) -> None:
    assert why in shown(saved(looked_at.viewer, **more))
    assert not SavedView.objects.exists()


def test_a_name_is_there_once_for_a_page_and_a_person(looked_at: Recorded) -> None:
    saved(looked_at.viewer)
    assert "there is a view named “cards” already" in shown(saved(looked_at.viewer, "cards"))
    saved(looked_at.viewer, "Cards", of="audit", query="q=who:ivo")
    saved(looked_at.operator, "Cards", shared="yes")
    saved(looked_at.second, "Cards", shared="yes")
    saved(looked_at.operator, "卡", shared="yes")
    shared = SavedView.objects.filter(is_shared=True).values_list("slug", flat=True)
    assert set(shared) == {"cards", "cards-2", "view"}
    own = SavedView.objects.get(name="Cards", page="audit", is_shared=False)
    answer: Answer = looked_at.viewer.post(f"/views/{own.slug}/rename/", {"name": "Ivo"}, follow=True)
    assert "“Cards” is “Ivo” now." in shown(answer)


def test_view_names_of_colleagues_are_not_revealed(looked_at: Recorded) -> None:
    """Not by the address of one's own view, nor by a refusal, nor by guessing."""
    saved(looked_at.operator, "Incident Acme")
    saved(looked_at.second, "Incident Acme")
    hidden = [view.slug for view in SavedView.objects.all()]
    assert all(re.fullmatch("incident-acme-[0-9a-f]{8}", slug) for slug in hidden)
    assert len(set(hidden)) == 2
    assert "Saved" in shown(saved(looked_at.second, "Incident Acme", shared="yes"))
    assert SavedView.objects.get(is_shared=True).slug == "incident-acme"
    saved(looked_at.operator, "Sound", shared="yes")
    answer: Answer = looked_at.second.post("/views/sound/rename/", {"name": "Incident Acme"}, follow=True)
    assert "“Sound” is “Incident Acme” now." in shown(answer), "the other of that name is its owner's own"


def test_reused_user_name_inherits_no_views(looked_at: Recorded) -> None:
    first = looked_at.signed_in("jo", [])
    saved(first)
    User.objects.filter(username="jo").update(username="jo2")
    second = looked_at.signed_in("jo", [])
    assert "Cards" not in shown(second.get("/views/"))
    assert "Cards" in shown(first.get("/views/"))
    assert "Saved as “Cards”" in shown(saved(second))
    User.objects.filter(username__in=("jo", "jo2")).delete()
    assert not SavedView.objects.exists()


def test_shared_view_outlives_its_owner(looked_at: Recorded) -> None:
    leaves = looked_at.signed_in("leaves", Permission.objects.filter(codename="change_settings"))
    saved(leaves), saved(leaves, "All", shared="yes")
    User.objects.get(username="leaves").delete()
    assert [(view.name, view.owner, view.person) for view in SavedView.objects.all()] == [("All", "leaves", None)]
    assert "shared by leaves" in shown(looked_at.viewer.get("/views/"))


def test_saved_views_are_limited_in_number(looked_at: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgqueue_admin.services.saved_views.MOST", 1)
    saved(looked_at.operator)
    assert "1 views are yours, which is the most" in shown(saved(looked_at.operator, "Others"))
    assert "Everybody sees it" in shown(saved(looked_at.operator, "Others", shared="yes"))
    assert "which is the most" in shown(saved(looked_at.second, "Third", shared="yes"))


@pytest.mark.parametrize(
    ("page", "query", "leads"),
    [
        ("archive", "next=//evil.example&q=x", "/archive/?q=x"),
        ("//evil.example", "q=x", None),
        ("sign_out", "", None),
        ("archive", "//evil.example", "/archive/"),
        ("archive", "q=x#@evil.example\r\nSet-Cookie: a=b", "/archive/?q=x%23%40evil.example%0D%0ASet-Cookie%3A+a%3Db"),
    ],
)
def test_any_view_row_leads_to_a_console_page_only(
    looked_at: Recorded, page: str, query: str, leads: str | None
) -> None:
    SavedView.objects.create(slug="odd", name="Odd", page=page[:20], query=query, owner="ivo", is_shared=True)
    answer = looked_at.viewer.get("/views/odd/")
    assert answer.status_code == (302 if leads else 404)
    assert answer.headers.get("Location") == leads
    assert looked_at.viewer.get("/views/").status_code == 200


def test_empty_teaches_where_they_come_from(looked_at: Recorded) -> None:
    assert "No view yet" in shown(looked_at.viewer.get("/views/"))
    assert looked_at.viewer.get(reverse("views") + "?of=nothing&query=x").status_code == 200


@pytest.mark.parametrize("page", ["archive", "queues", "failures", "audit"])
def test_a_list_opens_with_the_view_that_a_person_chose(looked_at: Recorded, page: str) -> None:
    query = {"archive": "q=state%3Adead+type%3AChargeCard", "queues": "q=Billing", "failures": "by=type"}.get(
        page, "q=who%3Aana"
    )
    answer = saved(looked_at.viewer, "Mine", page, query, opens="yes")
    assert "opens with it for you" in shown(answer)
    opened = looked_at.viewer.get(f"/{page}/")
    assert (opened.status_code, opened["Location"]) == (302, f"/{page}/?{query}")
    assert looked_at.viewer.get(f"/{page}/?view=none").status_code == 200
    assert looked_at.operator.get(f"/{page}/").status_code == 200, "of nobody else"
    if page != "queues":
        assert f'href="/{page}/?view=none"' in looked_at.viewer.get(opened["Location"]).content.decode()
    looked_at.viewer.post(f"{place('Mine')}default/", {"plain": "yes"})
    assert looked_at.viewer.get(f"/{page}/").status_code == 200


def test_a_shared_one_may_be_chosen_and_goes_with_it(looked_at: Recorded) -> None:
    view = SavedView.objects.create(slug="all", name="All", page="archive", query="q=", owner="x", is_shared=True)
    other = SavedView.objects.create(slug="other", name="Other", page="archive", query="q=x", owner="x", is_shared=True)
    for each in (view, other):
        assert "For others nothing changes" in shown(looked_at.viewer.post(f"/views/{each.slug}/default/", follow=True))
    assert looked_at.viewer.get("/archive/")["Location"] == "/archive/?q=x"
    assert "Archive opens with it" in shown(looked_at.viewer.get("/views/"))
    other.delete()
    assert looked_at.viewer.get("/archive/").status_code == 200


def test_unshared_view_of_another_is_no_default(looked_at: Recorded) -> None:
    saved(looked_at.viewer)
    assert looked_at.operator.post(f"{place()}default/").status_code == 404
    DefaultView.objects.create(
        person=User.objects.get(username=looked_at.operator.get("/me/").context["user"].username),
        page="archive",
        view=SavedView.objects.get(),
    )
    assert looked_at.operator.get("/archive/").status_code == 200
