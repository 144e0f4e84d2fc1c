"""kill -9 in the middle of rendering: the next process finishes, no file is double, missing or partial."""

import io
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import psycopg2
import pytest
from PIL import Image

from experiments.drafting.store_cleanup import INSTALLATIONS
from tests import services, world
from tests.run.guard import Service

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases("claims")]
Worker = Callable[[], AbstractContextManager[Service]]

SLOW = 'explainer = { name = "occlusion", patch_share = 0.2, stride_share = 0.05 }'
WITHIN_S = 120.0


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study whose rendering takes some seconds: the model runs on hundreds of windows of each picture."""
    path = world.write_study(tmp_path / "small", slots=1)
    text = path.read_text().replace('explainer = { name = "saliency" }', SLOW)
    path.write_text(text.replace("input_px = 32", "input_px = 64"))
    return path


def rows(database_url: str) -> list[tuple[str, ...]]:
    """(state, files, claimed by) of every stimulus, from outside."""
    columns = "image_file, image_tile_file, explanation_file, explanation_tile_file, picture_digest"
    question = f"SELECT key, state, claimed_by, {columns} FROM stimuli_stimulus ORDER BY key"
    if database_url.startswith("sqlite"):
        with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"), timeout=30)) as file:
            return file.execute(question).fetchall()
    with closing(psycopg2.connect(database_url)) as server, server.cursor() as cursor:
        cursor.execute(question)
        return cursor.fetchall()  # type: ignore[no-any-return]


def count(env: dict[str, str], state: str) -> int:
    return sum(row[1] == state for row in rows(env["DATABASE_URL"]))


def builder(study: Path, env: dict[str, str]) -> AbstractContextManager[Service]:
    return services.project_process("builder", ["manage", "build_stimuli", str(study)], env)


def finish(service: Service) -> None:
    """Waits until the command ends by itself, with success."""
    service.wait_until(lambda: " rendered now (definition " in service.log(), within_s=WITHIN_S)


def files(store: Path) -> dict[str, bytes]:
    """Every file of the store, without the temporary files of a killed writer and without the mark of the
    database that names them."""
    return {
        path.relative_to(store).as_posix(): path.read_bytes()
        for path in sorted(store.rglob("*"))
        if path.is_file() and path.suffix and path.parent.name != INSTALLATIONS
    }


def interrupt(study: Path, env: dict[str, str], worker: Worker) -> None:
    """Kills a worker and its builder while some stimuli are done and some are not."""
    with worker() as first, builder(study, env) as waiting:

        def is_in_the_middle() -> bool:
            assert " rendered now " not in waiting.log(), "rendering was over before it could be interrupted"
            return count(env, "done") > 0 and count(env, "claimed") > 0

        first.wait_until(is_in_the_middle, within_s=WITHIN_S)
        first.kill()
        waiting.kill()
    # A batch may end between the check and the kill; what counts is that work was left.
    assert count(env, "done") > 0 and count(env, "claimed") + count(env, "missing") > 0


@pytest.fixture
def undisturbed(study: Path, store_folder: Path) -> Iterator[dict[str, bytes]]:
    """The files of the same study, rendered in this process without an interruption."""
    world.draft_study(study)
    yield files(store_folder)


def check(env: dict[str, str], undisturbed: dict[str, bytes]) -> None:
    stimuli, stored = rows(env["DATABASE_URL"]), files(Path(env["STORAGE_URL"]))
    assert {row[1] for row in stimuli} == {"done"}
    listed = {name for row in stimuli for name in row[3:7] if name}
    assert listed <= set(stored)
    assert stored.keys() == undisturbed.keys()
    pictures = {name: content for name, content in stored.items() if name.endswith(".png")}
    assert pictures == {name: undisturbed[name] for name in pictures}
    for content in pictures.values():
        assert content.endswith(b"IEND\xaeB`\x82")
        Image.open(io.BytesIO(content)).load()


def test_it_lets_the_next_worker_finish(
    study: Path, undisturbed: dict[str, bytes], project_env: dict[str, str], celery_worker: Worker
) -> None:
    interrupt(study, project_env, celery_worker)
    before = {row[0] for row in rows(project_env["DATABASE_URL"])}
    # The dead worker's stimuli are free for others once its claims are older than this.
    project_env["STIMULUS_LEASE_S"] = "1"
    with celery_worker(), builder(study, project_env) as second:
        finish(second)
    assert {row[0] for row in rows(project_env["DATABASE_URL"])} == before
    check(project_env, undisturbed)


@pytest.mark.long(stays="test_it_lets_the_next_worker_finish")
def test_it_finishes_without_any_worker(
    study: Path, undisturbed: dict[str, bytes], project_env: dict[str, str], celery_worker: Worker
) -> None:
    """A command without a broker takes over the dead one's claims at once, even during the lease."""
    interrupt(study, project_env, celery_worker)
    with builder(study, {**project_env, "CELERY_BROKER_URL": ""}) as second:
        finish(second)
    check(project_env, undisturbed)
