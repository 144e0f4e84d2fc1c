"""The planted cases: what is frozen, what the network and the masks know, and what a report tells of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.reports import get_reporter
from analysis.reports.base import Main
from analysis.reports.output.html import page
from analysis.reports.parts.demo_cases import NOT_YET, with_beside
from analysis.reports.report import Report
from crowd.rehearsal import planted
from crowd.rehearsal.planted import CASES, case_lines, detection_counts, pictures
from experiments.errors import StudyError
from experiments.simulation.controls.substitute_explanations import CONTROLS
from stimuli.predictors import restore
from tests.analysis.worlds import facts, frames_of
from tests.proofs.planted import line_of

pytestmark = [pytest.mark.pure, pytest.mark.usefixtures("undrawn")]
NAMES = ("baseline", "control", "grad_cam")
CONTROL_ROW = {
    "observer": "all observers", "control": "oracle", "condition": "", "sittings_count": 6,
    "answers_count": 126, "accuracy": 0.6904, "low": 0.61, "high": 0.77, "gain": 0.0512, "gain_low": -0.01,
    "gain_high": 0.11,
}  # fmt: skip
BASELINE_ROW = CONTROL_ROW | {"control": "baseline", "accuracy": 0.6392, "gain": 0.0}


def report_of(origin: str = "simulated") -> Report:
    rng = np.random.default_rng(4)
    answers = {name: rng.binomial(7, 0.6, (6, 3)) for name in NAMES}
    return get_reporter("meta_predictor")(frames_of(answers, origin=origin), facts(NAMES, 6))


def kept_cases(**members: Any) -> dict[str, Any]:
    scores = {"baseline": [0.45, 0.5, 0.55], "marked": [0.7, 0.75, 0.8], "null": [0.5, 0.52, 0.54]}
    case = {"difference": 0.25, "low": 0.1, "high": 0.4, "p": 0.0004}
    return {
        "kind": "exemplar", "people": 3, "pictures": 44, "alpha": 0.05, "seed": 2022, "digest": "5e1d" * 16,
        "scores": scores, "cases": {"marked": case, "null": case | {"difference": 0.02, "p": 0.81}},
        "counted": {"runs": 200, "marked": 191, "null": 12, "power": 0.9634, "commit": "0123456789ab"},
        **members,
    }  # fmt: skip


def test_they_are_what_was_frozen() -> None:
    plant = planted.load_plant()
    assert plant.digest == planted.digest_of(plant)
    for other in (replace(plant, people=11), replace(plant, seed=1), replace(plant, alpha=0.1)):
        assert planted.digest_of(other) != plant.digest


def test_they_are_not_run_with_another_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "network.bin"
    other.write_bytes(planted.NETWORK.read_bytes() + b" ")
    monkeypatch.setattr(planted, "NETWORK", other)
    with pytest.raises(StudyError, match="not those that were frozen"):
        planted.load_plant()
    assert set(case_lines.shipped_run()) == {"why_not"}


def test_the_network_answers_by_the_sign_alone() -> None:
    """Nothing but the colour of one stone differs between the two, and the answer turns with it."""
    network: Any = restore(planted.NETWORK.read_bytes())
    pairs = [[pictures.draw(5, number, sign) for sign in (0, 1)] for number in range(12)]
    for warm, cool in pairs:
        changed = np.abs(warm.pixels.astype(int) - cool.pixels).max(axis=2) > 8
        assert changed.any() and np.array_equal(warm.mask, cool.mask)
        rows, columns = np.nonzero(warm.mask)
        inside = np.zeros_like(changed)
        inside[rows.min() - 3 : rows.max() + 4, columns.min() - 3 : columns.max() + 4] = True
        assert not (changed & ~inside).any()
    for sign in (0, 1):
        said = network.logits([network.view(pair[sign].pixels) for pair in pairs]).argmax(axis=1)
        assert list(said) == [sign] * len(pairs)


def test_the_sign_lies_anywhere_around_the_middle() -> None:
    """So a mask of another picture leads to the sign of this one as seldom as chance does."""
    drawn = [pictures.draw(6, number, number % 2) for number in range(40)]
    meets = [
        (drawn[at].mask & drawn[(at + step) % 40].mask).any() for at in range(40) for step in range(1, 40)
    ]
    assert np.mean(meets) == pytest.approx(1 / len(pictures.RING), abs=0.04)
    middle = slice(int(0.3 * pictures.SIZE_PX), int(0.7 * pictures.SIZE_PX))
    assert not any(each.mask[middle, middle].any() for each in drawn)


def test_every_group_has_its_own_people_on_the_same_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    met = []

    def seen(person: Any, plan: Any, material: Any, eye: Any, control: str, condition: str) -> float:
        met.append((control, person.number, [trial.item for trial in plan.trials]))
        return len(met) / 100

    monkeypatch.setattr(planted, "agreement", seen)
    made = planted.run(replace(planted.load_plant(), people=3), 11)
    assert list(CASES.values()) == ["baseline", "oracle", "other_image"] and set(CASES.values()) <= set(
        CONTROLS
    )
    assert [number for _, number, _ in met] == list(range(9))
    by_group = [[items for kind, _, items in met if kind == control] for control in CASES.values()]
    assert by_group[0] == by_group[1] == by_group[2]
    assert {each.first for each in made.test.comparisons} == {"marked", "null"}
    assert made.scores["marked"] == (0.04, 0.05, 0.06)


def test_who_is_led_to_the_sign_learns_it() -> None:
    """Four people of ten, on one seed that is not the shipped one: the direction alone is asked."""
    made = planted.run(replace(planted.load_plant(), people=4), 3)
    means = {name: float(np.mean(scores)) for name, scores in made.scores.items()}
    assert means["marked"] > means["null"] and means["marked"] > means["baseline"]


def test_what_was_counted_is_read_from_the_page_of_evidence_with_its_commit(tmp_path: Path) -> None:
    made = detection_counts.DetectionCounts("ab" * 32, 200, 191, 12, 0.9634)
    row = "| commit | seed | day |\n| --- | --- | --- |\n| 0123456789ab | 0 | 2026-11-29 |\n"
    file = tmp_path / "planted.md"
    file.write_text(f"# Proof\n\n{row}\n```\n{line_of(made)}\n```\n")
    assert detection_counts.counted_of("ab" * 32, file) == replace(made, commit="0123456789ab")
    assert detection_counts.counted_of("cd" * 32, file) is None, "it was counted for another version"
    assert detection_counts.counted_of("ab" * 32, tmp_path / "none.md") is None


def test_the_shipped_evidence_is_of_what_is_frozen() -> None:
    read = detection_counts.counted_of(planted.load_plant().digest)
    assert read is not None and read.runs == 200


def test_the_line_stands_under_the_table_until_the_controls_are_there() -> None:
    report = with_beside(report_of(), {"controls": None, "without": ""})
    at = [section.key for section in report.sections].index("controls")
    assert "conditions" in {table.key for table in report.sections[at - 1].tables}
    assert report.sections[at].paragraphs == (NOT_YET,) and report.sections[at].content is None
    first = next(at for at, main in enumerate(report.main) if main.table is not None)
    assert report.main[first + 1] == Main(None, (NOT_YET,))
    assert NOT_YET in page(report)
    then = with_beside(
        report_of(), {"controls": {"rows": [BASELINE_ROW, CONTROL_ROW], "faults": ["A fault."]}}
    )
    assert NOT_YET not in page(then) and "A fault." in page(then)
    dash = "\N{EN DASH}"
    assert then.tables()["controls"].rows == (
        ("all observers", "none", "126", "63.9", "[61.0, 77.0]", dash, dash),
        (
            "all observers",
            "planted region",
            "126",
            "69.0",
            "[61.0, 77.0]",
            "+5.1",
            "[\N{MINUS SIGN}1.0, 11.0]",
        ),
    )


def test_a_study_without_anything_to_compare_says_so() -> None:
    report = with_beside(report_of(), {"controls": None, "without": "Nothing to compare."})
    assert "Nothing to compare." in page(report) and NOT_YET not in page(report)


def test_the_cases_have_a_figure_of_their_own_and_stand_in_nothing_else() -> None:
    plain = report_of()
    report = with_beside(plain, {"controls": None, "planted": kept_cases()})
    (section,) = [each for each in report.sections if each.key == "planted_cases"]
    (figure,) = section.figures
    assert not section.tables and figure.key == "planted_cases"
    assert figure.data is not None and len(figure.data.rows) == 9
    others = [each for each in report.sections if each.key not in ("planted_cases", "controls")]
    assert others == list(plain.sections)
    for words in (
        "Simulated and planted: no result of this study", "9 exemplar observers, 3 per group",
        "these observers are to find it", "the same masks on other pictures", "Power at n = 3 per group: .96",
        "Of 200 other seeds 191 found the first and 12 the second", "at commit 0123456789ab",
        "frozen before the first run (digest 5e1d5e1d5e1d)",
    ):  # fmt: skip
        assert words in figure.caption, figure.caption
    drawn = figure.draw()
    assert "computational observers" in drawn._suptitle.get_text()
    assert [text.get_text() for text in drawn.axes[0].get_yticklabels()][0] == "No explanation"


def test_it_says_if_nobody_has_counted_them_or_why_they_were_not_run() -> None:
    uncounted = with_beside(report_of(), {"controls": None, "planted": kept_cases(counted=None)})
    assert "was not counted for this version" in page(uncounted)
    refused = with_beside(report_of(), {"controls": None, "planted": {"why_not": "They changed."}})
    assert "They changed." in page(refused) and 'id="figure-planted_cases"' not in page(refused)


def test_nothing_is_added_where_no_demo_kept_anything() -> None:
    report = report_of()
    assert with_beside(report, {}) is report
