"""The contact sheet: in an order of choice, a metric in each cell; a picture large, with its neighbours."""

from __future__ import annotations

import re
from statistics import mean
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django import DjangoAssertNumQueries

from analysis.stored_reports.refresh import refresh_report
from experiments.models import Item, Rendering, Response, Study, Trial
from stimuli.models import Measurement
from tests.analysis import stored
from tests.crowd.logins import login, served

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("undrawn")]
ROOT = "/studies/wolf-or-husky/stimuli/"
ALL = "&items=all"


def text_of(desk: Client, query: str) -> str:
    reply = desk.get(ROOT + query)
    assert reply.status_code == 200
    return reply.content.decode()


def names(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><code>(item-\d+)</code>', page)


def measured(study: Study) -> dict[str, float]:
    """Values of one metric for the explained conditions of most items; item -> their mean."""
    values: dict[str, list[float]] = {}
    for number, row in enumerate(Rendering.objects.filter(item__study=study).select_related("item")):
        if row.condition.role == "baseline" or row.item.key in ("item-05", "item-11"):
            continue
        value = (number * 37 % 101) / 101
        Measurement.objects.create(
            stimulus=row.stimulus, key="k", metric="deletion", value=value, measured_at=timezone.now()
        )
        values.setdefault(row.item.key, []).append(value)
    return {item: mean(given) for item, given in values.items()}


@pytest.mark.both_databases("means in an order")
def test_items_stand_in_the_order_of_a_metric(study: Study, desk: Client) -> None:
    means = measured(study)
    low = sorted(means, key=lambda item: (means[item], item))
    assert names(text_of(desk, f"?metric=k&order=metric{ALL}")) == [*low, "item-05", "item-11"]
    high = sorted(means, key=lambda item: (-means[item], item))
    page = text_of(desk, "?metric=k&order=-metric")
    assert names(page) == high[:12] and 'href="?metric=k&amp;order=-metric&amp;page=2"' in page
    cells = re.findall(r'<span class="sub value">([\d.]+)</span>', page)
    rows = Measurement.objects.filter(stimulus__renderings__item__key__in=high[:12])
    assert sorted(cells) == sorted(f"{row.value:.3g}" for row in rows)


def test_items_stand_in_the_order_of_the_models_confidence(study: Study, desk: Client) -> None:
    for item in Item.objects.filter(study=study):
        Item.objects.filter(pk=item.pk).update(confidence=0.5 + int(item.key[-2:]) * 7 % 48 / 100)
    rows = Item.objects.filter(study=study).order_by("confidence", "key")
    assert names(text_of(desk, f"?order=confidence{ALL}")) == [item.key for item in rows]
    assert (
        names(text_of(desk, "?order=nonsense&metric=nonsense&items=nonsense"))
        == sorted(item.key for item in rows)[:12]
    )


def test_people_order_items_once_results_are_open(study: Study, desk: Client) -> None:
    # People of both conditions have the same plans, so each item is answered twice.
    for number, condition in enumerate(3 * ("control", "grad_cam")):

        def right(trial: Trial, number: int = number) -> bool:
            return (trial.position * 7 + number) % 11 > number + 3

        stored.sitting(study, f"person-{number}", condition=condition, right=right)
    assert refresh_report(study, "human").sealed
    sealed = text_of(desk, f"?order=-people{ALL}")
    assert "People right first" not in sealed and "as the model" not in sealed
    assert names(sealed) == sorted(names(sealed))
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    assert not refresh_report(study, "human").sealed
    agreed: dict[str, list[bool]] = {}
    for row in Response.objects.filter(trial__phase="test", trial__check_kind="").select_related(
        "trial__item"
    ):
        item = row.trial.item
        assert item is not None
        agreed.setdefault(item.key, []).append(row.value["choice"] == item.predicted)
    page = text_of(desk, f"?order=-people{ALL}")
    shares = {item: mean(given) for item, given in agreed.items()}
    assert len(set(shares.values())) > 2
    assert names(page)[: len(shares)] == sorted(shares, key=lambda item: (-shares[item], item))
    first = names(page)[0]
    assert re.search(rf"{first}.*?people: {100 * shares[first]:.0f} % as the model", page, re.S)


def test_it_asks_no_more_for_all_items_than_for_a_page(
    study: Study, desk: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    measured(study)
    desk.get(ROOT)
    with django_assert_max_num_queries(20):
        page = text_of(desk, f"?metric=k&order=metric{ALL}")
    assert len(names(page)) == 48 and 'loading="lazy"' not in page


@pytest.mark.browser
def test_a_picture_is_shown_large_and_keys_lead_on(study: Study, page: Page) -> None:
    measured(study)
    served(page, login("bo", "view"), f"{ROOT}?metric=k")
    page.goto(f"http://desk.test{ROOT}?metric=k")
    cell = page.locator(".sheet tbody tr").nth(1).locator("td").nth(1)
    cell.locator("a").click()
    large = page.locator("dialog.large")
    shown = large.locator("p").first
    assert large.locator("img").get_attribute("src") == "http://desk.test" + str(
        cell.locator("a").get_attribute("href")
    )
    assert shown.inner_text() == f"item-01, Control · deletion: {cell.locator('.value').inner_text()}"
    for key, words in (
        ("Right", "item-01, Grad-CAM"),
        ("Up", "item-00, Grad-CAM"),
        ("Left", "item-00, Control"),
    ):
        page.keyboard.press(f"Arrow{key}")
        assert shown.inner_text().startswith(words)
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    assert shown.inner_text().startswith("item-00, Control")
    page.keyboard.press("Escape")
    assert not large.is_visible()
    # A closing dialog gives the focus to what opened it; told of the closing, the page moves it.
    expect(page.locator("a:focus img")).to_have_attribute("alt", "item-00, Control")
