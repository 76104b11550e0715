"""A time range is selected on a chart by pointer and by keyboard, and Back returns."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.journeys.product import Product
from tests.waiting import until

pytestmark = pytest.mark.journey
CHOSEN = re.compile("since=.*until=")


@pytest.fixture
def chart(page: Page, product: Product) -> Locator:
    """The chart of depth, which needs samples only, no history."""
    page.goto(f"{product.url}/trends/?w=1h")
    place = page.locator('[data-plot="depth"]')
    expect(place.locator("canvas")).to_be_visible()
    place.scroll_into_view_if_needed()
    return place


def drag(page: Page, place: Locator, share: float) -> None:
    """Drag right from the middle by this share of the width; keep the button pressed."""
    box = place.bounding_box()
    assert box
    middle, height = box["x"] + box["width"] / 2, box["y"] + 100
    page.mouse.move(middle, height)
    page.mouse.down()
    page.mouse.move(middle + box["width"] * share, height, steps=5)


def test_a_stretch_is_dragged_left_and_taken(page: Page, chart: Locator) -> None:
    before = page.url
    drag(page, chart, 0.25)
    expect(page.get_by_text("Escape to leave it")).to_be_visible()
    page.keyboard.press("Escape")
    page.mouse.up()
    expect(page.get_by_text("Escape to leave it")).to_be_hidden()
    assert page.url == before
    drag(page, chart, 0.25)
    page.mouse.up()
    page.wait_for_url(CHOSEN)
    expect(page.locator(".covered")).to_contain_text("by the minute")
    page.go_back()
    page.wait_for_url(before)


def test_a_stretch_is_chosen_with_the_arrow_keys(page: Page, chart: Locator) -> None:
    chart.focus()
    for key in ("ArrowLeft", "Shift+ArrowLeft", "Shift+ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url(CHOSEN)
    expect(page.locator(".covered")).to_contain_text("by the minute")


def test_rates_and_age_of_samples_are_read_below_depth(page: Page, chart: Locator) -> None:
    """With history switched off; under the cursor they are marked as approximate."""
    rate, read = page.locator('[data-plot="rate"]'), page.locator('[data-read="in"]')

    def is_known() -> bool:
        """Check the newest minute, then the one before it."""
        if re.search("^≈ .*/(s|min|h), .+ in all$", read.inner_text()):
            return True
        page.keyboard.press("ArrowLeft")
        return False

    until(lambda: rate.count() or (page.reload() and None), what="two samples of all queues")
    expect(rate.locator("canvas")).to_be_visible()
    expect(page.locator('[data-plot="age"] canvas')).to_be_visible()
    rate.focus()
    page.keyboard.press("ArrowRight")
    until(is_known, what="a minute whose rate is known")
