"""Nothing that reaches a browser tells the person's condition or the right answer."""

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from experiments.models import Study, Trial
from experiments.tokens import media_reference
from stimuli.models import Stimulus
from tests.world import CLASSES, Person

pytestmark = pytest.mark.django_db

ADDRESS = re.compile(r"/m/[A-Za-z0-9_-]{44}")
SIGHTS = ("image", "explanation")
# Names of fields that would reveal the condition, and words that a value must not contain.
TELLING_KEYS = {
    "condition",
    "role",
    "method",
    "explainer",
    "truth",
    "predicted",
    "expected",
    "correct",
    "check",
    "arm",
}
TELLING_KEYS |= {
    "item",
    "file",
    "name",
    "group",
    "confidence",
    "logits",
    "check_kind",
    "explained",
    "slot",
    "source",
}
TELLING_WORDS = {"baseline", "control", "saliency", "bottom_up", "truth", "predicted", "expected", "correct"}
# An instructed check says itself what it is; its kind is called so. A repeat must not.
TELLING_WORDS |= {"repeat", "method", "grad", ".png", "images/", "views/", "pictures/", "maps/"}


def arrived(count: int) -> list[Person]:
    people = [Person(f"p{number}") for number in range(count)]
    for person in people:
        person.arrive()
    return people


@pytest.fixture
def seated(small: Study) -> list[Person]:
    """One person in every slot of every condition, at the first trial."""
    return arrived(9)


@pytest.fixture
def three(small: Study) -> list[Person]:
    """One person under each condition: slots are served in blocks of all conditions."""
    return arrived(3)


def states(person: Person) -> Iterator[dict[str, Any]]:
    """What the page is given at the beginning of each block; the blocks between are answered."""
    while person.refresh()["step"] == "trials":
        yield person.state
        count = len(person.state["block"]["trials"])
        rows = person.trials()[person.state["next"] :][:count]
        assert person.respond(*(person.good_response(row) for row in rows)).status_code == 200


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value with the keys that lead to it; positions in lists are `*`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, (*path, "*"))
    else:
        yield path, value


