"""The frame of every page: who may see it, what it says about itself, and what it never does."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pgqueue_admin.models import LatestSample, Queue


def test_a_stranger_is_asked_to_sign_in_and_comes_back(stranger: Client) -> None:
    answer = stranger.get("/queues/?q=Sales")
    assert answer.status_code == 302
    assert answer["Location"] == "/sign-in/?next=/queues/%3Fq%3DSales"


def test_wrong_name_and_wrong_password_get_the_same_text(stranger: Client, viewer: User) -> None:
    said = [
        stranger.post("/sign-in/", {"username": name, "password": "wrong"})
        .content.decode()
        .count("Name or password is wrong.")
        for name in (viewer.username, "nobody")
    ]
    assert said == [1, 1]


def test_signing_in_leads_where_the_link_pointed(stranger: Client, viewer: User) -> None:
    fields = {"username": viewer.username, "password": "looks", "next": "/queues/?q=Sales"}
    answer = stranger.post("/sign-in/", fields)
    assert (answer.status_code, answer["Location"]) == (302, "/queues/?q=Sales")


def test_the_theme_is_the_servers_so_that_nothing_flashes(as_viewer: Client) -> None:
    answer = as_viewer.post("/me/", {"theme": "dark", "next": "/queues/"})
    assert (answer.status_code, answer["Location"]) == (303, "/queues/")
    assert 'data-theme="dark"' in as_viewer.get("/").content.decode()


def test_no_answer_leads_to_another_host(as_viewer: Client) -> None:
    assert as_viewer.post("/me/", {"theme": "dark", "next": "https://elsewhere.example/"})["Location"] == "/"


def test_acts_need_the_token(viewer: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(viewer)
    assert client.post("/me/", {"theme": "dark"}).status_code == 403


@pytest.mark.parametrize("path", ["/", "/queues/", "/sign-in/"])
def test_every_page_is_under_the_strict_policy(as_viewer: Client, path: str) -> None:
    answer = as_viewer.get(path, follow=True)
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page = answer.content.decode()
    assert "style=" not in page
    assert "onclick" not in page
    assert "<script>" not in page


def test_times_are_in_the_persons_zone(as_viewer: Client) -> None:
    as_viewer.cookies["zone"] = "Europe/Vienna"
    assert 'title="Europe/Vienna' in as_viewer.get("/").content.decode()
    as_viewer.cookies["utc"] = "on"
    assert 'title="UTC' in as_viewer.get("/").content.decode()


def test_without_scripts_no_page_claims_to_be_live(as_viewer: Client) -> None:
    at = datetime(2026, 3, 1, 13, 4, 11, tzinfo=UTC)
    queue = Queue.objects.create(schema="public", table="Sales", kind="input")
    LatestSample.objects.create(queue=queue, at=at, changed_at=at)
    as_viewer.cookies["utc"] = "on"
    said = " ".join(re.sub(r"<[^>]+>", " ", as_viewer.get("/").content.decode()).split())
    assert re.search(r"As of 13:04 :11 .*UTC", said)
    assert "Live" not in said


def test_where_there_is_no_page_a_stranger_learns_nothing(stranger: Client, as_viewer: Client) -> None:
    answer = stranger.get("/nowhere/")
    assert answer.status_code == 404
    assert "Queues" not in answer.content.decode()
    assert "No page has this address." in as_viewer.get("/nowhere/").content.decode()
    assert "There is no operation 4711." in as_viewer.get("/operations/4711/").content.decode()
    assert "No endpoint &lt;b&gt; is declared here." in as_viewer.get("/endpoints/%3Cb%3E/").content.decode()


def test_the_list_of_keys_is_fetched_when_it_is_opened(as_viewer: Client) -> None:
    assert "shows this list" in as_viewer.get("/me/keys/").content.decode()


@pytest.mark.parametrize("path", ["/", "/archive/", "/nowhere/", "/me/keys/", "/operations/"])
def test_pages_are_private_to_caches(as_viewer: Client, path: str) -> None:
    """Not no-store: Back must return to a list with its ticks."""
    assert as_viewer.get(path)["Cache-Control"] == "private, no-cache"
