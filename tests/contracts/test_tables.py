"""Every table of names refuses a misspelt name alike: one error type, the closest and all known names."""

from typing import Any

import pytest

from analysis.exports import EXPORTERS, get_exporter
from analysis.reports import REPORTERS, get_reporter
from crowd.platforms import PLATFORMS, has_service, service_class, traits_of
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.simulation import PEOPLE, person_class
from stimuli.datasets import DATASETS
from stimuli.errors import BadSpec, UnknownName
from stimuli.explainers import EXPLAINERS, check_explainer
from stimuli.metrics import METRICS, SET_METRICS, check_metric
from stimuli.predictors import PREDICTORS
from stimuli.predictors.files.picture_archive_reader import READERS
from stimuli.registry import Table
from stimuli.spec import Component

pytestmark = pytest.mark.pure

TABLES: list[Table[Any]] = [
    DATASETS, PREDICTORS, EXPLAINERS, METRICS, SET_METRICS, READERS, PARADIGMS, PEOPLE, REPORTERS, EXPORTERS,
    PLATFORMS,
]  # fmt: skip
every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.noun)


@every_table
def test_it_refuses_a_misspelt_name_with_the_closest_and_the_known_ones(table: Table[Any]) -> None:
    known = table.names[0]
    with pytest.raises(UnknownName) as refused:
        table.load(f"{known}x")
    sentence = str(refused.value)
    assert sentence.startswith(f"there is no {table.noun} '{known}x' (did you mean '{known}'?): known are ")
    assert all(name in sentence for name in table)


def test_it_has_one_type_of_error_for_unknown_names() -> None:
    assert issubclass(UnknownName, BadSpec)


@every_table
def test_it_loads_every_entry(table: Table[Any]) -> None:
    for name in table:
        assert table.load(name) is table.load(name)
        assert table.origin(name) is None


@pytest.mark.parametrize(
    ("look_up", "name"),
    [
        (get_paradigm, "meta_predicter"),
        (person_class, "lerner"),
        (get_reporter, "meta_predicter"),
        (get_exporter, "csw"),
        (traits_of, "prolifik"),
        (service_class, "prolifik"),
        (has_service, "prolifik"),
        (lambda name: check_explainer(Component(name)), "salience"),
        (lambda name: check_metric(Component(name)), "deletions"),
    ],
)
def test_it_answers_alike_at_every_look_up(look_up: Any, name: str) -> None:
    with pytest.raises(UnknownName, match="there is no .*did you mean .*: known are"):
        look_up(name)
