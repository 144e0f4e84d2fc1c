"""A reverse Turing test over the API: practice with sentences, pages before blocks, halves that are told."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from analysis.exports.delimited import read
from analysis.exports.study_export import Request, export_study
from analysis.reports.reverse_turing.mixed_model import square_levels
from analysis.reports.reverse_turing.person_scores import person_rows, scored_tests
from analysis.reports.reverse_turing.report import report
from analysis.reports.reverse_turing.task_masking_effect import masking_contrasts
from analysis.tables.response_reader import read_frames, study_facts
from experiments.drafting.draft_rows import store_practice
from experiments.models import Slot, Study
from experiments.selectors import definition_of
from stimuli.datasets.practice import SENTENCES as PRACTICE
from stimuli.datasets.practice import practice_sentences
from stimuli.store.media_access import current_store
from tests.experiments.definitions import definition
from tests.experiments.protocols import SENTENCES, TURING, take_part, write
from tests.world import Person, opened_study

pytestmark = pytest.mark.django_db

DRAWN = SENTENCES + '\nlabel_names = "drawn"'
SIZES = "train_items = 3\ntest_items = 2\nsubsets = 1\npredictions_per_item_min = 1"
MASKED = 'task = "masked"\ntask_words = ["singular", "plural", "number", "subject*"]\n'
TEXTS = {
    "instructions_explained": "# With marks\n",
    "instructions_baseline": "# Without marks\n",
}
SIDES = {"instructions_known": "# Told: plural\n", "instructions_masked": "# Not told\n"}


def study(folder: Path, design: str, slots: int, texts: dict[str, str]) -> Study:
    """A masked study of two conditions."""
    tables = TURING.replace("[design]", f"[design]\n{MASKED}{design}")
    tables = tables.replace('role = "baseline"', f'role = "baseline"\nslots = {slots}')
    tables = tables.replace('role = "method"', f'role = "method"\nslots = {slots}')
    path = write(folder, "letters", "reverse_turing", tables, sources=DRAWN)
    names = "".join(f'\n{name} = "{name}.md"' for name in texts)
    text = path.read_text().replace('debrief = "debrief.md"', f'debrief = "debrief.md"{names}')
    text = text.replace('items = 8\nbalance = "none"', 'items = 24\nbalance = "prediction"')
    path.write_text(text)
    for name, content in texts.items():
        (folder / f"{name}.md").write_text(content)
    return opened_study(path)


def pages(person: Person) -> list[str]:
    """The texts of all instructions that a person meets, each answer given as the plan's own preview."""
    read: list[str] = []
    person.join()

    def gate(value: dict[str, Any], *rest: Any, **more: Any) -> Any:
        if person.state["step"] == "instructions":
            read.append(person.state["page"]["html"])
        return Person.gate(person, value, *rest, **more)

    person.gate = gate  # type: ignore[method-assign]
    while person.state["step"] not in ("comment", "finish"):
        person.arrive()
        block = person.state["block"]
        for trial in block["trials"]:
            if trial["position"] < person.state["next"]:
                continue
            row = next(t for t in person.trials() if str(t.pk) == trial["id"])
            choice = row.expected or trial["content"]["choices"][0]["value"]
            reply = person.respond(
                {"trial": trial["id"], "value": {"choice": choice}, "rt_ms": 9, "shown_ms": 9}
            )
            assert reply.status_code == 200, reply.content
        person.refresh()
    return read


def test_practice_is_sentences_with_a_rule_of_their_own(tmp_path: Path) -> None:
    study(tmp_path / "s", "", 1, {})
    tim = Person("tim", slug="letters")
    tim.arrive("practice")
    page = tim.state["page"]
    kinds = Counter(question["kind"] for question in page["questions"])
    assert kinds == {"example": 2, "sort": 4} and "sentences" in page["html"]
    rule = {text: answer for answer, texts in PRACTICE["en"].items() for text in texts}
    shown = []
    for question in page["questions"]:
        (piece,) = question["text"]["tokens"]
        assert piece["shade"] is None and question["image"] is None
        shown.append(piece["text"])
        if question["kind"] == "example":
            assert question["label"] == rule[piece["text"]]
        else:
            assert question["label"] is None
            body = {"digest": page["digest"], "question": question["id"], "choice": "A"}
            told = tim.call("POST", "/api/session/practice/told/", body).json()
            assert (told["label"], told["correct"]) == (rule[piece["text"]], rule[piece["text"]] == "A")
    assert len(set(shown)) == 6
    given = {q["id"]: rule[q["text"]["tokens"][0]["text"]] for q in page["questions"] if q["label"] is None}
    contradicting = tim.gate(given)
    assert contradicting.status_code == 400, "what was told stands"
    assert tim.gate(dict.fromkeys(given, "A")).json()["step"] == "practice", "two of four are too few"
    assert tim.gate(given).json()["step"] in ("trials", "instructions")


