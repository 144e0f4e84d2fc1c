"""A whole study: two workers render it through the real command, and are killed at random while they do.

PostgreSQL, Redis, Celery workers, its clock and `build_stimuli` are the real ones. What is observed from
outside: whether every stimulus is there, once, with its files; how fast; and whether the workers' memory
stays the same.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg2

from benchmarks.processes import rss_mb
from tests import services
from tests.run.guard import Service

WORKERS = 2
LOOK_EVERY_S = 0.5
LEASE_S = 30
WITHIN_S = 3600.0
SEED = 5

METHODS: Mapping[str, str] = {
    "saliency": "",
    "gradient_x_input": "",
    "integrated_gradients": "steps = 20",
    "smooth_grad": "draws = 20",
    "guided_backprop": "",
    "grad_cam": "",
    "hires_cam": "",
    "grad_cam_elementwise": "",
    "grad_cam_plus_plus": "",
    "xgrad_cam": "",
    "layer_cam": "",
    "eigen_cam": "",
    "eigen_grad_cam": "",
    "deep_feature_factorization": "",
    "full_grad": "",
    "ablation_cam": "",
    "score_cam": "",
    "occlusion": "",
    "lime_image": 'segmentation = "grid-1"',
    "spectral_residual": "",
}
"""The methods that a study of fewer takes the first of, and their parameters."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How large the study is, and how often a worker is killed."""

    items: int = 1000
    methods: int = 20
    kills: int = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """The memory of one worker with its children: `age_s` seconds after it was ready."""

    worker: int
    age_s: float
    mb: float
    done: int


@dataclass(frozen=True)
class Measured:
    """What was found. `expected` counts stimuli, the baseline's too; `lost_files` pictures that a row names
    and that are not there whole. `prepared_s` is what passed before the first stimulus was known.
    """

    plan: Plan
    expected: int
    done: int
    keys: int
    failed: int
    lost_files: int
    kills: int
    wall_s: float
    prepared_s: float
    samples: Sequence[Sample] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return self.done == self.keys == self.expected and not self.failed and not self.lost_files


def measure(plan: Plan, say: Callable[[str], None]) -> Measured:
    """Build the study; `say` is called with the progress."""
    with tempfile.TemporaryDirectory(prefix="legible-bench-") as folder, _servers(Path(folder)) as env:
        path = _write(Path(folder) / "study", plan)
        started = time.monotonic()
        with ExitStack() as stack:
            build = ["manage", "build_stimuli", str(path)]
            builder = stack.enter_context(services.project_process("builder", build, env))
            crew = Crew(env, stack)
            prepared, samples, kills = _attend(plan, builder, crew, env, say)
        wall = time.monotonic() - started
        return _found(plan, env, kills, wall, prepared - started, samples)


class Crew:
    """The workers: as many as there should be, a killed one is replaced."""

    def __init__(self, env: Mapping[str, str], stack: ExitStack) -> None:
        self.env, self.stack = env, stack
        self.workers: dict[int, tuple[Service, float]] = {}
        self.hired = 0
        for _ in range(WORKERS):
            self.hire()

    def hire(self) -> None:
        worker = self.stack.enter_context(services.celery_worker(self.env))
        self.workers[self.hired] = (worker, time.monotonic())
        self.hired += 1

    def lose(self, number: int) -> None:
        """kill -9 for one of them, children included; another one is started."""
        worker, _ = self.workers.pop(number)
        worker.kill()
        self.hire()

    def look(self, done: int) -> Iterator[Sample]:
        now = time.monotonic()
        for number, (worker, since) in self.workers.items():
            yield Sample(number, now - since, rss_mb(worker.pid), done)


def _attend(
    plan: Plan, builder: Service, crew: Crew, env: Mapping[str, str], say: Callable[[str], None]
) -> tuple[float, list[Sample], int]:
    """Watch until the command ends, and kill a worker whenever one more share of the stimuli is done.

    When exactly, and which one, is drawn at random within each share.
    """
    draws = random.Random(SEED)
    expected = _expected(plan)
    moments = [int((number + draws.random()) * expected / plan.kills) for number in range(plan.kills)]
    samples: list[Sample] = []
    prepared, kills, ends = 0.0, 0, time.monotonic() + WITHIN_S
    while " rendered now (definition " not in (log := builder.log()):
        if not builder.is_running() or time.monotonic() > ends:
            raise RuntimeError(f"the study was not built:\n{log[-3000:]}")
        done, rows = _counted(env)
        if rows and not prepared:
            prepared = time.monotonic()
        samples.extend(crew.look(done))
        say(f"{done} of {expected} stimuli, {kills} workers killed")
        if kills < len(moments) and moments[kills] <= done < expected:
            crew.lose(draws.choice(sorted(crew.workers)))
            kills += 1
        time.sleep(LOOK_EVERY_S)
    return prepared or time.monotonic(), samples, kills


