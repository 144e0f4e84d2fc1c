import itertools
import logging
import threading

import httpx
import pytest

from crowd.platforms.prolific.wire import BODY_MAX, PAGE_SIZE, ProlificError, ProlificWire
from crowd.rehearsal.serving import Answer, IncomingRequest, serving
from tests.crowd.platforms.prolific.prolific_script import TOKEN, Line, Script, closed_address, said, wired

pytestmark = pytest.mark.pure

ID = "60bf9310e8dec401be6e9615"
OUTER = {
    "error": {
        "status": 400,
        "error_code": 140007,
        "title": "Bad Request",
        "detail": "The reward is too low.",
        "additional_information": "/api/docs",
        "traceback": "File secret.py",
        "interactive": False,
    }
}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (OUTER, "Bad Request; The reward is too low"),
        (OUTER["error"], "Bad Request; The reward is too low"),
        ({"error": {"detail": ["First.", "Second."]}}, "First., Second"),
        ({"detail": {"reward": ["Too low", "Not whole"]}}, "reward: Too low, Not whole"),
        ({"message": "Nope", "detail": "No such study"}, "Nope; No such study"),
        ({"csv_bonuses": ["Line 1"]}, "csv_bonuses: Line 1"),
        ("just a sentence", "just a sentence"),
        ({"error": "a sentence"}, "a sentence"),
    ],
)
def test_it_reads_every_shape_of_an_error(body: object, words: str) -> None:
    with serving(Script(said(body, 400))) as url, pytest.raises(ProlificError) as caught:
        wired(url).get("studies/")
    assert words in str(caught.value)
    assert "secret.py" not in str(caught.value)
    assert caught.value.permanent
    assert not caught.value.uncertain
    assert caught.value.status == 400


def test_it_keeps_the_first_characters_of_an_error_that_is_no_json() -> None:
    page = b"<html>" + b"bad gateway " * 100
    with serving(Script(Answer(404, page))) as url, pytest.raises(ProlificError) as caught:
        wired(url).get("studies/")
    assert "404" in str(caught.value)
    assert "<html>bad gateway" in str(caught.value)
    assert len(str(caught.value)) < 200


def test_it_says_an_error_in_a_form_that_can_be_stored() -> None:
    """A failure is kept with the payment that failed."""
    for answer in (said({"detail": "No\u0000 \ud800money"}, 400), Answer(500, b"\x00\x07 oops")):
        with serving(Script(answer)) as url, pytest.raises(ProlificError) as caught:
            wired(url).send("POST", "studies/", {})
        assert str(caught.value).isprintable()
        assert "oops" in str(caught.value) or "No? ?money" in str(caught.value)


def test_it_shows_no_outside_id_in_an_error() -> None:
    answer = said({"detail": f"{ID} has not taken part"}, 400)
    with serving(Script(answer)) as url, pytest.raises(ProlificError) as caught:
        wired(url).send("POST", f"submissions/{ID}/transition/", {})
    assert ID not in str(caught.value)
    assert "[id] has not taken part" in str(caught.value)


def test_it_names_itself_and_logs_neither_token_nor_ids(caplog: pytest.LogCaptureFixture) -> None:
    script = Script(said({"id": ID}))
    with caplog.at_level(logging.DEBUG), serving(script) as url:
        wired(url).get(f"submissions/{ID}/", {"study": ID})
    headers = script.asked[0].headers
    assert headers["authorization"] == f"Token {TOKEN}"
    assert headers["referer"] == headers["user-agent"] == "Legible"
    assert script.asked[0].path == f"/api/v1/submissions/{ID}/"
    assert "[id]" in caplog.text
    assert ID not in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    "failure", [said({}, 429), said({}, 503), said({}, 500), Answer(200, b"<html>"), None]
)
def test_it_reads_again_after_a_failure_that_may_pass(failure: Line) -> None:
    waits: list[float] = []
    script = Script(failure, failure, said({"ok": 1}))
    with serving(script) as url:
        assert wired(url, waits).get("studies/") == {"ok": 1}
    assert waits == [1, 2]


def test_it_gives_up_reading_after_four_repetitions() -> None:
    waits: list[float] = []
    script = Script(said({}, 502))
    with serving(script) as url, pytest.raises(ProlificError) as caught:
        wired(url, waits).get("studies/")
    assert len(script.asked) == 5
    assert waits == [1, 2, 4, 8]
    assert not caught.value.permanent
    assert not caught.value.uncertain  # reading has no effect


def test_it_waits_as_long_as_it_is_asked_to() -> None:
    waits: list[float] = []
    with serving(Script(said({}, 429, Retry_After="7"), said({}))) as url:
        wired(url, waits).get("studies/")
    assert waits == [7]