def shape(value: Any) -> Any:
    """Keys, types and lengths alone: what a trial looks like to a person who cannot read it."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    if isinstance(value, str):
        return ("text", "digits" if value.isdigit() else len(value))
    return (type(value).__name__, value if isinstance(value, bool | None) else 0)


def is_answer(path: tuple[str, ...]) -> bool:
    """The answers to choose from and the label that training reveals name the classes: that is the task."""
    return "choices" in path or path[-1] == "label"


def test_it_serves_every_condition(seated: list[Person]) -> None:
    """So the other tests in this file look at every condition."""
    assert sorted(str(person.session().slot.condition) for person in seated) == sorted(  # type: ignore[union-attr]
        3 * ["baseline", "control", "saliency"]
    )


def test_it_says_nothing_that_tells(seated: list[Person]) -> None:
    files = {
        Path(file).stem for row in Stimulus.objects.values() for file in map(str, row.values()) if "/" in file
    }
    hashes = set(Stimulus.objects.values_list("key", flat=True)) | {file[:12] for file in files}
    items = set(Trial.objects.exclude(item=None).values_list("item__key", flat=True))
    seen = 0
    for person in seated:
        for state in states(person):
            for path, value in leaves(state["block"]):
                assert not TELLING_KEYS & set(path)
                text = str(value).lower()
                if path[-1] == "url":
                    assert ADDRESS.fullmatch(value)
                    continue
                assert not [word for word in TELLING_WORDS | hashes | items if word.lower() in text], (
                    path,
                    text,
                )
                if not is_answer(path):
                    assert not [name for name in CLASSES if name in text], (path, text)
            seen += len(state["block"]["trials"])
    assert seen == Trial.objects.count()


def test_it_names_no_condition_on_any_page(small: Study) -> None:
    for number in range(9):
        person = Person(f"p{number}")
        person.join()
        replies = [person.state]
        while person.state["step"] != "trials":
            person.gate(person.good_value())
            replies.append(person.state)
        person.answer()
        replies += [person.state, person.finish("x").json(), person.refresh()]
        for reply in replies:
            # Addresses and tokens are random, so that any word may stand in them by chance.
            text = re.sub(r'"(url|token)": "[^"]*"', "", json.dumps(reply)).lower()
            assert not [
                word for word in ("baseline", "control", "saliency", "grad", '"role"') if word in text
            ]


def test_it_never_shows_one_address_twice(seated: list[Person]) -> None:
    """One address per picture, trial and size; none in two sessions, none that two pictures share."""
    meant: dict[str, tuple[str, ...]] = {}
    for person in seated:
        for state in states(person):
            block, shown = state["block"], []
            for trial in block["trials"]:
                shown += [(sight, trial["id"], trial["content"].get(sight)) for sight in SIGHTS]
            for tile in block["examples"]:
                shown += [(f"tile of {sight}", tile["trial"], tile[sight]) for sight in SIGHTS]
            addresses = [media["url"] for *_, media in shown if media]
            assert len(set(addresses)) == len(addresses)
            for sight, trial_id, media in shown:
                if media:
                    meaning = (person.name, trial_id, sight)
                    assert meant.setdefault(media["url"], meaning) == meaning
    assert len(set(meant.values())) == len(meant) > 9 * 2 * 8
    assert len({address[-22:] for address in meant}) == len(meant)


def test_it_hides_the_repeat_checks_among_the_tests(seated: list[Person]) -> None:
    count = 0
    for person in seated:
        checks = {str(trial.pk): trial.check_kind for trial in person.trials()}
        for state in states(person):
            tests = [trial for trial in state["block"]["trials"] if trial["phase"] == "test"]
            ordinary = [trial for trial in tests if checks[trial["id"]] == ""]
            repeats = [trial for trial in tests if checks[trial["id"]] == "repeat"]
            looks = {json.dumps(shape(trial)) for trial in ordinary}
            assert len(looks) == 1 and {json.dumps(shape(trial)) for trial in repeats} <= looks
            sizes = {(t["content"]["image"]["width_px"], t["content"]["image"]["alt"]) for t in ordinary}
            assert {
                (t["content"]["image"]["width_px"], t["content"]["image"]["alt"]) for t in repeats
            } <= sizes
            assert len({json.dumps(trial["content"]["choices"]) for trial in ordinary + repeats}) == 1
            assert len({json.dumps(trial["content"]["reservoir"]) for trial in ordinary + repeats}) == 1
            count += len(repeats)
    assert count == 9


def test_it_shows_all_conditions_alike_but_for_the_explanation(seated: list[Person]) -> None:
    looks: dict[tuple[str, int], set[str]] = {}
    for person in seated:
        slot = person.session().slot
        assert slot is not None and slot.condition is not None
        for state in states(person):
            for trial in state["block"]["trials"]:
                explained = trial["content"].pop("explanation", None) is not None
                assert explained == (trial["phase"] == "train" and slot.condition.role != "baseline")
                seen = looks.setdefault((slot.condition.role, trial["position"]), set())
                seen.add(json.dumps(shape(trial)))
    for position in {position for _, position in looks}:
        assert len({frozenset(looks[role, position]) for role in ("baseline", "control", "method")}) == 1


def test_it_reveals_nothing_by_answering(three: list[Person]) -> None:
    """A right and a wrong answer to a test get the same reply."""
    for person in three:
        for trial in person.trials():
            answer = person.good_response(trial)
            if trial.kind == "predict" and trial.check_kind != "instructed" and trial.position % 2:
                answer["value"] = {
                    "choice": next(
                        c["value"] for c in trial.choices if c["value"] != answer["value"]["choice"]
                    )
                }
            assert person.respond(answer).json()["feedback"] == {}
            assert person.refresh()["feedback"] is None


def test_it_leaks_nothing_in_errors(three: list[Person]) -> None:
    for person in three:
        rows = person.trials()
        first = person.good_response(rows[0])
        test = person.good_response(next(row for row in rows if row.kind == "predict"))
        wrong = [
            test,
            {**first, "value": {}},
            {**first, "trial": "9" * 12},
            {**first, "trial": "x"},
            {**first, "x": 1},
        ]
        for answer in wrong:
            reply = person.respond(answer)
            assert reply.status_code in {400, 409}
            text = reply.content.decode().lower()
            assert not [word for word in TELLING_WORDS - {"correct", "expected"} if word in text], text


# Pictures


def pictures(person: Person) -> Iterator[Any]:
    for state in states(person):
        for path, value in leaves(state["block"]):
            if path[-1] == "url":
                yield person.client.get(value)


def chunks(content: bytes) -> Iterator[bytes]:
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at = 8
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        yield content[at + 4 : at + 8]
        at += 12 + length


def test_it_serves_pixels_and_nothing_else(three: list[Person]) -> None:
    for person in three:
        for reply in pictures(person):
            assert reply.status_code == 200
            assert set(chunks(reply.content)) == {b"IHDR", b"IDAT", b"paDd", b"IEND"}
            named = {name.lower() for name in reply.headers}
            assert not named & {"etag", "last-modified", "content-disposition", "location", "set-cookie"}
            assert "private" in reply["Cache-Control"] and reply["Content-Type"] == "image/png"


def test_it_serves_no_explanation_and_no_tile_of_a_test(three: list[Person]) -> None:
    """Not even to a person who can make valid addresses."""
    for person in three:
        session = person.session()
        for trial in person.trials():
            for role in ("image", "explanation", "tile", "tile_explanation"):
                address = f"/m/{media_reference(session.media_id, str(trial.pk), role)}"
                allowed = trial.item_id and (role == "image" or (trial.kind == "learn" and role == "tile"))
                explained = trial.kind == "learn" and trial.condition.role != "baseline"  # type: ignore[union-attr]
                allowed = allowed or (explained and "explanation" in role)
                assert Client().get(address).status_code == (200 if allowed else 404), (trial.kind, role)


def test_it_opens_no_picture_of_another_session(three: list[Person]) -> None:
    """The key of a session opens no picture of another session."""
    ada, bea = three[:2]
    url = ada.state["block"]["trials"][0]["content"]["image"]["url"]
    foreign = "/m/" + bea.session().media_id + url[-22:]
    assert Client().get(url).status_code == 200 and Client().get(foreign).status_code == 404


def test_it_gives_the_next_person_of_a_slot_new_addresses(small: Study) -> None:
    [ada] = arrived(1)
    ada.call("POST", "/api/session/withdraw/", {"reason": "", "erase": False})
    bea = Person("bea")
    bea.arrive()
    assert bea.session().slot_id == ada.session().slot_id
    macs = []
    for person in (ada, bea):
        addresses = [value for path, value in leaves(person.state["block"]) if path[-1] == "url"]
        macs.append({address[-22:] for address in addresses})
    assert len(macs[0]) == len(macs[1]) > 8 and not macs[0] & macs[1]


def test_pictures_have_the_same_names_under_every_condition(three: list[Person]) -> None:
    """A screen reader hears that there is a picture, or one with an explanation, and nothing about either."""
    heard: dict[str, set[str]] = {sight: set() for sight in SIGHTS}
    for person in three:
        for state in states(person):
            shown = [trial["content"] for trial in state["block"]["trials"]] + state["block"]["examples"]
            for content in shown:
                for sight in SIGHTS:
                    picture = content.get(sight)
                    heard[sight] |= {picture["alt"]} if picture else set()
    assert heard == {"image": {"Picture"}, "explanation": {"Picture with an explanation"}}
