"""Many images by many methods, two workers, one of them killed again and again: complete, no row twice."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import psycopg2
import pytest

from tests import services, world
from tests.proofs.scale import Scale
from tests.run.guard import Service

pytestmark = pytest.mark.django_db
Worker = Callable[[], AbstractContextManager[Service]]
WITHIN_S = 900.0
METHODS = {
    "saliency": "",
    "gradient_x_input": "",
    "integrated_gradients": "steps = 30",
    "smooth_grad": "draws = 30",
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
    "rise": "masks = 300",
    "lime_image": "samples = 200",
    "shap_partition": "",
    "spectral_residual": "",
}
CONDITION = """
[[conditions]]
name = "{name}"
role = "method"
explainer = {{ name = "{name}"{comma}{parameters} }}
slots = 2
"""


def write_study(folder: Path, items: int) -> Path:
    """A study of `items` pictures of 64 pixels under a baseline, a control and every method above, on a small
    network that is trained on the spot."""
    path = world.write_study(folder, slots=2)
    head, rest = path.read_text().split("[[conditions]]", 1)
    baseline = '\nname = "baseline"\nrole = "baseline"\nslots = 2\n'
    methods = "".join(
        CONDITION.format(name=name, comma=", " if parameters else "", parameters=parameters)
        for name, parameters in METHODS.items()
    )
    head = head.replace(
        'dataset = { name = "folder", path = "images", people_share = 1.0 }',
        f'balance = "none"\nitems = {items}\n'
        f'dataset = {{ name = "synthetic", scenario = "biased", count = {4 * -(-items // 4)}, '
        "model_count = 160, size_px = 64 }",
    )
    head = head.replace(
        'predictor = { name = "toy", input_px = 32 }',
        'predictor = { name = "trained_cnn", input_px = 64, epochs = 1, width = 6, train_items = 160 }',
    ).replace('classes = ["left", "right"]', 'classes = ["husky", "wolf"]')
    path.write_text(f"{head}[[conditions]]{baseline}{methods}[texts]{rest.split('[texts]', 1)[1]}")
    return path


def rows(database_url: str, question: str) -> list[tuple[object, ...]]:
    """The rows of a query, read by another process's connection."""
    if database_url.startswith("sqlite"):
        with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"), timeout=60)) as file:
            return file.execute(question).fetchall()
    with closing(psycopg2.connect(database_url)) as server, server.cursor() as cursor:
        cursor.execute(question)
        return list(cursor.fetchall())


def done(env: dict[str, str]) -> int:
    return int(
        str(rows(env["DATABASE_URL"], "SELECT count(*) FROM stimuli_stimulus WHERE state='done'")[0][0])
    )


def has_done(env: dict[str, str], least: int) -> bool:
    return done(env) >= least


def resident_mb(pid: int) -> float:
    """Memory of a process and its children, MB."""
    total = 0.0
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        total += sum(resident_mb(int(child)) for child in task.read_text().split())
    status = Path(f"/proc/{pid}/status").read_text()
    return total + next(int(line.split()[1]) / 1024 for line in status.splitlines() if line[:6] == "VmRSS:")


def thresholds(total: int, kills: int, seed: int) -> Iterator[int]:
    """How many stimuli are done when each worker is killed: drawn from the first nine tenths, in order."""
    draws = random.Random(20 + seed)
    yield from sorted(draws.sample(range(1, max(kills + 1, 9 * total // 10)), kills))


@pytest.mark.full
def test_it_completes_with_a_worker_killed_at_random(
    tmp_path: Path, project_env: dict[str, str], celery_worker: Worker, scale: Scale
) -> None:
    items, kills = 50, 10
    study = write_study(tmp_path / "many", items)
    total = items * (len(METHODS) + 1)
    project_env["STIMULUS_LEASE_S"] = "5"
    killed = 0
    memory: list[float] = []
    with ExitStack() as stack:
        steady = stack.enter_context(celery_worker())
        builder = stack.enter_context(
            services.project_process("builder", ["manage", "build_stimuli", str(study)], project_env)
        )
        for threshold in thresholds(total, kills, scale.seed):
            with celery_worker() as victim:
                victim.wait_until(partial(has_done, project_env, threshold), within_s=WITHIN_S)
                memory.append(resident_mb(steady.pid))
                victim.kill()
                killed += 1
        builder.wait_until(lambda: " rendered now (definition " in builder.log(), within_s=WITHIN_S)
        memory.append(resident_mb(steady.pid))
    assert killed == kills
    check_complete(project_env, total, items)
    check_that_it_would_notice(project_env, total, items)
    assert memory[-1] < 1.25 * memory[len(memory) // 3], memory


def check_complete(env: dict[str, str], total: int, items: int) -> None:
    """Every stimulus once, done, with its files; one file per map; no partial file in the store."""
    columns = "key, state, attribution_key, explanation_file, image_key"
    stimuli = rows(env["DATABASE_URL"], f"SELECT {columns} FROM stimuli_stimulus")
    assert len(stimuli) == len({row[0] for row in stimuli}) == total
    assert {row[1] for row in stimuli} == {"done"}
    per_image = Counter(row[4] for row in stimuli)
    assert len(per_image) == items and set(per_image.values()) == {len(METHODS) + 1}
    store = Path(env["STORAGE_URL"])
    maps = [path for path in (store / "maps").rglob("*") if path.is_file() and path.suffix == ".npz"]
    assert sorted(path.stem for path in maps) == sorted({str(row[2]) for row in stimuli if row[3]})
    assert all(is_whole(path) for path in maps)
    assert all((store / str(row[3])).stat().st_size for row in stimuli if row[3])


def is_whole(path: Path) -> bool:
    """Whether every array of a stored map can be read to its end."""
    try:
        with np.load(path) as arrays:
            return all(arrays[name].size for name in arrays.files) and bool(arrays.files)
    except (EOFError, ValueError, BadZipFile):
        return False


def check_that_it_would_notice(env: dict[str, str], total: int, items: int) -> None:
    """A worker that writes in place may leave half a file; a map may be lost, or be rendered twice."""
    maps = sorted(Path(env["STORAGE_URL"], "maps").rglob("*.npz"))
    whole = maps[0].read_bytes()
    for spoil in (
        lambda: maps[0].write_bytes(whole[: len(whole) // 2]),
        lambda: maps[0].unlink(),
        lambda: maps[0].with_stem(f"{maps[0].stem}-2").write_bytes(whole),
    ):
        spoil()
        with pytest.raises(AssertionError):
            check_complete(env, total, items)
        maps[0].with_stem(f"{maps[0].stem}-2").unlink(missing_ok=True)
        maps[0].write_bytes(whole)
    check_complete(env, total, items)