def test_it_does_not_call_before_it_may_nor_wait_for_an_hour() -> None:
    waits: list[float] = []
    script = Script(said({}, 429, Retry_After="3600"))
    with serving(script) as url, pytest.raises(ProlificError) as caught:
        wired(url, waits).get("studies/")
    assert (len(script.asked), waits) == (1, [])
    assert not caught.value.permanent


@pytest.mark.parametrize(
    ("line", "permanent", "uncertain"),
    [
        (said({}, 400), True, False),
        (said({}, 401), True, False),
        (said({}, 403), True, False),
        (said({}, 404), True, False),
        (said({}, 405), True, False),
        (said({}, 409), True, False),
        (said({}, 422), True, False),
        (said({}, 429), False, False),
        (said({}, 408), False, True),
        (said({}, 500), False, True),
        (said({}, 503), False, True),
        (said({}, 302), True, True),
        (None, False, True),
    ],
)
def test_it_sends_once_what_may_not_be_repeated(line: Line, permanent: bool, uncertain: bool) -> None:
    script = Script(line)
    with serving(script) as url, pytest.raises(ProlificError) as caught:
        wired(url).send("POST", "studies/", {"name": "x"})
    assert (caught.value.permanent, caught.value.uncertain) == (permanent, uncertain)
    assert len(script.asked) == 1


def test_it_knows_that_nothing_was_sent_if_no_server_listens() -> None:
    with pytest.raises(ProlificError) as caught:
        wired(closed_address()).send("POST", "studies/", {})
    assert (caught.value.permanent, caught.value.uncertain) == (False, False)
    assert "nothing was sent" in str(caught.value)


def test_it_does_not_know_the_effect_of_a_request_without_an_answer() -> None:
    release = threading.Event()

    def silent(asked: IncomingRequest) -> Answer | None:
        release.wait(30)
        return None

    with serving(silent) as url:
        wire = ProlificWire(url, TOKEN, lambda s: None, float, timeout=httpx.Timeout(0.2), trust_env=False)
        with pytest.raises(ProlificError) as caught:
            wire.send("POST", "studies/", {})
        release.set()
    assert (caught.value.permanent, caught.value.uncertain) == (False, True)


def test_it_remembers_that_an_earlier_try_may_have_had_effect() -> None:
    with serving(Script(said({}, 500), said({}, 400))) as url, pytest.raises(ProlificError) as caught:
        wired(url).send("PATCH", "studies/a/", {}, safe=True)
    assert caught.value.permanent
    assert caught.value.uncertain


def listing(total: int, *, links: bool = True, beyond: int = 404) -> Script:
    """A list of `total` rows, in pages of the size asked for."""

    def page(asked: IncomingRequest) -> Answer:
        number, size = int(asked.query["page"][0]), int(asked.query["page_size"][0])
        rows = [{"id": str(i)} for i in range((number - 1) * size, min(number * size, total))]
        if not rows and number > 1:
            return said({"detail": "Invalid page."}, beyond)
        body: dict[str, object] = {"results": rows, "meta": {"count": total}}
        if links:
            more = number * size < total
            address = f"http://{asked.headers['host']}{asked.path}?page={number + 1}&page_size={size}"
            body["_links"] = {"next": {"href": address if more else None}}
        return said(body)

    return Script(page)


