"""The console below https://host/queues/, behind a real nginx with TLS: no address leads out of it."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from pgqueue_admin.embedded import ports
from tests.journeys.conftest import Complaints, opened, ready
from tests.journeys.product import ROOT, Product
from tests.waiting import until

# A real nginx in front of the console, with TLS, configured as docs/how-to/run-behind-a-proxy.md shows it.
PROGRAM = os.environ.get("NGINX") or shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or "/usr/sbin/nginx"
TLS = Path(__file__).resolve().parent.parent / "fixtures/tls"
WHOLE = """
daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  types {{ text/html html; }}
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {tls}/certificate.pem; ssl_certificate_key {tls}/key.pem;
    {locations}
    location / {{ return 418 "another application\\n"; }}
  }}
}}
"""


@contextmanager
def before(folder: Path, port: int, locations: str) -> Iterator[Path]:
    """Run nginx on ``port`` with these locations; yield its error log."""
    folder.mkdir()
    file = folder / "nginx.conf"
    file.write_text(WHOLE.format(folder=folder, port=port, tls=TLS, locations=locations))
    process = subprocess.Popen([PROGRAM, "-e", str(folder / "error.log"), "-p", str(folder), "-c", str(file)])
    try:
        until(lambda: ports.answers(port, "127.0.0.1"), what="nginx answers")
        yield folder / "error.log"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


pytestmark = pytest.mark.journey
DOCUMENTED = re.findall(
    r"```nginx\n(.*?)```", (ROOT / "docs/how-to/run-behind-a-proxy.md").read_text(encoding="utf-8"), re.DOTALL
)
FOLLOWED = re.compile("^(Live|As of .+)$")  # not "Cut off"; on a busy machine figures may be seconds old
LED_TO = {word: word.lower() for word in ("Queues", "Archive", "Settings", "Workers")} | {"Warnings": "alerts"}
STRIPPED = "location /stripped/ {{ proxy_pass http://127.0.0.1:{port}/; proxy_set_header Host $http_host; }}"
ADDRESS = re.compile(
    r"""(?:href|src|action|hx-get|hx-post|data-(?!key)[a-z-]+|value|content)=["'](/[^"'/][^"']*|/)["']"""
)
PAGES = (
    "", "queues/", "queues/public/Billing/", "queues/public/Billing/messages/", "alerts/", "alerts/mail/", "archive/",
    "operations/", "endpoints/", "workers/", "settings/", "trends/", "subscriptions/", "delayed/", "messages/?q=x",
    "me/password/", "history/", "no-such-page/", "admin/", "admin/pgqueue/archivedmessage/",
    "admin/auth/user/",
)  # fmt: skip


class Below:
    def __init__(self, product: Product, origin: str):
        self.product, self.origin, self.url = product, origin, f"{origin}/queues"


@pytest.fixture(scope="module")
def below() -> Iterator[Below]:
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-journey-"))
    folder.chmod(0o755)
    origin = f"https://127.0.0.1:{(front := ports.free())}"
    more = {"PUBLIC_URL": f"{origin}/queues/", "PGQUEUE_ALERT_TO": "oncall@example.org"}
    product = Product(folder / "var", ports.free(), **more)
    (documented,) = DOCUMENTED
    locations = documented.replace(":8000", f":{product.port}") + STRIPPED.format(port=product.port)
    try:
        product.start()
        until(lambda: ready(product), 300, what="the first samples")
        with before(folder / "nginx", front, locations):
            yield Below(product, origin)
    finally:
        product.stop(300)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def page(browser: Browser, below: Below, complaints: Complaints) -> Iterator[Page]:
    """A page signed in through nginx; afterwards, fail if anything was missing or refused."""
    with opened(browser, ignore_https_errors=True, timezone_id="UTC", locale="en-GB") as context:
        page = context.new_page()
        complaints.watch(page)
        name, password = below.product.login
        page.goto(f"{below.url}/queues/")
        expect(page).to_have_url(f"{below.url}/sign-in/?next=/queues/queues/")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(password)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{below.url}/queues/")
        page.goto(f"{below.url}/")
        yield page
    assert not complaints