@contextmanager
def _servers(folder: Path) -> Iterator[dict[str, str]]:
    """PostgreSQL, Redis and Celery's clock; yields what the project's processes need to know."""
    with services.postgres() as database, services.redis_server() as broker:
        env = {
            "DATABASE_URL": services.create_database(database.port, "legible"),
            "CELERY_BROKER_URL": broker,
            "LEGIBLE_VAR": str(folder / "var"),
            "STORAGE_URL": str(folder / "store"),
            "SECRET_KEY": "only-for-benchmarks",
            "DJANGO_SETTINGS_MODULE": "crowd.settings",
            "STIMULUS_DEVICE": "cpu",
            "STIMULUS_LEASE_S": str(LEASE_S),
            "OMP_NUM_THREADS": "1",  # the workers share the cores
        }
        services.migrate(env)
        with services.celery_beat(env):
            yield env


def _write(folder: Path, plan: Plan) -> Path:
    """A study of as many items and methods, on a network that is trained in seconds."""
    folder.mkdir()
    for name in ("consent", "instructions", "debrief", "explained", "plain"):
        (folder / f"{name}.md").write_text(f"# {name}\n")
    count = plan.items + -plan.items % 4
    conditions = "".join(
        CONDITION.format(name=name, parameters=f", {text}" if text else "")
        for name, text in list(METHODS.items())[: plan.methods]
    )
    path = folder / "study.toml"
    path.write_text(STUDY.format(count=count, items=plan.items, conditions=conditions))
    return path


CONDITION = """
[[conditions]]
name = "{name}"
role = "method"
explainer = {{ name = "{name}"{parameters} }}
slots = 1
"""
STUDY = """
slug = "many"
title = "Many stimuli"
paradigm = "meta_predictor"
seed = 11
[design]
blocks = 1
train_per_block = 2
test_per_block = 2
[stimuli]
dataset = {{ name = "synthetic", scenario = "biased", count = {count}, model_count = 160, size_px = 64 }}
predictor = {{ name = "trained_cnn", epochs = 2, width = 48, input_px = 64, train_items = 160 }}
classes = ["husky", "wolf"]
balance = "none"
items = {items}
[[conditions]]
name = "baseline"
role = "baseline"
slots = 1
{conditions}
[texts]
consent = "consent.md"
instructions = "instructions.md"
instructions_explained = "explained.md"
instructions_baseline = "plain.md"
debrief = "debrief.md"
[checks]
instructed = 0
repeat = 0
[ethics]
contact = "lab@example.org"
[reward]
amount_cents = 100
expected_minutes = 4
"""


def _expected(plan: Plan) -> int:
    return plan.items * (1 + plan.methods)


def _ask(env: Mapping[str, str], question: str) -> list[tuple[object, ...]]:
    with closing(psycopg2.connect(env["DATABASE_URL"])) as server, server.cursor() as cursor:
        cursor.execute(question)
        return list(cursor.fetchall())


def _counted(env: Mapping[str, str]) -> tuple[int, int]:
    """How many stimuli are done, and how many there are."""
    ((done, rows),) = _ask(
        env, "SELECT count(*) FILTER (WHERE state = 'done'), count(*) FROM stimuli_stimulus"
    )
    assert isinstance(done, int) and isinstance(rows, int)
    return done, rows


def _found(
    plan: Plan,
    env: Mapping[str, str],
    kills: int,
    wall_s: float,
    prepared_s: float,
    samples: Sequence[Sample],
) -> Measured:
    columns = "key, state, image_file, image_tile_file, explanation_file, explanation_tile_file"
    rows = _ask(env, f"SELECT {columns} FROM stimuli_stimulus")
    store = Path(env["STORAGE_URL"])
    named = {str(name) for row in rows for name in row[2:] if name}
    return Measured(
        plan=plan,
        expected=_expected(plan),
        done=sum(row[1] == "done" for row in rows),
        keys=len({row[0] for row in rows}),
        failed=sum(row[1] == "failed" for row in rows),
        lost_files=sum(not _is_whole(store / name) for name in named),
        kills=kills,
        wall_s=wall_s,
        prepared_s=prepared_s,
        samples=samples,
    )


def _is_whole(path: Path) -> bool:
    """Whether a picture was written to its end."""
    return path.is_file() and path.read_bytes().endswith(b"IEND\xaeB`\x82")
