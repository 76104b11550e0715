"""Signed out or with an outdated form: the act is not done, the page says so, and it can be pressed again there."""

import asyncio
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application
from django.test import Client

SIGNED_OUT = "Nothing was done: you had been signed out"
OLD_FORM = "Nothing was changed: the page was open from before you last signed in."
PAGE = "http://testserver/archive/7/?q=state%3Adead"


def test_an_act_comes_back_to_the_page_it_was_pressed_on(stranger: Client, viewer: User) -> None:
    answer = stranger.post("/operations/5/start/", {"reason": "x"}, headers={"referer": PAGE})
    assert answer["Location"] == "/sign-in/?next=/archive/7/%3Fq%3Dstate%253Adead"


def test_next_field_of_the_form_wins_over_the_referer(stranger: Client) -> None:
    answer = stranger.post("/operations/", {"next": "/archive/?q=x"}, headers={"referer": PAGE})
    assert answer["Location"] == "/sign-in/?next=/archive/%3Fq%3Dx"


@pytest.mark.parametrize(
    "referer",
    ["", "https://elsewhere.example/", "http://testserver.example/", "//x/", "http://testserver//elsewhere.example/"],
)
def test_no_other_place_is_come_back_to(stranger: Client, referer: str) -> None:
    answer = stranger.post("/operations/5/start/", headers={"referer": referer} if referer else {})
    assert answer["Location"] == "/sign-in/?next=/"


def test_undone_act_is_mentioned_before_and_after_the_sign_in(stranger: Client, viewer: User) -> None:
    asked = stranger.post("/operations/", {"next": "/operations/"}, follow=True)
    assert SIGNED_OUT in asked.content.decode()
    fields = {"username": viewer.username, "password": "looks", "next": "/operations/"}
    assert SIGNED_OUT in stranger.post("/sign-in/", fields, follow=True).content.decode()
    assert SIGNED_OUT not in stranger.get("/operations/").content.decode()


@pytest.mark.parametrize("headers", [{"hx-request": "true"}, {"accept": "text/event-stream"}])
@pytest.mark.parametrize("path", ["/me/keys/", "/live/?t=frame"])
def test_a_part_of_a_page_is_no_place_to_sign_in(stranger: Client, path: str, headers: dict[str, str]) -> None:
    assert stranger.get(path, headers=headers).status_code == 401


def test_a_header_that_htmx_would_not_send_asks_for_a_page(stranger: Client) -> None:
    assert stranger.get("/me/keys/", headers={"hx-request": "false"})["Location"] == "/sign-in/?next=/me/keys/"


def old(person: User) -> Client:
    """The browser of a user who signed in again in another tab."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(person)
    client.get("/operations/")
    return client


def test_an_old_form_leads_back_to_its_page_with_a_new_one(viewer: User) -> None:
    fields: dict[str, Any] = {"csrfmiddlewaretoken": "a" * 64, "theme": "dark"}
    browser = old(viewer)
    answer = browser.post("/me/", fields, headers={"referer": PAGE})
    assert (answer.status_code, answer["Location"]) == (303, "/archive/7/?q=state%3Adead")
    page = browser.get("/operations/").content.decode()
    assert OLD_FORM in page
    assert 'data-theme="dark"' not in page


def test_a_sign_in_that_another_tab_was_quicker_with_leads_in(viewer: User) -> None:
    browser = old(viewer)
    asked = {"username": viewer.username, "password": "looks", "csrfmiddlewaretoken": "a" * 64}
    came = "http://testserver/sign-in/?next=/operations/"
    answer = browser.post("/sign-in/", asked, headers={"referer": came}, follow=True)
    assert answer.redirect_chain[-1] == ("/operations/", 302)
    assert OLD_FORM not in answer.content.decode()


def test_a_form_from_elsewhere_or_without_cookies_leads_nowhere(viewer: User) -> None:
    others = ["https://elsewhere.example/", "http://testserver//elsewhere.example/"]
    elsewhere = [old(viewer).post("/me/", {"theme": "dark"}, headers={"referer": each}) for each in others]
    without = Client(enforce_csrf_checks=True).post("/sign-in/", headers={"referer": "http://testserver/sign-in/"})
    for answer in (*elsewhere, without):
        assert answer.status_code == 403
        assert "Nothing was changed" in answer.content.decode()


@pytest.mark.parametrize(
    ("path", "above"),
    [
        ("/operations/5/start/", ""),
        ("/endpoints/Billing/pause/", "/endpoints/Billing/"),
        ("/endpoints/Billing/undo/5/", "/endpoints/Billing/"),
    ],
)
def test_an_address_of_an_act_leads_to_its_page(as_viewer: Client, path: str, above: str) -> None:
    answer = as_viewer.get(path)
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    page = answer.content.decode()
    assert "Nothing was done" in page
    assert f'href="{above or "/operations/5/"}">Open its page' in page


async def arrived(address: str) -> httpx.Response:
    """As the web server passes it on: Django's test client would take two slashes for a host name."""
    transport = httpx.ASGITransport(get_asgi_application())  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as browser:
        return await browser.get(f"http://testserver{address}")


@pytest.mark.parametrize("slashes", ["/", "//", "///", "/%2F", "/%5C"])
def test_an_address_without_its_nul_is_still_one_of_ours(slashes: str) -> None:
    answer = asyncio.run(arrived(f"{slashes}elsewhere.example/sign-in/?a=x%00y&b="))
    assert answer.next_request
    leads_to = answer.next_request.url
    assert (leads_to.host, leads_to.params["a"]) == ("testserver", "xy")
