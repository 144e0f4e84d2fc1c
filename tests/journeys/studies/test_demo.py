"""The demo as a person runs it, in a process of its own, with rows and files of its own."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from analysis.reports.parts.demo_cases import EXPLANATIONS, NOT_YET
from crowd.rehearsal.demo.defaults import USUAL
from crowd.rehearsal.demo.folder_and_port import DemoFailed, check_port
from crowd.rehearsal.demo.steps import sessions_line
from crowd.rehearsal.demo.study_rounds import scale_study
from experiments.simulation import OBSERVERS
from experiments.simulation.browser.walk import Outcome
from experiments.simulation.controls.substitute_explanations import ALL
from experiments.simulation.population import DEFAULT_MIX
from experiments.study_files.load import load_study
from tests import services
from tests.experiments.protocols import RATING, TWO_MODELS, write
from tests.world import write_study

CONDITIONS = ("Baseline", "Control", "Saliency", "Occlusion")
FOURTH = """
[[conditions]]
name = "occlusion"
role = "method"
explainer = { name = "occlusion" }
slots = 2
"""


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    """The small study with a fourth condition, so that the walk-in places divide evenly."""
    path = write_study(tmp_path / "study", blocks="blocks = 1")
    path.write_text(path.read_text() + FOURTH)
    return path


def run_demo(env: dict[str, str], study: Path | str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "demo", "--here", "--no-serve", "--study", str(study), *more]
    return subprocess.run(
        command,
        cwd=services.ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "160", **env},
        capture_output=True,
        text=True,
    )


def cells(text: str, first: str) -> list[list[str]]:
    """The table rows that begin with these words, cut at gaps of two spaces."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.startswith(first)]


def test_it_keeps_places_for_visitors_in_a_design_whose_places_do_not_follow_from_slots(
    tmp_path: Path,
) -> None:
    """One more rater for each explanation: a whole round of lists beside those of the simulated people."""
    study = load_study(write(tmp_path / "r", "ratings", "rating", RATING, sources=TWO_MODELS))
    wanted, changes = scale_study(study, 40)
    assert (wanted, changes["design"]) == (40, {**study.design, "raters_per_explanation": 3})


@pytest.mark.sqlite_only("the demo keeps its rows there")
def test_it_shows_the_whole_life_of_a_study(project_env: dict[str, str], study_file: Path) -> None:
    port = services.free_port()
    # The study that comes if none is named is the one with planted cases.
    study_file.write_text(study_file.read_text().replace('slug = "small"', f'slug = "{USUAL}"'))
    result = run_demo(project_env, study_file, "--participants", "7", "--port", str(port))
    assert result.returncode == 0, result.stderr[-2000:]
    printed = result.stdout
    assert re.findall(r"^Step (\d) of 5\. ", printed, re.MULTILINE) == list("12345")
    # 7 people over 4 conditions: 2 each, and 2 of the 8 walk-in places in each.
    assert f"{USUAL} is open: 16 slots in 4 conditions." in printed
    assert re.search(r"\d+ people came for \d+ sessions, of which 8 passed, with [\d,]+ requests\.", printed)
    assert "Done. 8 walk-in slots are free." in printed
    for name in CONDITIONS:
        assert any(row[1] == "2" for row in cells(printed, name) if len(row) > 1), (name, printed)
    assert re.search(r"F\(3, 4\) = |No group has any variance", printed)
    before, controls = printed.split("Controls of the observers")
    assert "Computational observers, not people. Who comes (seed " in before
    assert before.count(NOT_YET) == 1, "until the controls are there"
    said = re.findall(r"^(\w+) +\S.* (\d+)% *$", before, re.MULTILINE)
    assert ",".join(f"{kind}={int(share) / 100:g}" for kind, share in said) == DEFAULT_MIX
    assert "Computational observers, not people." in controls
    report = json.loads((Path(project_env["LEGIBLE_VAR"]) / "controls.json").read_text())
    assert report["heading"] == "Computational observers, not people."
    together = [row for row in report["rows"] if not row["condition"]]
    each = ["baseline", "shown", "permuted", "other_image"]
    wanted = [(kind, control) for kind in (*OBSERVERS, ALL) for control in each]
    assert [(row["observer"], row["control"]) for row in together] == wanted
    page = (Path(project_env["LEGIBLE_VAR"]) / f"report-{USUAL}" / "report.html").read_text()
    under = page.split('id="controls"')[1].split("</section>")[0]
    assert NOT_YET not in page and page.index('id="conditions"') < page.index('id="controls"')
    for row in together:
        cells_of = row["observer"], EXPLANATIONS[row["control"]], str(row["answers_count"])
        words = (*cells_of, f"{100 * row['accuracy']:.1f}")
        assert re.search(rf"^{' +'.join(map(re.escape, words))} ", controls, re.MULTILINE), (row, controls)
        head, *rest = (re.escape(word) for word in words)
        assert re.search(rf">{head}</th>" + "".join(rf"<td[^>]*>{word}</td>" for word in rest), under), row
    assert page.count('<figure id="figure-planted_cases">') == 1
    assert "Look for faults" not in printed, "only if it is asked for"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0  # its server has ended as well


