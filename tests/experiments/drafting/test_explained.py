"""Which number of the model a study explains: read, refused, and written into every spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from experiments.definition.study import StudyDefinition
from experiments.drafting.draft import gather
from experiments.drafting.stimulus_specs import specs_of
from experiments.errors import InvalidStudy, StudyError
from experiments.study_files.load import load_study
from stimuli.errors import BadSpec
from stimuli.explainers.targets import Target
from stimuli.planner.values import ExplainedNumber
from stimuli.spec import StimulusSpec
from stimuli.store import LocalStore
from tests.experiments.definitions import definition
from tests.world import silent, write_study

pytestmark = pytest.mark.pure
LABELS = ("ant", "bee", "cat", "dog")
LOGITS = (0.5, 3.0, 2.0, 2.5)


# The number of one item


@pytest.mark.parametrize(
    ("target", "number"),
    [
        (Target(), ExplainedNumber(1)),
        (Target("true"), ExplainedNumber(2)),
        (Target("runner_up"), ExplainedNumber(3)),
        (Target("runner_up", among=("ant", "bee", "cat")), ExplainedNumber(2)),
        (Target("label", "ant"), ExplainedNumber(0)),
        (Target(operator="probability"), ExplainedNumber(1, operator="probability")),
        (Target(operator="margin"), ExplainedNumber(1, operator="margin", against=3)),
        (Target(operator="margin", among=("ant", "bee")), ExplainedNumber(1, operator="margin", against=0)),
        (Target("true", operator="margin"), ExplainedNumber(2, operator="margin", against=1)),
        (Target("runner_up", operator="margin"), ExplainedNumber(3, operator="margin", against=1)),
        (Target("label", "ant", "margin", ("bee", "cat")), ExplainedNumber(0, operator="margin", against=1)),
    ],
)
def test_it_finds_the_number_of_an_item(target: Target, number: ExplainedNumber) -> None:
    """The model says bee, the item is a cat."""
    assert target.number(LABELS, 1, "cat", LOGITS) == number


def test_the_predicted_class_is_the_one_that_people_are_told() -> None:
    """With outside = "restrict" it need not have the largest logit; the runner-up is another asked class."""
    target = Target("runner_up", operator="margin", among=("cat", "dog"))
    assert target.number(LABELS, 3, "cat", LOGITS) == ExplainedNumber(2, operator="margin", against=3)


def test_of_equal_logits_the_first_is_the_runner_up() -> None:
    assert Target("runner_up").number(LABELS, 1, "cat", (2.0, 3.0, 1.0, 2.0)).target == 0


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (Target("label", "bees"), r"'bees' \(did you mean 'bee'\?\).*name one of ant, bee, cat, dog"),
        (Target("true"), "the model has no class eel .*give both the same class names"),
        (Target("runner_up", among=("bee", "eel")), "has 1 of bee, eel"),
        (
            Target(operator="margin", among=("bee", "eel")),
            "compares two classes.*ask about classes that it has",
        ),
    ],
)
def test_it_refuses_what_the_model_does_not_have(target: Target, says: str) -> None:
    with pytest.raises(BadSpec, match=says):
        target.refuse(LABELS, ("bee", "eel"))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (Target(), "the logit of the predicted class"),
        (Target("true", operator="probability"), "the probability of the true class"),
        (Target("label", "ant"), "the logit of class 'ant'"),
        (
            Target("runner_up", operator="margin", among=("ant", "bee")),
            "the margin of the runner-up over the largest other logit of ant, bee",
        ),
    ],
)
def test_it_says_the_number_in_words(target: Target, words: str) -> None:
    assert target.words() == words


# The study file


def test_every_key_is_part_of_the_digest_once_it_says_something() -> None:
    plain = definition()
    tables: list[dict[str, Any]] = [
        {"of": "true"},
        {"of": "runner_up"},
        {"of": "label", "label": "wolf"},
        {"operator": "margin"},
        {"operator": "probability"},
    ]
    digests = {definition(explained=table).digest for table in tables}
    assert len(digests | {plain.digest}) == 6
    for default in ({}, {"of": "predicted"}, {"operator": "logit", "label": ""}):
        assert definition(explained=default).digest == plain.digest
    assert "explained" not in plain.as_met()
    assert all("explained" not in condition for condition in plain.as_met()["conditions"])


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"of": "label"}, "go together"),
        ({"label": "wolf"}, "go together"),
        ({"of": "second"}, "'predicted', 'true', 'runner_up' or 'label'"),
        ({"operator": "log_odds"}, "'logit', 'margin' or 'probability'"),
    ],
)
def test_it_refuses_tables_that_do_not_say_one_thing(table: dict[str, str], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        definition(explained=table)


def study(
    folder: Path, explained: str = "", control: str = "", saliency: str = "saliency"
) -> StudyDefinition:
    """The small study; `explained` is its table, `control` what its control adds."""
    path = write_study(folder)
    text = path.read_text().replace("[[conditions]]", f"[explained]\n{explained}\n[[conditions]]", 1)
    text = text.replace('{ name = "bottom_up_saliency" }', f'{{ name = "saliency" }}\n{control}')
    path.write_text(text.replace('name = "saliency" }', f'name = "{saliency}" }}'))
    return load_study(path)


def specs(folder: Path, study: StudyDefinition) -> dict[tuple[str, str], StimulusSpec]:
    return specs_of(study, gather(study, folder, LocalStore(folder / "store"), silent))


def test_the_true_class_is_the_predicted_one_where_the_model_is_right(tmp_path: Path) -> None:
    predicted, true = (specs(tmp_path, study(tmp_path, table)) for table in ("", 'of = "true"'))
    right = 0
    for (item, condition), spec in predicted.items():
        truth, said = item.split("/")[-2], item.split("/")[-1].split("-")[0]
        other = true[item, condition]
        assert other.operator == "logit" and other.against is None
        if truth == said or condition == "baseline":
            assert other == spec
            right += 1
        else:
            assert other.target == 1 - spec.target and other.attribution_key != spec.attribution_key
    assert 0 < right < len(predicted)


def test_a_margin_of_two_classes_is_taken_against_the_other(tmp_path: Path) -> None:
    made = specs(tmp_path, study(tmp_path, 'operator = "margin"'))
    for (_, condition), spec in made.items():
        margin = ("margin", 1 - spec.target) if condition != "baseline" else ("logit", None)
        assert (spec.operator, spec.against) == margin
        assert StimulusSpec.from_json(spec.as_json()) == spec


def test_a_control_may_show_the_map_of_another_class(tmp_path: Path) -> None:
    """The placebo has the specs of the method, but for the class."""
    made = specs(tmp_path, study(tmp_path, control='explained = { of = "runner_up" }'))
    items = {item for item, _ in made}
    assert items
    for item in items:
        control, method = made[item, "control"], made[item, "saliency"]
        assert control.target == 1 - method.target and control.explainer == method.explainer


def test_a_method_may_not(tmp_path: Path) -> None:
    path = write_study(tmp_path)
    text = path.read_text().replace(
        '{ name = "saliency" }', '{ name = "saliency" }\nexplained = { of = "true" }'
    )
    path.write_text(text)
    with pytest.raises(InvalidStudy, match="only a control with an explainer may explain another class"):
        load_study(path)


@pytest.mark.parametrize(
    ("explained", "method", "says"),
    [
        ('of = "label"\nlabel = "lefts"', "saliency", r"condition 'saliency'.*did you mean 'left'\?"),
        ('operator = "margin"', "rise", "condition 'saliency'.*set output = 'logit'"),
        ('operator = "probability"', "shap_partition", "set output = 'probability'"),
    ],
)
def test_it_is_refused_before_anything_is_rendered(
    tmp_path: Path, explained: str, method: str, says: str
) -> None:
    with pytest.raises(StudyError, match=says):
        specs(tmp_path, study(tmp_path, explained, saliency=method))