@pytest.mark.parametrize("language", ["en", "de"])
def test_practice_has_both_answers_among_its_examples_and_twice_among_its_questions(language: str) -> None:
    for seed in range(20):
        rows = practice_sentences(seed, PRACTICE[language])
        by_part = {
            part: [a for name, _, a in rows if name.startswith(part)] for part in ("example", "question")
        }
        assert sorted(by_part["example"]) == ["A", "B"] and sorted(by_part["question"]) == list("AABB")
        assert all(text in PRACTICE[language][answer] for _, text, answer in rows)
    assert practice_sentences(3, PRACTICE[language]) != practice_sentences(4, PRACTICE[language])


def test_studies_of_pictures_keep_their_pictures() -> None:
    rows = store_practice(definition(), current_store())
    assert all("file" in row and "text" not in row for row in rows) and len(rows) == 7


def test_each_block_of_a_square_has_its_page(tmp_path: Path) -> None:
    study(tmp_path / "s", 'assignment = "square"\n', 4, TEXTS)
    orders: Counter[tuple[str, ...]] = Counter()
    for name in ("ada", "ben", "cleo", "dora"):
        person = Person(name, slug="letters")
        common, *blocks = pages(person)
        assert "letters" not in common and len(blocks) == 2
        slot = person.session().slot
        assert slot is not None
        by_block = {
            t.block: t.condition.name
            for t in slot.trials.select_related("condition").order_by("position")
            if t.condition
        }
        for block, html in enumerate(blocks):
            assert ("With marks" in html) == (by_block[block] == "marked"), "the page speaks of its own block"
        orders[tuple(by_block.values())] += 1
    assert orders == {("plain", "marked"): 2, ("marked", "plain"): 2}


def test_halves_of_a_crossed_study_read_different_pages_before_the_same_trials(tmp_path: Path) -> None:
    made = study(tmp_path / "s", 'masking = "crossed"\n', 2, {**TEXTS, **SIDES})
    met: dict[tuple[str, str], list[str]] = {}
    for name in ("ada", "ben", "cleo", "dora"):
        person = Person(name, slug="letters")
        common, page = pages(person)
        slot = person.session().slot
        assert slot is not None and slot.condition is not None
        side, _ = slot.arm.split("/")
        assert ("Told: plural" in page) == (side == "known") and ("Not told" in page) == (side == "masked")
        assert ("With marks" in page) == (slot.condition.name == "marked") and "Told" not in common
        assert page.index("old") < page.index("marks"), "first the task, then the marks"
        met[side, slot.condition.name] = [str(t.item_id) for t in slot.trials.order_by("position")]
    assert set(met) == {(s, c) for s in ("known", "masked") for c in ("plain", "marked")}
    assert len({tuple(items) for items in met.values()}) == 1
    assert set(Slot.objects.filter(study=made).values_list("matched", flat=True)) == {0}


def test_a_half_that_is_told_has_one_page_in_the_square_more_than_none(tmp_path: Path) -> None:
    """Without texts of the conditions only the first block has a page: what the half is told."""
    study(tmp_path / "s", 'assignment = "square"\nmasking = "crossed"\n', 8, SIDES)
    person = Person("ada", slug="letters")
    common, *blocks = pages(person)
    assert len(blocks) == 1 and "old" in blocks[0]
    assert ("Told: plural" in blocks[0]) == person.session().slot.arm.startswith("known")  # type: ignore[union-attr]


def test_nothing_on_the_wire_of_a_masked_study_tells_task_or_class(tmp_path: Path) -> None:
    study(tmp_path / "s", "", 1, TEXTS)
    tim = Person("tim", slug="letters")
    said: list[str] = []
    call = tim.call

    def listening(*given: Any, **more: Any) -> Any:
        reply = call(*given, **more)
        said.append(reply.content.decode())
        return reply

    tim.call = listening  # type: ignore[method-assign]
    take_part(tim)
    wire = " ".join(said).lower()
    assert "class 1" in wire and "class_2" in wire and len(said) > 8
    for word in ("singular", "plural", "subject_number", "lime", "random_text", "machine"):
        assert word not in wire, word


