"""The studies that come with the project: valid as they stand, and what the documentation says they are."""

import re

import pytest

from experiments.paradigms.assisted_decision import AssistedDecisionDesign
from experiments.paradigms.blind_review import TELLING, BlindReviewDesign
from experiments.paradigms.masking import words_said
from experiments.paradigms.rating import RatingDesign
from experiments.paradigms.reverse_turing import ReverseTuringDesign
from experiments.study_files.load import STUDIES_DIR, find_study, load_study
from experiments.wording.markdown import html_of
from experiments.wording.sentence_tables import FOLDER, words_for
from experiments.wording.sentences import placeholders
from stimuli.explainers import kind_of

pytestmark = pytest.mark.pure
SLUGS = sorted(path.parent.name for path in STUDIES_DIR.glob("*/study.toml"))
BLIND = ("find-the-digit", "digit-answers", "digits-by-label")


@pytest.mark.parametrize("slug", SLUGS)
def test_it_ships_a_valid_study_whose_texts_name_only_known_words(slug: str) -> None:
    definition = load_study(find_study(slug))
    assert definition.slug == slug and definition.quiz and definition.ethics.deception
    for text in definition.texts.values():
        assert not re.search(r"\{\w+\}", html_of(text, placeholders(definition)))


@pytest.mark.parametrize("slug", ["wolf-or-husky", "leaves", "foxes"])
def test_it_ships_the_eight_conditions_of_the_paper(slug: str) -> None:
    definition = load_study(find_study(slug))
    roles = [condition.role for condition in definition.conditions]
    assert roles == ["baseline", "control", *["method"] * 6]
    assert {condition.slots for condition in definition.conditions} == {31}
    assert definition.reward.amount_cents == 140 and definition.stimuli.items == 120
    assert definition.render.spec().sign == "positive"


def test_it_ships_a_known_and_a_masked_task_on_texts() -> None:
    """The paper's sizes, and those of its published stimuli: 75 + 30 texts per task."""
    known, masked = (load_study(find_study(slug)) for slug in ("sentiment", "sorted-sentences"))
    by_study = {}
    for study in (known, masked):
        design = ReverseTuringDesign(**study.design)
        by_study[study.slug] = (design.task, design.assignment, 3 * design.train_items, 3 * design.test_items)
        assert design.test_explanations and study.render.preset == "reverse-turing"
        assert study.stimuli.balance == "prediction_x_correct"
        assert {"strategy"} <= {question.id for question in study.questions if question.when == "after"}
    assert by_study["sentiment"] == ("known", "between", 75, 45)
    assert by_study["sorted-sentences"] == ("masked", "square", 75, 30)
    assert min(condition.slots for condition in known.conditions) >= 24
    assert "also when it is wrong" in known.texts["instructions"]
    assert masked.choices == (("class_1", "Class 1"), ("class_2", "Class 2"))
    assert "about" in {question.id for question in masked.questions}


@pytest.mark.parametrize("slug", SLUGS)
def test_no_study_speaks_of_the_pictures_of_another(slug: str) -> None:
    words = {
        "wolf-or-husky": {"wolf", "husky"},
        "leaves": {"leaf", "leaves"},
        "foxes": {"fox", "foxes"},
        "grass-or-gravel": {"gravel"},
        "sentiment": {"opinion", "opinions"},
        "sorted-sentences": {"class", "classes"},
        "rate-explanations": {"rate", "rated", "rating", "ratings"},
        "find-the-digit": {"brush", "paint"},
        "digit-answers": {"outlined"},
        "digits-by-label": {"leisure"},
        "alder-or-dogwood": {"twice"},
    }
    folder = find_study(slug).parent
    texts = " ".join(
        path.read_text(encoding="utf-8") for path in folder.glob("*.*") if path.name != "study.toml"
    )
    used = set(re.findall(r"\w+", texts.lower()))
    assert used & words[slug]
    foreign = set().union(*(theirs for other, theirs in words.items() if other != slug))
    assert not used & foreign


@pytest.mark.parametrize("slug", SLUGS)
def test_it_asks_what_the_machine_answered_in_one_wording(slug: str) -> None:
    """Texts, quiz and questions of the study, and the words of the interface: not "would", not "will"."""
    folder = find_study(slug).parent
    paths = [*folder.glob("*.*"), FOLDER / "en.json", FOLDER / "en.toml"]
    texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
    other = r"\b(would|will) (answer|say)\b|\b(would|will) (the|a) machine\b|predict what the machine answers"
    assert {name: re.findall(other, text) for name, text in texts.items()} == dict.fromkeys(texts, [])
    asked = dict.fromkeys(BLIND, "answer =")  # asks for no answer of a machine
    asked |= {
        "sentiment": "What the machine answers",
        "sorted-sentences": "The class that the computer chose",
        "alder-or-dogwood": "What the picture shows",
    }
    assert asked.get(slug, "What the machine answered") in texts["quiz.toml"]


