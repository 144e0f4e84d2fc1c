"""Claims, builds and sweeps: nothing is lost or half done; a second process that finishes changes nothing."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from celery import current_app
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from stimuli import build, tasks, worker_claims
from stimuli.errors import NotRendered, StimulusError
from stimuli.metrics import measurement_rows
from stimuli.metrics.base import MetricValue
from stimuli.models import Measurement, Stimulus
from stimuli.pipeline import RenderedStimulus
from stimuli.planner.asks import Steps
from stimuli.render import png
from stimuli.spec import Component, StimulusSpec
from stimuli.store.files import view_file
from stimuli.store.media_access import current_store, read_media
from tests.stimuli.material import SALIENCY, render, specs_for, toy_source

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases("claims, constraints")]
State = Stimulus.State


@pytest.fixture
def specs(tmp_path: Path, store_folder: Path) -> list[StimulusSpec]:
    """Six items under two conditions; views and predictor are in the store."""
    source, items = toy_source(tmp_path, current_store())
    return specs_for(source, items, None, SALIENCY)


@pytest.fixture
def keys(specs: list[StimulusSpec]) -> list[str]:
    """All of them recorded, none of them rendered."""
    return list(build.ensure_stimuli(specs))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> list[list[str]]:
    """The messages that a broker would have got."""
    settings.CELERY_BROKER_URL = "redis://nowhere"
    messages: list[list[str]] = []

    def note(name: str, args: list[list[str]], queue: str) -> None:
        assert (name, queue) == (tasks.render_stimuli.name, "stimuli.cpu")
        messages.append(args[0])

    monkeypatch.setattr(current_app, "send_task", note)
    return messages


def states(keys: list[str]) -> set[str]:
    return set(Stimulus.objects.filter(key__in=keys).values_list("state", flat=True))


def test_it_records_each_stimulus_once(specs: list[StimulusSpec]) -> None:
    first = build.ensure_stimuli(specs[:4])
    second = build.ensure_stimuli([*specs, *specs])
    assert len(first) == 4 and len(second) == len(specs) == Stimulus.objects.count()
    assert first.items() <= second.items()
    assert set(second) == {spec.picture_key for spec in specs}


def test_it_brings_specs_back_unchanged(specs: list[StimulusSpec], keys: list[str]) -> None:
    assert worker_claims.claim(keys, "me", 900) == specs


def test_it_builds_what_is_missing_and_then_nothing(keys: list[str]) -> None:
    assert build.missing(keys) == keys
    assert build.build(keys) == len(keys)
    before = list(Stimulus.objects.order_by("pk").values())
    assert build.build(keys) == 0 and build.missing(keys) == []
    assert list(Stimulus.objects.order_by("pk").values()) == before


def test_it_records_files_that_can_be_served(keys: list[str]) -> None:
    build.build(keys)
    for row in Stimulus.objects.all():
        files = [row.image_file, row.image_tile_file]
        if row.explainer:
            files += [row.explanation_file, row.explanation_tile_file]
        for file in files:
            content, kind = read_media(file)
            assert kind == "image/png" and png.decode(content).size
        assert bool(row.explanation_file) == (row.explainer == "saliency")
        assert (row.width_px, row.tile_width_px) == (32, 224)
        assert row.provenance["torch"] and row.finished_at


def test_it_names_a_file_that_was_never_stored(store_folder: Path) -> None:
    with pytest.raises(NotRendered, match="pictures/aa"):
        read_media("pictures/aa.png")


def test_it_shows_progress_to_the_end(keys: list[str]) -> None:
    seen: list[tuple[str, int, int]] = []
    build.build(keys, lambda *step: seen.append(step))
    assert seen[-1] == ("rendering stimuli", 12, 12)


def test_it_lets_one_claimer_have_a_stimulus(keys: list[str]) -> None:
    assert len(worker_claims.claim(keys, "first", 900)) == 12
    assert worker_claims.claim(keys, "second", 900) == []


def test_it_takes_over_a_claim_whose_lease_is_over(keys: list[str]) -> None:
    worker_claims.claim(keys, "first", 900)
    Stimulus.objects.filter(key__in=keys[:5]).update(claimed_at=timezone.now() - timedelta(seconds=901))
    assert [spec.picture_key for spec in worker_claims.claim(keys, "second", 900)] == keys[:5]


def test_it_goes_on_at_once_with_a_message_delivered_again(keys: list[str]) -> None:
    worker_claims.claim(keys, "message", 900)
    assert worker_claims.render_claimed(keys, "message") == 12
    assert states(keys) == {State.DONE}


def test_it_ignores_a_second_finisher(specs: list[StimulusSpec], keys: list[str]) -> None:
    [made] = render(worker_claims.claim(keys[-1:], "first", 900), current_store())
    Stimulus.objects.update(claimed_at=timezone.now() - timedelta(hours=1))
    worker_claims.claim(keys[-1:], "second", 900)
    assert worker_claims.finish(made)
    assert not worker_claims.finish(replace(made, drawn=replace(made.drawn, picture_digest="f" * 64)))
    assert not worker_claims.fail(keys[-1], "second", "too late")
    row = Stimulus.objects.get(key=keys[-1])
    assert (row.state, row.picture_digest, row.error) == (State.DONE, made.drawn.picture_digest, "")


def test_it_lets_only_the_holder_report_failure(keys: list[str]) -> None:
    worker_claims.claim(keys, "first", 900)
    assert not worker_claims.fail(keys[0], "second", "not mine")
    assert worker_claims.fail(keys[0], "first", "mine")


def test_it_keeps_the_reason_of_a_failure_and_tries_again(
    specs: list[StimulusSpec], keys: list[str], store_folder: Path
) -> None:
    view = store_folder / view_file(specs[0].image_key)
    content = view.read_bytes()
    view.write_bytes(b"spoiled")
    with pytest.raises(StimulusError, match="2 of 12 stimuli could not be rendered.*cannot be read"):
        build.build(keys)
    assert Stimulus.objects.filter(state=State.DONE).count() == 10
    assert "cannot be read" in Stimulus.objects.get(key=keys[0]).error
    view.write_bytes(content)
    assert build.build(keys) == 2
    assert states(keys) == {State.DONE}
    assert not Stimulus.objects.exclude(error="").exists()


def test_it_gives_claims_back_when_interrupted(keys: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(worker_claims, "attempt", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build.build(keys)
    assert states(keys) == {State.MISSING}


def test_it_gives_claims_back_with_the_reason_when_a_service_fails(
    keys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def burst(*_: object) -> None:
        raise ConnectionError("the store does not answer")

    monkeypatch.setattr(worker_claims, "attempt", burst)
    with pytest.raises(ConnectionError):
        tasks.render_stimuli(keys)
    reasons = set(Stimulus.objects.values_list("state", "error"))
    assert reasons == {(State.MISSING, "ConnectionError: the store does not answer")}
    monkeypatch.undo()
    assert build.build(keys) == 12
    assert not Stimulus.objects.exclude(error="").exists()


def test_it_does_not_wait_for_a_builder_that_was_killed(keys: list[str]) -> None:
    worker_claims.claim(keys[:4], "killed", 900)
    build.build(keys)
    assert states(keys) == {State.DONE}


def test_it_sends_full_batches_and_watches(
    keys: list[str], sent: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def worker(_: float) -> None:
        tasks.render_stimuli(sent[0])

    monkeypatch.setattr(time, "sleep", worker)
    assert build.build(keys) == 12
    assert [len(message) for message in sent] == [12] and set(sent[0]) == set(keys)
    assert states(keys) == {State.DONE}


def test_it_works_itself_when_no_worker_does(
    keys: list[str], sent: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "HELP_AFTER_S", 0.0)
    assert build.build(keys) == 12
    assert states(keys) == {State.DONE}


@pytest.mark.parametrize("is_backwards", [False, True])
def test_it_asks_the_database_as_much_for_many_keys_as_for_few(
    is_backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def queries_between_polls(count: int) -> int:
        Stimulus.objects.all().delete()
        names = [f"{at:064x}" for at in range(count)]
        Stimulus.objects.bulk_create(Stimulus(key=name, spec={}) for name in names)
        left = list(reversed(names)) if is_backwards else list(names)
        polls: list[tuple[int, int]] = []

        def worker(_: float) -> None:
            Stimulus.objects.filter(key__in=left[:150]).update(state=State.FAILED, error="a test")
            del left[:150]

        def note(_: str, done: int, total: int) -> None:
            assert total == count
            polls.append((done, len(asked)))

        monkeypatch.setattr(time, "sleep", worker)
        with CaptureQueriesContext(connection) as asked:
            build._watch(names, note)
        assert not left and build._pending(names) == []
        done = [at for at, _ in polls]
        assert done == sorted(done) and done[-1] == count
        return max(later - before for (_, before), (_, later) in itertools.pairwise(polls[:3]))

    assert queries_between_polls(300) == queries_between_polls(3000) > 0


def test_it_keeps_the_methods_of_an_item_together(keys: list[str], sent: list[list[str]]) -> None:
    build.send(build._by_item(keys))
    image_keys = [Stimulus.objects.get(key=key).image_key for key in sent[0]]
    assert image_keys == sorted(image_keys) and len(set(image_keys)) == 6


def test_it_refreshes_its_claims_while_it_works(keys: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    worker_claims.claim(keys, "slow", 900)
    worker_claims.claim(keys, "other", 900)
    almost_over = timezone.now() - timedelta(seconds=890)
    Stimulus.objects.update(claimed_at=almost_over)
    now = time.monotonic()
    alive = worker_claims.keeper("slow", 900)
    alive()
    assert Stimulus.objects.filter(claimed_at=almost_over).count() == 12
    monkeypatch.setattr(time, "monotonic", lambda: now + 301)
    alive()
    assert not Stimulus.objects.filter(claimed_at=almost_over).exists()


def test_it_sweeps_what_is_free_and_not_sent_lately(keys: list[str], sent: list[list[str]]) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    worker_claims.claim(keys[:3], "alive", 900)
    worker_claims.claim(keys[3:5], "dead", 900)
    Stimulus.objects.filter(claimed_by="dead").update(claimed_at=long_ago)
    Stimulus.objects.filter(key=keys[5]).update(sent_at=timezone.now())
    Stimulus.objects.filter(key=keys[6]).update(sent_at=long_ago)
    Stimulus.objects.filter(key=keys[7]).update(state=State.FAILED, error="cannot be made")
    expected = keys[3:5] + keys[6:7] + keys[8:]
    assert tasks.sweep_stimuli() == len(expected)
    assert [key for message in sent for key in message] == expected
    assert tasks.sweep_stimuli() == 0


def test_it_does_not_sweep_without_a_broker(keys: list[str]) -> None:
    assert tasks.sweep_stimuli() == 0
    assert states(keys) == {State.MISSING}


def test_it_names_pictures_that_are_the_same(specs: list[StimulusSpec], keys: list[str]) -> None:
    alike = [
        replace(specs[6], explainer=Component("integrated_gradients", {"steps": steps, "baseline": 0.0}))
        for steps in (2, 3)
    ]
    twins = list(build.ensure_stimuli(alike))
    build.build([*keys, *twins])
    assert build.identical_pictures([*keys, *twins]) == [tuple(twins)]
    assert build.identical_pictures([*keys, twins[0]]) == []


def test_it_handles_more_keys_than_a_query_takes(specs: list[StimulusSpec], keys: list[str]) -> None:
    many = [replace(specs[0], seed=seed) for seed in range(2, 1202)]
    ensured = build.ensure_stimuli(many)
    assert len(ensured) == 1200 == len(build.missing(ensured))


@pytest.mark.parametrize("change", [{"state": "lost"}, {"state": "done"}, {"state": "claimed"}])
def test_it_refuses_rows_that_cannot_be(keys: list[str], change: dict[str, str]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Stimulus.objects.filter(key=keys[0]).update(**change)


def test_it_imports_no_torch_for_those_who_serve() -> None:
    modules = "stimuli.models, stimuli.store.media_access, stimuli.build, stimuli.tasks, stimuli.admin"
    code = f"import django, sys; django.setup(); import {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_it_keeps_what_was_made(specs: list[StimulusSpec], keys: list[str]) -> None:
    build.build(keys)
    made = {rendered.spec.picture_key: rendered for rendered in render(specs, current_store())}
    for row in Stimulus.objects.all():
        rendered: RenderedStimulus = made[row.key]
        assert row.explanation_file == (rendered.drawn.explanation_file or "")
        assert row.picture_digest == rendered.drawn.picture_digest


SPARSITY = Component("sparsity")
DELETION = Component("deletion", {"steps": 4})


def numbers() -> dict[tuple[str, str], float | None]:
    """(picture key, metric) -> value."""
    rows = Measurement.objects.values_list("stimulus__key", "metric", "value")
    return {(key, metric): value for key, metric, value in rows}


def test_it_measures_what_is_wanted_while_it_renders(keys: list[str]) -> None:
    assert measurement_rows.ensure_measurements(keys, [SPARSITY, DELETION]) == 12  # the baseline has none
    assert build.build(keys) == 12
    by_key = numbers()
    assert len(by_key) == 12 and {key for key, _ in by_key} == set(keys[6:])
    for (_, metric), value in by_key.items():
        # A quarter of the picture holds everything in equal parts: the Gini index is 1 - 1/4.
        assert value is not None and (metric == "deletion" or value == pytest.approx(0.75, abs=1e-3))
    row = Measurement.objects.filter(metric="deletion").first()
    assert row is not None and row.parameters["steps"] == 4 and row.unit and row.better == "lower"
    assert row.measured_at is not None and len(row.details["curve"]) == 5


def test_it_measures_what_was_rendered_before(keys: list[str]) -> None:
    build.build(keys)
    measurement_rows.ensure_measurements(keys, [SPARSITY])
    assert measurement_rows.unmeasured_keys(keys) == keys[6:]
    before = list(Stimulus.objects.order_by("pk").values_list("finished_at", flat=True))
    assert build.build(keys) == 0
    assert measurement_rows.unmeasured_keys(keys) == []
    assert list(Stimulus.objects.order_by("pk").values_list("finished_at", flat=True)) == before


def test_it_measures_nothing_twice(keys: list[str]) -> None:
    measurement_rows.ensure_measurements(keys, [SPARSITY])
    build.build(keys)
    first = list(Measurement.objects.order_by("pk").values())
    assert measurement_rows.ensure_measurements(keys, [SPARSITY, Component("sparsity", {})]) == 0
    build.build(keys)
    assert list(Measurement.objects.order_by("pk").values()) == first
    assert measurement_rows.ensure_measurements(keys, [Component("deletion", {"steps": 5})]) == 6


def test_it_records_why_there_is_no_number(keys: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise StimulusError("the map says nothing")
        yield

    monkeypatch.setattr("stimuli.metrics.complexity.Sparsity.measure", refuse)
    measurement_rows.ensure_measurements(keys, [SPARSITY])
    build.build(keys)
    results = Measurement.objects.filter(measured_at__isnull=False).values_list("value", "error")
    assert list(results) == [(None, "the map says nothing")] * 6
    assert states(keys) == {State.DONE}


def test_it_compares_the_stimuli_of_a_study(specs: list[StimulusSpec], keys: list[str]) -> None:
    doubled = [replace(spec, explainer=Component("gradient_x_input")) for spec in specs[6:]]
    others = list(build.ensure_stimuli(doubled))
    all_keys = [*keys, *others]
    metric = Component("method_similarity")
    measurement_rows.ensure_measurements(all_keys, [metric])
    build.build(all_keys)
    members = [
        measurement_rows.SetMember(key, spec.image_key, name, "left")
        for name, group in (("a", specs[6:]), ("b", doubled))
        for key, spec in ((spec.picture_key, spec) for spec in group)
    ]
    assert measurement_rows.measure_set(metric, members) == 12
    assert measurement_rows.measure_set(metric, members) == 0
    # Constant in one quadrant against brightness in it: ranks agree, but for ties, far more than by chance.
    assert all(value is not None and 0.5 < value <= 1 for value in numbers().values())


def test_it_sweeps_what_is_not_measured(keys: list[str], sent: list[list[str]], settings: Settings) -> None:
    settings.CELERY_BROKER_URL = ""
    build.build(keys)
    measurement_rows.ensure_measurements(keys, [SPARSITY])
    settings.CELERY_BROKER_URL = "redis://nowhere"
    assert tasks.sweep_stimuli() == 6
    assert [key for message in sent for key in message] == keys[6:]
    tasks.render_stimuli(sent[0])
    assert measurement_rows.unmeasured_keys(keys) == []


def test_it_records_curves_with_holes(keys: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that JSON does not have must not stop the study."""

    def holes(*_: object) -> Steps:
        return MetricValue(0.5, {"curve": [0.1, float("nan"), (float("inf"), 1.0)]})
        yield

    monkeypatch.setattr("stimuli.metrics.complexity.Sparsity.measure", holes)
    measurement_rows.ensure_measurements(keys, [SPARSITY])
    assert build.build(keys) == 12
    row = Measurement.objects.first()
    assert row is not None and row.details["curve"] == [0.1, None, [None, 1.0]] and row.value == 0.5