def test_an_export_of_texts_is_read_back_and_scored_the_same(tmp_path: Path) -> None:
    made = study(tmp_path / "s", 'masking = "crossed"\n', 2, {**TEXTS, **SIDES})
    for name in ("ada", "ben", "cleo", "dora"):
        take_part(Person(name, slug="letters"))
    made.refresh_from_db()
    frames = read_frames(made)
    export_study(made, tmp_path / "out", Request())
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())["answers"]
    assert {row["value"]: row["means"] for row in told} == {
        definition_of(made).value_of(name): name for name in ("singular", "plural")
    }
    trials = read(tmp_path / "out" / "trials.csv", "trials", frames.extra)
    people = read(tmp_path / "out" / "participants.csv", "participants")
    assert set(people["arm"].str.split("/").str[0]) == {"known", "masked"}
    for column in ("item", "response", "model_label", "condition", "phase", "kind"):
        assert list(trials[column].astype(str)) == list(frames.trials[column].astype(str)), column
    rows = person_rows(frames)
    assert len(rows) == 4 and rows["accuracy"].between(0, 1).all()
    tests = trials[(trials["phase"] == "test") & (trials["check"] == "")]
    by_hand = (tests["response"] == tests["model_label"]).groupby(tests["session"]).mean()
    assert dict(rows.set_index("session")["accuracy"]) == pytest.approx(dict(by_hand))
    made_contrasts = masking_contrasts(rows, study_facts(made))
    assert [c.n for c in made_contrasts] == [(2, 2), (1, 1), (1, 1)]
    assert "singular" not in json.dumps([c for c, _ in definition_of(made).choices])


def test_the_report_knows_the_cells_of_a_square_that_people_took(tmp_path: Path) -> None:
    """Two conditions: two orders, two groups; subsets as the texts have them that were shown."""
    made = study(tmp_path / "s", 'assignment = "square"\n', 4, TEXTS)
    for name in ("ada", "ben", "cleo", "dora"):
        person = Person(name, slug="letters")
        pages(person)
        assert person.finish().status_code == 200
    made.refresh_from_db()
    frames, facts = read_frames(made), study_facts(made)
    tests = scored_tests(frames)
    levels = square_levels(frames, tests, facts)
    assert list(levels) == ["period", "before", "sequence", "subset"]
    by_subset = tests.groupby(levels["subset"])["item"].agg(set)
    assert len(by_subset) == 2 and not set.intersection(*by_subset)
    orders = tests.groupby(levels["sequence"])["condition"].agg(lambda met: tuple(dict.fromkeys(met)))
    assert dict(orders) == {"0": ("plain", "marked"), "1": ("marked", "plain")}
    assert [answer.means for answer in facts.answers] == [
        name for value, _ in definition_of(made).choices for name in ("singular", "plural")
        if definition_of(made).value_of(name) == value
    ]  # fmt: skip
    content = report(frames, facts).json()
    assert [row["strategies"]["chance"] for row in content["conditions"]["rows"]] == [0.5, 0.5]


@pytest.mark.parametrize("shown", [True, False])
def test_marks_stand_on_the_wire_in_training_and_while_the_answer_is_asked(
    tmp_path: Path, shown: bool
) -> None:
    """In the test too unless the study says otherwise; the baseline has none; each is one piece of text."""
    study(tmp_path / "s", f"test_explanations = {str(shown).lower()}\n", 1, TEXTS)
    met: dict[tuple[str, str], set[int]] = {}
    for name in ("ada", "ben"):
        person = Person(name, slug="letters")
        person.arrive()
        slot = person.session().slot
        assert slot is not None and slot.condition is not None
        for trial in person.state["block"]["trials"]:
            if text := trial["content"].get("text"):
                shades = [piece["shade"] for piece in text["tokens"] if piece["shade"]]
                met.setdefault((slot.condition.name, trial["phase"]), set()).add(len(shades))
                assert trial["content"].get("label") is None
                assert len(text["tokens"]) == 1 or shades
    assert met["plain", "train"] == met["plain", "test"] == {0}
    assert met["marked", "train"] == {3}, "LIME's three words, on random places"
    assert met["marked", "test"] == ({3} if shown else {0})