@pytest.mark.pure
@pytest.mark.parametrize(
    ("sittings", "passed", "said"),
    [
        ({"ann": 1}, 1, "1 person came for 1 session, of which 1 passed"),
        ({"ann": 1, "ben": 1}, 1, "2 people came for 2 sessions, of which 1 passed"),
        ({"ann": 3, "ben": 1, "cy": 3}, 6, "3 people came for 7 sessions, of which 6 passed"),
        ({"ann": 2}, 0, "1 person came for 2 sessions, of which 0 passed"),
    ],
)
def test_it_counts_people_and_their_sessions_apart(sittings: dict[str, int], passed: int, said: str) -> None:
    outcomes = [
        Outcome(person, "learner", "finished", "finish", "debrief", 4, 300)
        for person, count in sittings.items()
        for _ in range(count)
    ]
    assert sessions_line(outcomes, passed) == f"{said}, with {300 * len(outcomes):,} requests."


SCENARIOS = {"first": "biased", "second": "lookalike"}


def scenario_file(folder: Path, slug: str, scenario: str) -> Path:
    """The small study on few pictures of a planted scenario."""
    dataset = f'{{ name = "synthetic", scenario = "{scenario}", count = 64, model_count = 16, size_px = 64 }}'
    classes = {"biased": ["husky", "wolf"], "lookalike": ["kit fox", "red fox"]}[scenario]
    path = write_study(folder / slug, slug, dataset=f"dataset = {dataset}", classes=f"classes = {classes}")
    # A model that is a formula errs as it likes: only its answers are balanced.
    text = path.read_text()
    path.write_text(text.replace("[[conditions]]", 'balance = "prediction"\n[[conditions]]', 1))
    return path


@pytest.mark.long(stays="test_it_shows_the_whole_life_of_a_study")
@pytest.mark.sqlite_only("the demo keeps its rows there")
def test_it_runs_every_scenario_and_sets_them_side_by_side(
    project_env: dict[str, str], tmp_path: Path
) -> None:
    files = [str(scenario_file(tmp_path, slug, scenario)) for slug, scenario in SCENARIOS.items()]
    port = str(services.free_port())
    options = ("--participants", "7", "--unseen", "40", "--port", port, "--all-scenarios", *files)
    result = run_demo(project_env, files[0], *options)
    assert result.returncode == 0, result.stderr[-2000:]
    printed = result.stdout
    # 7 people over 3 conditions: 3 each in every scenario.
    assert printed.count("sessions, of which 9 passed, with") == len(SCENARIOS)
    assert printed.count("The ceiling is learned from 40 unseen pictures.") == len(SCENARIOS)
    told = json.loads((Path(project_env["LEGIBLE_VAR"]) / "scenarios.json").read_text())
    assert [made["slug"] for made in told["scenarios"]] == list(SCENARIOS)
    assert told["reading"] in printed
    table = printed.split("Accuracy (%) per block, and Utility, by scenario")[1]
    for row in (made["conditions"] for made in told["scenarios"]):
        for condition in row:
            shown = cells(table, condition["label"])[0]
            assert f"{100 * condition['accuracy'][0]:.1f}" in shown
    for made in told["scenarios"]:
        # People see the original picture, on whose grid the planted region is, so the oracle answers too.
        assert set(made["controls"]) == {"baseline", "shown", "permuted", "other_image", "oracle", "ceiling"}
        assert {"deletion", "deletion_drawn", "insertion", "insertion_drawn", "jpeg_complexity"} <= set(
            made["metrics"]["saliency"]
        )
    page = (Path(project_env["LEGIBLE_VAR"]) / "scenarios.html").read_text()
    for text in (printed, page):
        assert "Computational observers, not people." in text


class Neighbour(BaseHTTPRequestHandler):
    """A server whose health reply is that of another demo."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@contextmanager
def neighbour() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Neighbour) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_it_does_not_take_a_neighbours_server_for_its_own(
    project_env: dict[str, str], study_file: Path
) -> None:
    with neighbour() as port:
        result = run_demo(project_env, study_file, "--port", str(port))
    assert result.returncode == 1
    assert result.stderr.strip() == f"CommandError: Port {port} is in use; try --port {port + 1}."
    assert result.stdout == ""
    assert not Path(project_env["STORAGE_URL"]).exists()


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_it_refuses_what_is_no_port(port: int) -> None:
    with pytest.raises(DemoFailed, match=f"--port {port}: give a number from 1 to 65535"):
        check_port(port)


def test_it_names_every_mistake_of_a_study_file(project_env: dict[str, str], study_file: Path) -> None:
    text = study_file.read_text()
    for good, bad in (
        ('explainer = { name = "saliency" }', 'explainer = { name = "tea_leaves" }'),
        ("test_per_block = 4", "test_per_block = -4"),
        ("instructed_share_min = 1.0", "instructed_share_min = 3.0"),
        ('debrief = "debrief.md"', 'debrief = "nowhere.md"'),
    ):
        assert good in text
        text = text.replace(good, bad)
    study_file.write_text(text)
    result = run_demo(project_env, study_file, "--port", str(services.free_port()))
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    for part in ("4 mistakes", "tea_leaves", "test_per_block", "instructed_share_min", "nowhere.md"):
        assert part in result.stderr, result.stderr


def test_it_says_which_studies_there_are(project_env: dict[str, str]) -> None:
    result = run_demo(project_env, "wolf-or-huski", "--port", str(services.free_port()))
    assert result.returncode == 1
    assert "Traceback" not in result.stderr and "wolf-or-husky" in result.stderr
