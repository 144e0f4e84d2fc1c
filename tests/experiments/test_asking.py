"""What is sent to a model and how its replies are read: over real HTTP, to a stand-in on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import httpx
import pytest

from experiments.asking.chat import TRIES, BadAddress, Chat, Message, Unreachable, checked_address
from experiments.asking.choice_dialogue import AGAIN_MAX, Asker, Misread, UnansweredQuestion, read
from experiments.asking.prompts import PROMPTS, plain, scale_of, system_text
from tests.stand_in import Asked, Given, StandIn, saying, stand_in

pytestmark = pytest.mark.pure
SCALE = scale_of("12345", "not at all", "fully")
PICTURE = b"\x89PNG\r\n\x1a\nnot decoded here"


@pytest.fixture
def model() -> Iterator[StandIn]:
    with stand_in() as made:
        yield made


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def chat(model: StandIn, pauses: list[float]) -> Chat:
    return Chat(model.url, "stand-in", "a-key", timeout_s=30, sleep=pauses.append)


def asker(chat: Chat, order: str = "given") -> Asker:
    made = Asker(chat.say, order)  # type: ignore[arg-type]
    made.system = "Rate."
    return made


def test_a_question_leaves_as_openai_s_protocol_has_it(model: StandIn, chat: Chat) -> None:
    model.answer = lambda asked: saying(4)
    assert asker(chat).ask(["How easy?", PICTURE], SCALE) == "4"
    (asked,) = model.asked
    assert asked.headers["Authorization"] == "Bearer a-key" and asked.body["model"] == "stand-in"
    assert set(asked.body) == {"model", "messages"}, "no temperature unless it is given"
    system, user = asked.body["messages"]
    assert system == {"role": "system", "content": "Rate."} and user["role"] == "user"
    assert asked.pictures == [PICTURE]
    assert asked.answers == [("1", "not at all"), ("2", ""), ("3", ""), ("4", ""), ("5", "fully")]
    assert (chat.sent.requests, chat.sent.pictures, chat.sent.picture_bytes) == (1, 1, len(PICTURE))
    assert chat.sent.characters == len(system["content"]) + len(asked.text) - 1, (
        "the line break is the test's"
    )
    assert "a-key" not in repr(chat) and "a-key" not in str(asked.body)


def test_the_order_turns_the_list_and_nothing_else(model: StandIn, chat: Chat) -> None:
    for order in ("given", "reversed"):
        asker(chat, order).ask(["How easy?"], SCALE)
    first, second = model.asked
    assert second.answers == first.answers[::-1]
    assert second.text.split("Answers:")[0] == first.text.split("Answers:")[0]


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("", "empty"),
        ("I cannot rate pictures of people.", "no_json"),
        ('{"answer": ', "no_json"),
        ('{"rating": 3}', "no_answer"),
        ('{"answer": 6}', "out_of_scale"),
        ('{"answer": 0}', "out_of_scale"),
        ('{"answer": 3.5}', "out_of_scale"),
        ('{"answer": true}', "out_of_scale"),
        ('{"answer": null}', "out_of_scale"),
    ],
)
def test_a_reply_that_cannot_be_read_is_told_by_its_kind(reply: str, fault: str) -> None:
    with pytest.raises(Misread) as error:
        read(reply, list("12345"))
    assert error.value.fault == fault


@pytest.mark.parametrize(
    "reply", ['{"answer": 3}', '{"answer": "3"}', 'Well {"answer": 1}, no: {"answer": 3}']
)
def test_the_last_object_of_a_reply_is_the_answer(reply: str) -> None:
    assert read(reply, list("12345")) == "3"


def turns(*replies: Given) -> Callable[[Asked], Given]:
    """One reply after another; the last one again and again."""
    waiting = list(replies)
    return lambda asked: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def test_a_question_is_asked_at_most_twice_more_and_told_why(model: StandIn, chat: Chat) -> None:
    model.answer = turns("No.", saying(9), saying(2))
    asks, told = asker(chat), list[tuple[str, str]]()
    asks.told = lambda fault, reply: told.append((fault, reply))
    assert asks.ask(["How easy?"], SCALE) == "2"
    assert asks.faults == {"no_json": 1, "out_of_scale": 1} and told[0] == ("no_json", "No.")
    roles = [m["role"] for m in model.asked[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    model.answer = turns("No.")
    before = len(model.asked)
    with pytest.raises(UnansweredQuestion, match="3 replies could not be read"):
        asker(chat).ask(["How easy?"], SCALE)
    assert len(model.asked) - before == AGAIN_MAX + 1 == 3


def test_an_address_that_says_wait_is_asked_again_after_what_it_says(
    model: StandIn, chat: Chat, pauses: list[float]
) -> None:
    model.answer = turns((429, {"Retry-After": "7"}), (503, {}), saying(1))
    assert chat.say([Message("user", ("?",))]) == saying(1)
    assert pauses == [7.0, 2.0], "what was asked for, then twice the first pause"
    assert chat.sent.requests == 3


@pytest.mark.parametrize(("status", "tries"), [(429, TRIES), (500, TRIES), (401, 1), (400, 1)])
def test_tries_are_bounded_and_a_refusal_for_good_is_none(
    model: StandIn, chat: Chat, status: int, tries: int
) -> None:
    model.answer = turns((status, {}))
    with pytest.raises(Unreachable, match=f"answers {status}: slow down"):
        chat.say([Message("user", ("?",))])
    assert len(model.asked) == tries


def test_a_slow_address_is_given_up_and_so_is_one_that_is_down(pauses: list[float]) -> None:
    let_go = threading.Event()

    def late(asked: Asked) -> str:
        let_go.wait()
        return saying(1)

    with stand_in() as slow:
        slow.answer = late
        chat = Chat(slow.url, "m", timeout_s=0.05, sleep=pauses.append)
        with pytest.raises(Unreachable, match="does not answer .ReadTimeout"):
            chat.say([Message("user", ("?",))])
        let_go.set()
    with pytest.raises(Unreachable, match="does not answer .ConnectError"):
        chat.say([Message("user", ("?",))])
    assert pauses == [1.0, 2.0, 4.0] * 2


def test_another_protocol_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    page = httpx.Response(200, text="<html>", request=httpx.Request("POST", "http://there/chat/completions"))
    monkeypatch.setattr(httpx, "post", lambda *args, **more: page)
    with pytest.raises(Unreachable, match="ends in /v1"):
        Chat("http://there", "m").say([])


@pytest.mark.parametrize(
    ("address", "has_key", "says"),
    [
        ("model.example", False, "no address"),
        ("ftp://model.example", False, "no address"),
        ("https://me:secret@model.example/v1", False, "MODEL_KEY alone"),
        ("https://model.example/v1?key=1", False, "MODEL_KEY alone"),
        ("http://model.example/v1", True, "unencrypted"),
    ],
)
def test_an_address_that_would_leak_is_refused(address: str, has_key: bool, says: str) -> None:
    with pytest.raises(BadAddress, match=says):
        checked_address(address, has_key=has_key)


def test_other_addresses_are_taken() -> None:
    assert checked_address("https://model.example/v1/", has_key=True) == "https://model.example/v1"
    assert checked_address("http://127.0.0.1:9/v1", has_key=True) and checked_address(
        "http://lan/v1", has_key=False
    )


def test_pages_become_their_words_each_once() -> None:
    page = "<h1>Task</h1>\n<p>Look &amp; <em>rate</em>.</p><ul><li>One</li><li>Two</li></ul>"
    assert plain(page) == "Task\nLook & rate.\nOne\nTwo"
    assert system_text("plain", page, page, "") == f"{PROMPTS['plain']}\n\n{plain(page)}"