def test_pages_are_live_and_followed_by_links_keys_and_forms(page: Page, below: Below) -> None:
    with page.expect_response(lambda answer: answer.url.startswith(f"{below.url}/live/?")) as stream:
        page.goto(f"{below.url}/")
    assert (stream.value.status, stream.value.headers["content-type"]) == (200, "text/event-stream")
    expect(page.locator("[data-live-word]")).to_have_text(FOLLOWED)
    expect(page.locator("aside, nav").get_by_role("link", name="Overview").first).to_have_attribute(
        "aria-current", "page"
    )
    for word, path in LED_TO.items():
        page.locator("nav").get_by_role("link", name=re.compile(f"^{word}")).first.click()
        page.wait_for_url(f"{below.url}/{path}/")
        expect(page.locator("[data-live-word]")).to_have_text(FOLLOWED)
    page.goto(f"{below.url}/archive/?q=state:dead")
    page.locator("main tbody th a").first.click()
    page.wait_for_url(re.compile(rf"^{re.escape(below.url)}/archive/\d+/"))
    page.get_by_role("button", name="Discard…").click()
    page.get_by_role("button", name="Discard it").click()
    expect(page.locator(".notice.good")).to_be_visible()
    assert page.url.startswith(f"{below.url}/")
    page.goto(f"{below.url}/admin/pgqueue/archivedmessage/")
    expect(page.locator("input.action-select").first).to_be_visible()


def test_cookies_stay_below_it(page: Page, below: Below) -> None:
    cookies = {each["name"].rpartition("_")[0] or each["name"]: each for each in page.context.cookies()}
    assert {name: each["path"] for name, each in cookies.items()} == {
        "sessionid": "/queues/",
        "csrftoken": "/queues/",
        "known": "/queues/sign-in/",
        "zone": "/queues/",
        "looked": "/queues/",
    }
    assert cookies["sessionid"]["secure"]
    assert page.request.post(f"{below.url}/me/", form={"theme": "dark"}).status == 403, "no token, no change"


def test_no_address_of_any_page_leads_elsewhere(page: Page, below: Below) -> None:
    seen = set()
    for each in PAGES:
        html = page.request.get(f"{below.url}/{each}").text()
        found = ADDRESS.findall(html)
        assert found, each
        assert [address for address in found if not address.startswith("/queues/")] == [], each
        seen |= {address for address in found if "/static/" in address}
    for file in seen:
        assert page.request.get(below.origin + file).status == 200


def test_a_mail_leads_to_its_page(page: Page, below: Below) -> None:
    page.goto(f"{below.url}/alerts/mail/")
    page.get_by_role("button", name=re.compile("test mail", re.IGNORECASE)).click()
    expect(page.locator(".notice.good")).to_be_visible()

    def told() -> set[str]:
        whole = "".join(each.read_text() for each in (below.product.var / "mail").glob("*"))
        return set(re.findall(r"https?://127[^\s\"<>]+", whole.replace("=\n", "")))

    links = until(told, what="a mail with a link")
    assert all(link.startswith(f"{below.url}/") and "/queues/queues/alerts" not in link for link in links)
    page.goto(next(link for link in links if "alerts" in link or link.endswith("/")))
    expect(page.locator("main")).to_be_visible()


def test_a_proxy_that_cuts_the_path_off_is_told(below: Below) -> None:
    with httpx.Client(verify=False) as stranger:
        answer = stranger.get(f"{below.origin}/stripped/", headers={"X-Forwarded-Proto": "https"})
        assert answer.status_code in {301, 404}
        inside = stranger.get(f"{below.product.url}/", headers={"X-Forwarded-Proto": "https"})
        assert inside.status_code == 404
        assert "below /queues/" in inside.text
        assert stranger.get(f"{below.url}/healthz").status_code == 200
        assert stranger.get(f"{below.product.url}/healthz").status_code == 200