def test_it_asks_the_photograph_study_for_a_weak_network() -> None:
    predictor = load_study(find_study("grass-or-gravel")).stimuli.predictor
    assert predictor is not None and predictor.component().params["target_accuracy"] == [0.6, 0.8]


def test_it_ships_ratings_of_maps_and_of_named_concepts_with_all_six_questions() -> None:
    """PASTA's questions; each dataset has both forms of explanation and a control that says nothing."""
    definition = load_study(find_study("rate-explanations"))
    design = RatingDesign(**definition.design)
    assert [row.id for row in design.rows] == ["q1", "q2", "q3", "q4", "q5", "q6"]
    assert [row.pair for row in design.rows] == ["", "", "", "", "light", "strong"]
    assert design.raters_per_explanation == 3 and design.anchors == 2 and definition.sittings_max == 3
    for dataset in ("canines", "leaves"):
        shown = [c for c in definition.conditions if c.dataset == dataset]
        forms = {c.explainer and kind_of(c.explainer.component()) for c in shown}
        assert forms == {"image", "concept"}
        assert [c.explainer and c.explainer.name for c in shown if c.role == "control"] == ["random"]


def test_it_ships_advice_of_a_declared_accuracy_with_and_without_explanations() -> None:
    definition = load_study(find_study("alder-or-dogwood"))
    design = AssistedDecisionDesign(**definition.design)
    assert (design.advice_accuracy, design.test_items, design.right_items) == (0.7, 20, 14)
    roles = [condition.role for condition in definition.conditions]
    assert roles == ["baseline", "advice", "control", "method"]
    assert len({condition.slots for condition in definition.conditions}) == 1
    # What everybody reads before they have a condition is true of every condition.
    assert "With some people, what a machine answered stands beside it." in definition.texts["instructions"]
    assert "machine" not in definition.texts["instructions_again"]


def test_it_explains_each_question_to_raters_by_two_examples() -> None:
    definition = load_study(find_study("rate-explanations"))
    words, text = words_for(definition), definition.texts["instructions"]
    asked = [words[f"rate_{row.id}"] for row in RatingDesign(**definition.design).rows]
    _, *parts = re.split("|".join(f"\\*\\*{re.escape(question)}\\*\\*" for question in asked), text)
    assert len(parts) == len(asked), "in the words of the page"
    for part in parts:
        assert part.count("\n- High: ") == 1 and part.count("\n- Low: ") == 1


@pytest.mark.parametrize("slug", BLIND)
def test_a_blind_study_tells_of_the_network_in_its_debrief_alone(slug: str) -> None:
    definition = load_study(find_study(slug))
    assert not [*words_said(definition, (*TELLING, "network*", "computer*", "program*"), "", "")]
    assert "neural network" in definition.texts["debrief"] and "neural network" in definition.ethics.deception
    assert definition.ethics.special_category and definition.ethics.retention_days


@pytest.mark.parametrize("slug", BLIND)
def test_a_blind_study_asks_what_people_suspected_before_it_tells_them(slug: str) -> None:
    definition = load_study(find_study(slug))
    funnel = [question for question in definition.questions if question.id.startswith("suspect")]
    assert len(funnel) >= 3 and {question.when for question in funnel} == {"after"}
    assert funnel[0].kind == "text" and "about" in funnel[0].prompt, "the widest question comes first"


def test_the_two_stages_of_the_digits_fit_together() -> None:
    solve, review = (load_study(find_study(slug)) for slug in BLIND[:2])
    first, second = BlindReviewDesign(**solve.design), BlindReviewDesign(**review.design)
    assert second.solutions_from == solve.slug and first.grid == second.grid
    assert [(c.name, c.role) for c in solve.conditions] == [(c.name, c.role) for c in review.conditions]
    assert solve.stimuli == review.stimuli and solve.plates == review.plates
    assert first.colour_vision == second.colour_vision == "plates"
    assert second.runs * (second.tasks_per_run + second.lures_per_run) <= solve.stimuli.items


def test_it_ships_a_review_of_labels_that_needs_no_other_study() -> None:
    definition = load_study(find_study("digits-by-label"))
    design = BlindReviewDesign(**definition.design)
    assert design.solutions_from == "labels" and design.runs == 1
    assert definition.plates is None and not [c for c in definition.conditions if c.explainer]


def test_it_sends_neutral_values_with_neutral_names() -> None:
    definition = load_study(find_study("wolf-or-husky"))
    stimuli = definition.stimuli.model_copy(update={"label_names": "neutral"})
    neutral = definition.model_copy(update={"stimuli": stimuli})
    assert neutral.choices == (("class_1", "Class 1"), ("class_2", "Class 2"))
