"""The walk through all pages of a study: once through each condition, then every other way in and out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crowd.rehearsal.screens.catalog import (
    PICTURES,
    Screen,
    first_plain,
    has_examples,
    has_reveal,
    is_marked,
    parts_of,
    screens_of,
    sorts_of,
    trial_key,
)
from crowd.rehearsal.screens.study_copy import Stage
from crowd.rehearsal.screens.walker import REVEALED, SMALL, TRIAL, WINDOW, Look, Walker
from experiments.selectors import definition_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

PARTS_OF_PAGE = "**/assets/timeline-*.js"
MEDIA = "**/m/*"
ANSWERS = "**/api/session/responses/"
TRIES = 2


def walk(
    browser: Browser,
    site: str,
    stage: Stage,
    look: Look,
    progress: Callable[[str, int, int], None],
    *,
    is_short: bool = False,
) -> tuple[list[Screen], list[str]]:
    """Looks at every page of the study. Returns the screens that were not reached, and what went wrong. A
    short walk goes once through each condition and tries no other way in or out."""
    from playwright.sync_api import Error

    screens = {(screen.key, screen.condition): screen for screen in screens_of(stage.study)}
    others = [] if is_short else [_entries, _gates, _dialogs, _trouble, _offline, _ends]
    ways = [*_arms(stage), *others]
    looked: set[Screen] = set()
    said: list[str] = []
    for done, way in enumerate(ways):
        progress("ways through the study", done, len(ways))
        # A busy machine may keep one page waiting for too long: each way is tried twice, by another person.
        for _ in range(TRIES):
            context = browser.new_context(viewport={**WINDOW})
            walker = Walker(context.new_page(), site, stage, screens, look)
            walker.looked = looked
            try:
                way(walker)
                break
            except (Error, AssertionError, StopIteration) as error:
                said.append(str(error).splitlines()[0] if str(error) else type(error).__name__)
                stage.close(False)
            finally:
                context.close()
    progress("ways through the study", len(ways), len(ways))
    lost = [screen for screen in screens.values() if screen not in looked]
    return [screen for screen in lost if not is_short or _is_on_the_way(screen)], said


def _is_on_the_way(screen: Screen) -> bool:
    """Who fails nothing and goes on meets it."""
    return bool(screen.condition) and not screen.key.endswith("/again")


Way = Callable[[Walker], None]


def _arms(stage: Stage) -> Iterator[Way]:
    for arm in stage.arms:
        yield lambda walker, arm=arm: _arm(walker, arm)  # type: ignore[misc]


def _arm(walker: Walker, arm: str) -> None:
    """One session of a condition: its gates, one trial of each sort, the help, the last pages. Every part is
    begun, as some have pages of their own."""
    stage, slot = walker.stage, walker.stage.arms[arm]
    stage.free(arm)
    walker.arm = arm
    walker.arrive()
    walker.gates()
    keys = {position: trial_key(*sort) for sort, position in sorts_of(slot).items()}
    for position in sorted({*keys, *parts_of(slot)}):
        walker.to_trial(position)
        if position in keys:
            _trial(walker, keys[position], position)
    walker.page.locator(".tool").first.click()
    walker.page.wait_for_selector("dialog[open]")
    walker.look("dialog/help", arm)
    walker.to_the_end()
    walker.look("end/debrief", arm)


def _trial(walker: Walker, key: str, position: int) -> None:
    stage, arm = walker.stage, walker.arm
    walker.look(key, arm)
    if is_marked(stage.arms[arm], position):
        walker.mark()
        walker.look(f"{key}/marked", arm)
        walker.choose(first=False)
        walker.look(f"{key}/set_aside", arm)
    if has_examples(stage.arms[arm], position, stage.study):
        _examples(walker, key, arm)
    if has_reveal(stage.arms[arm], position, stage.study):
        walker.answer()
        assert walker.settle() == REVEALED
        walker.look(f"{key}/revealed", arm)


def _examples(walker: Walker, key: str, arm: str) -> None:
    page = walker.page
    page.locator(".reservoir-toggle").click()
    page.wait_for_selector(".reservoir-panel:not([hidden]) .tile")
    walker.look(f"{key}/examples", arm)
    page.locator(".tile").last.click()
    page.wait_for_selector(".tile.enlarged")
    walker.look(f"{key}/enlarged", arm)


def _first(stage: Stage) -> str:
    return next(iter(stage.arms))


def _entries(walker: Walker) -> None:
    """Every way of not coming in."""
    page, stage = walker.page, walker.stage
    place = f"{walker.site}/join/{stage.study.slug}/"
    # A platform fills these in when a person has accepted.
    person = "{{%PROLIFIC_PID%}}"
    page.goto(f"{place}?via={stage.previewing.key}&PROLIFIC_PID={person}&STUDY_ID=x&SESSION_ID=x")
    walker.look("entry/preview")
    page.goto(f"{walker.site}/join/there-is-no-such-study/")
    walker.look("entry/lost")
    page.goto(f"{place}?via={stage.coded.key}")
    _look_at_refusal(walker, "entry/bad_address")
    stage.free()
    walker.arrive()
    _look_at_refusal(walker, "entry/full")
    stage.free(_first(stage))
    walker.arrive(person="first", submission="one")
    walker.settle()
    walker.arrive(person="second", submission="one")
    _look_at_refusal(walker, "entry/not_admitted")
    # A person may begin so many sessions; one that was begun counts, wherever it stands.
    for sitting in range(1, definition_of(stage.study).sittings_max + 1):
        walker.settle()
        walker.arrive(person="first", submission=f"again-{sitting}")
    _look_at_refusal(walker, "entry/taken_part")

    def close_first(route: Route) -> None:
        stage.close(True)
        route.continue_()

    with _without(page, "**/api/sessions/", close_first):
        walker.arrive()
        _look_at_refusal(walker, "entry/no_study")
    stage.close(False)


def _look_at_refusal(walker: Walker, key: str) -> None:
    walker.page.wait_for_selector("[data-page=trouble]")
    walker.look(key)


def _gates(walker: Walker) -> None:
    """Failed tries at each gate that counts them."""
    stage = walker.stage
    stage.free(_first(stage))
    for key in [key for key, _ in walker.screens if key.endswith("/again")]:
        _, gate, _ = key.split("/")
        walker.arrive(stage.coded)
        assert walker.gates(fails=gate) == "finish", f"the gate {gate} cannot be failed"
        walker.look("end/screened")


def _dialogs(walker: Walker) -> None:
    """Leaving, in the middle of the trials."""
    page, stage = walker.page, walker.stage
    stage.free(_first(stage))
    walker.arrive(stage.coded)
    walker.gates()
    # Not the first, so that the page of coming back is met; before a test without answers another comes.
    walker.to_trial(1)
    page.locator(".tool").last.click()
    page.wait_for_selector("dialog[open]")
    reward = definition_of(stage.study).reward
    if reward.amount_cents or reward.bonus_max_cents:
        # The amount comes a moment later than the dialog.
        page.wait_for_selector("dialog .pay p")
    walker.look("dialog/leave")
    page.locator("dialog .button.danger").click()
    page.wait_for_selector("[data-page=finish]")
    walker.look("end/withdrawn")


def _trouble(walker: Walker) -> None:
    """What does not come, and what the server does not take."""
    page, stage = walker.page, walker.stage
    # What has come before would come again, from the browser's own store.
    page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
    stage.free(_first(stage))
    walker.arrive(stage.coded)
    walker.gates()
    if (PICTURES, "") in walker.screens:
        with _without(page, MEDIA, _one_lost()):
            page.reload()
            page.wait_for_selector("section[role=alert]")
            walker.look(PICTURES)
    with _without(page, PARTS_OF_PAGE, lambda route: route.abort()):
        page.reload()
        page.wait_for_selector("[data-page=trouble]")
        walker.look("trouble/part_of_page")
        page.locator("[data-page=trouble] .button").last.click()
        page.wait_for_selector("[data-page=finish]")
        walker.look("end/failure")
    stage.free(_first(stage))
    walker.arrive()
    walker.settle()
    with _without(page, "**/api/session/*/", lambda route: route.fulfill(status=403, body="")):
        walker.press()
        page.wait_for_selector("[data-page=trouble]")
        walker.look("trouble/refused")


def _offline(walker: Walker) -> None:
    """Answers that wait; then the same study in a second tab."""
    page, stage = walker.page, walker.stage
    stage.free(_first(stage))
    address = walker.arrive()
    walker.gates()
    walker.to_trial(first_plain(stage.arms[_first(stage)], stage.study))
    strip = page.locator(".strip:not([hidden])")
    page.context.set_offline(True)
    walker.answer()
    strip.wait_for()
    walker.rest()
    walker.look("trouble/offline")
    page.context.set_offline(False)
    strip.wait_for(state="hidden")
    with _without(page, ANSWERS, lambda route: route.fulfill(status=503, body="")):
        walker.settle()
        walker.answer()
        strip.wait_for()
        walker.rest()
        walker.look("trouble/silent")
    strip.wait_for(state="hidden")
    other = page.context.new_page()
    other.goto(address)
    other.wait_for_selector("[data-page]")
    _answer_unless_stopped(walker)
    page.wait_for_selector("[data-page=trouble]")
    walker.look("trouble/second_tab")


def _answer_unless_stopped(walker: Walker) -> None:
    """An answer in a tab that is no longer the session's: what the page sends by itself may be refused
    first, before the answer is given or in its middle."""
    from playwright.sync_api import Error

    stopped = walker.page.locator("[data-page=trouble]")
    try:
        if walker.settle() == TRIAL:
            walker.answer()
    except Error:
        if not stopped.count():
            raise


def _ends(walker: Walker) -> None:
    """The other outcomes, each with the code that a platform asks for."""
    page, stage = walker.page, walker.stage
    arm = _first(stage)
    stage.free(arm)
    walker.arrive(stage.coded, window=SMALL)
    walker.settle()
    walker.look("gate/device")
    walker.press(last=True)
    page.wait_for_selector("[data-page=finish]")
    walker.look("end/device")
    walker.arrive(stage.coded)
    assert walker.gates(until="consent") == "consent"
    walker.press(last=True)
    page.wait_for_selector("[data-page=finish]")
    walker.look("end/declined")
    walker.arrive(stage.coded)
    walker.settle()
    stage.free()
    walker.gates()
    walker.look("end/turned_away")
    for key, passes in (("end/complete", True), ("end/failed_checks", False), ("end/with_way_back", True)):
        stage.free(arm)
        if key == "end/with_way_back":
            stage.lead_back()
        walker.arrive(stage.coded)
        walker.gates()
        walker.to_the_end(passes=passes)
        walker.look(key)


def _one_lost() -> Callable[[Route], None]:
    """The first picture that is asked for never comes. If none came, the page would first ask for every one
    of them several times, which takes minutes in a long part."""
    lost: list[str] = []

    def act(route: Route) -> None:
        lost[:] = lost or [route.request.url]
        if route.request.url in lost:
            route.abort()
        else:
            route.continue_()

    return act


@contextmanager
def _without(page: Page, pattern: str, act: Callable[[Route], None]) -> Iterator[None]:
    """Requests to these addresses are answered by `act` within the block."""
    page.route(pattern, act)
    try:
        yield
    finally:
        page.unroute(pattern)