@pytest.mark.parametrize("total", [0, 1, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, 2 * PAGE_SIZE, 250])
@pytest.mark.parametrize("links", [True, False])
def test_it_reads_every_row_once_at_any_page_size(total: int, links: bool) -> None:
    script = listing(total, links=links)
    with serving(script) as url:
        rows = list(wired(url).rows("submissions/", {"study": "a"}))
    assert [row["id"] for row in rows] == [str(i) for i in range(total)]
    assert script.asked[0].query["study"] == ["a"]
    pages = max(1, -(-total // PAGE_SIZE))
    assert len(script.asked) == pages + (not links and total > 0 and total % PAGE_SIZE == 0)


def test_it_reports_a_list_that_is_not_there() -> None:
    with serving(Script(said({}, 404))) as url, pytest.raises(ProlificError):
        list(wired(url).rows("submissions/"))


def test_it_sends_its_token_to_no_other_host() -> None:
    first = said({"results": [{"id": "1"}], "_links": {"next": {"href": "https://evil.example/?page=2"}}})
    script = Script(first)
    with serving(script) as url, pytest.raises(ProlificError) as caught:
        list(wired(url).rows("submissions/"))
    assert "foreign" in str(caught.value)
    assert len(script.asked) == 1


def test_it_stays_on_its_own_origin_for_every_scheme_of_a_link() -> None:
    first = said(
        {"results": [{"id": "1"}], "_links": {"next": {"href": "https://127.0.0.1/api/v1/x/?page=2"}}}
    )
    script = Script(first, said({"results": [{"id": "2"}], "_links": {"next": {"href": None}}}))
    with serving(script) as url:
        assert [row["id"] for row in wired(url).rows("x/")] == ["1", "2"]
    assert script.calls == ["GET /api/v1/x/", "GET /api/v1/x/"]


def dripping(asked: IncomingRequest, release: threading.Semaphore) -> Answer:
    """An answer whose every byte waits until the reader has looked at its clock."""
    return Answer(200, b'{"results": []}' + b" " * 2000, pause=lambda pieces: release.acquire(timeout=10))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_it_ends_an_answer_that_drips(method: str) -> None:
    """A byte comes each 0.3 seconds of the clock, so the time-out for silence never ends it."""
    release, seconds, script = threading.Semaphore(1), [0.0], []

    def clock() -> float:
        seconds[0] += 0.3
        release.release()
        return seconds[0]

    def server(asked: IncomingRequest) -> Answer:
        script.append(asked)
        return dripping(asked, release)

    with serving(server) as url, pytest.raises(ProlificError, match="within 60 seconds") as caught:
        wired(url, clock=clock).send(method, "studies/", reads=method == "GET")
    assert 60 < seconds[0] < 65
    assert len(script) == 1  # the time of the call is used up
    assert (caught.value.permanent, caught.value.uncertain) == (False, method == "POST")
    release.release(3000)


def test_it_reads_no_more_than_it_can_hold() -> None:
    with (
        serving(Script(Answer(200, b"[" + b" " * BODY_MAX + b"]"))) as url,
        pytest.raises(ProlificError) as caught,
    ):
        wired(url).get("studies/")
    assert "larger than 33,554,432 bytes" in str(caught.value)
    assert caught.value.permanent


@pytest.mark.parametrize("again", ["page=1&page_size=100&study=a", "study=a&page=2&page_size=100"])
def test_it_follows_no_list_in_a_circle(again: str) -> None:
    """The first page, in another order of its query; or the second, which names itself."""

    def page(asked: IncomingRequest) -> Answer:
        link = {"next": {"href": f"http://{asked.headers['host']}{asked.path}?{again}"}}
        return said({"results": [{"id": "1"}], "_links": link})

    script = Script(page)
    with serving(script) as url, pytest.raises(ProlificError, match="names a page twice") as caught:
        list(wired(url).rows("submissions/", {"study": "a"}))
    assert len(script.asked) <= 2
    assert not caught.value.permanent


def test_it_ends_a_list_that_takes_too_long() -> None:
    seconds = itertools.count(0.0, 10.0)
    script = listing(10_000)
    with serving(script) as url, pytest.raises(ProlificError, match="took over 600 seconds"):
        list(wired(url, clock=lambda: float(next(seconds))).rows("submissions/"))
    assert len(script.asked) < 20


@pytest.mark.parametrize(
    ("until", "waited"),
    [
        ("Mon, 23 Nov 2026 10:00:07 GMT", [7]),
        ("Mon, 23 Nov 2026 09:59:00 GMT", [1]),
        ("Mon, 23 Nov 2026 11:00:00 GMT", []),
        ("Monday", [1]),
        ("1" * 40, [1]),
    ],
)
def test_it_waits_until_the_date_it_is_asked_for(until: str, waited: list[float]) -> None:
    """Compared with the answer's own date, because clocks differ. An hour is too long, and what cannot be
    read is not asked for."""
    waits: list[float] = []
    busy = said({}, 429, Retry_After=until, Date="Mon, 23 Nov 2026 10:00:00 GMT")
    with serving(Script(busy, said({}))) as url:
        if waited:
            wired(url, waits).get("studies/")
        else:
            with pytest.raises(ProlificError):
                wired(url, waits).get("studies/")
    assert waits == waited


@pytest.mark.parametrize("body", [{"results": "none"}, {"results": ["a"]}, {"count": 3}, 7])
def test_it_refuses_a_list_that_is_none(body: object) -> None:
    with serving(Script(said(body))) as url, pytest.raises(ProlificError):
        list(wired(url).rows("submissions/"))


def test_it_writes_an_id_as_one_part_of_a_path() -> None:
    from crowd.platforms.prolific.wire import segment

    assert segment("../studies/x?y") == "..%2Fstudies%2Fx%3Fy"
