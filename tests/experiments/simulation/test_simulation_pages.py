"""Pages around the trials: filled in as by a person who read them, and marked as simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from experiments.kinds.base import Choice
from experiments.simulation import SPEECH_MARK, person_class
from experiments.simulation.browser.api_messages import ChoiceWire, MediaWire, PageWire, QuestionWire
from experiments.simulation.browser.page_answers import Reader
from experiments.simulation.looking import perceive
from experiments.simulation.people import Person
from experiments.simulation.sight import Percept
from stimuli.datasets.practice import practice_pictures
from stimuli.errors import UnknownName

pytestmark = pytest.mark.pure


def question(id: str, kind: str, choices: tuple[str, ...] = (), **more: object) -> QuestionWire:
    buttons = [ChoiceWire(value=c, text=c, key=str(i)) for i, c in enumerate(choices)] or None
    empty = ("image", "explanation", "text", "label", "low", "high", "min", "max")
    base: dict[str, object] = {"required": True, **dict.fromkeys(empty)}
    return {"id": id, "kind": kind, "prompt": id, "choices": buttons, "max_length": None, **base, **more}  # type: ignore[typeddict-item]


def page(*questions: QuestionWire) -> PageWire:
    return {"kind": "any", "digest": "0" * 64, "html": "", "questions": list(questions)}


def attentive() -> Person:
    people = [person_class("learner").drawn(1, n) for n in range(20)]
    return max(people, key=lambda person: person.traits.reads_share)


def nowhere(image: MediaWire) -> Percept:
    raise AssertionError("nothing to look at")


def test_it_knows_the_quiz_when_it_read_the_instructions() -> None:
    quiz = {f"q{n}": ("yes", "no")[n % 2] for n in range(20)}
    asked = page(*[question(id, "choice", ("yes", "no", "perhaps")) for id in quiz])
    answers = Reader(attentive(), quiz, nowhere).value("quiz", asked)
    assert sum(answers[id] == quiz[id] for id in quiz) >= 19


def test_it_guesses_a_quiz_that_no_page_explained() -> None:
    asked = page(*[question(f"q{n}", "choice", ("yes", "no")) for n in range(40)])
    answers = Reader(attentive(), {}, nowhere).value("quiz", asked)
    assert 8 < list(answers.values()).count("yes") < 32


@pytest.mark.parametrize("seed", range(6))
def test_it_learns_practice_from_the_colours_of_the_examples(seed: int) -> None:
    drawn = practice_pictures(seed)
    images = {name: pixels for name, pixels, _ in drawn}
    questions = []
    for name, _, answer in drawn:
        shown = MediaWire(url=name, width_px=160, height_px=160, alt="Picture")
        if name.startswith("example"):
            questions.append(question(name, "example", image=shown, label=answer))
        else:
            questions.append(question(name, "sort", ("A", "B"), image=shown))
    reader = Reader(attentive(), {}, lambda image: perceive(images[image["url"]]))
    values = [reader.value("practice", page(*questions)) for _ in range(3)]
    right = {name: answer for name, _, answer in drawn if not name.startswith("example")}
    assert set(values[0]) == set(right)
    # Four questions, three tries: at most one slip of an attentive person.
    assert sum(value[name] == right[name] for value in values for name in right) >= 11


def test_it_stays_within_what_a_question_allows() -> None:
    asked = page(
        question("age", "number", min=30, max=33),
        question("year", "number"),
        question("eyes", "choice", ("fine", "poor")),
        question("how", "text", max_length=15),
    )
    for number in range(20):
        answers = Reader(person_class("guesser").drawn(1, number), {}, nowhere).value("questions", asked)
        assert 30 <= int(answers["age"]) <= 33
        assert isinstance(answers["year"], int)
        assert answers["eyes"] in ("fine", "poor")
        assert str(answers["how"]).startswith(SPEECH_MARK)
        assert len(str(answers["how"])) <= 15


def test_it_says_that_it_is_simulated() -> None:
    assert Reader(attentive(), {}, nowhere).comment().startswith("[simulated] ")


def test_it_passes_the_plain_gates_and_refuses_the_unknown() -> None:
    reader = Reader(attentive(), {}, nowhere)
    assert reader.value("consent", page()) == {"agree": True}
    assert reader.value("instructions", page()) == {"read": True}
    assert reader.value("device", page())["webdriver"] is False
    with pytest.raises(UnknownName, match="'mirror'"):
        reader.value("mirror", page())


def test_it_looks_at_each_plate_as_it_was_served() -> None:
    """A person with eyes for colours gets the very bytes, and nothing else of the plate but its answers."""
    seen: list[tuple[str, bytes, list[str]]] = []
    eyes = attentive()

    class Looking:
        def __getattr__(self, name: str) -> object:
            return getattr(eyes, name)

        def read_plate(self, plate: str, picture: bytes, choices: Sequence[Choice]) -> Choice:
            seen.append((plate, picture, [choice.value for choice in choices]))
            return choices[-1]

    plates = [
        question(f"plate-{n}", "choice", ("7", "8", "nothing"), image={"url": f"/m/{n}", "alt": "Picture"})
        for n in range(3)
    ]
    files = {f"/m/{n}": f"picture {n}".encode() for n in range(3)}
    reader = Reader(cast(Person, Looking()), {}, nowhere, fetch=files.__getitem__)
    answers = reader.value("plates", page(question("filter", "choice", ("off", "on", "unknown")), *plates))
    assert answers == {"filter": "off", **{f"plate-{n}": "nothing" for n in range(3)}}
    assert seen == [(f"plate-{n}", files[f"/m/{n}"], ["7", "8", "nothing"]) for n in range(3)]


def test_people_without_eyes_for_colours_answer_at_random_and_the_same_again() -> None:
    answers = [[str(digit) for digit in range(10)] + ["nothing"]] * 200
    plates = [
        question(f"plate-{n}", "choice", tuple(values), image={"url": "/m/0", "alt": "Picture"})
        for n, values in enumerate(answers)
    ]
    first, again = (Reader(attentive(), {}, nowhere).value("plates", page(*plates)) for _ in range(2))
    assert first == again
    counts = [list(first.values()).count(value) for value in answers[0]]
    assert min(counts) > 5 and max(counts) < 40