def test_it_settles_what_another_version_asked_for(keys: list[str], sent: list[list[str]]) -> None:
    """No code can fill such a row: building must still end, and today's metric can be asked for."""
    measurement_rows.ensure_measurements(keys, [SPARSITY])
    Measurement.objects.update(key="0" * 64)
    tasks.render_stimuli(keys)
    assert measurement_rows.unmeasured_keys(keys) == []
    assert "another version" in Measurement.objects.first().error  # type: ignore[union-attr]
    assert measurement_rows.ensure_measurements(keys, [SPARSITY]) == 6
    tasks.render_stimuli(keys)
    assert Measurement.objects.filter(value__isnull=False).count() == 6


def test_it_tries_again_what_could_not_be_measured(keys: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise StimulusError("not today")
        yield

    measurement_rows.ensure_measurements(keys, [SPARSITY])
    with monkeypatch.context() as patch:
        patch.setattr("stimuli.metrics.complexity.Sparsity.measure", refuse)
        build.build(keys)
        assert set(Measurement.objects.values_list("error", flat=True)) == {"not today"}
    build.build(keys)
    assert set(Measurement.objects.values_list("error", flat=True)) == {""}
    assert not Measurement.objects.filter(value=None).exists()


def test_it_says_which_package_a_number_needs(keys: list[str]) -> None:
    """Asked for from a package that is not here: the reason in its row, and the picture is made."""
    measurement_rows.ensure_measurements(keys, [SPARSITY])
    Measurement.objects.update(package="toy-gone==1")
    build.build(keys)
    assert set(Measurement.objects.values_list("value", "error")) == {
        (
            None,
            "metric 'sparsity' was made with toy-gone==1, and no toy-gone is installed here: install "
            "toy-gone==1 here",
        )
    }
    assert states(keys) == {State.DONE}
