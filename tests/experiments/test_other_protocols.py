"""The engine under ratings and blind review: lanes, stages, solutions, one trial at a time, over the API."""

from collections import Counter
from pathlib import Path

import pytest

from analysis.seal import seal_of
from analysis.tables.response_reader import read_frames, study_facts
from crowd.money.policy_endings import matches_of
from experiments.errors import InvalidStudy, StudyError
from experiments.models import HandOut, Prediction, Response, Session, Slot, Study, Trial
from experiments.opening.opening import plan_pilot
from experiments.sessions.lifecycle import start_session
from experiments.sessions.previews import skip_to
from experiments.stages.solution_freeze import freeze
from experiments.study_files.load import load_study
from stimuli.store.files import read_view
from stimuli.store.media_access import current_store
from tests.experiments.protocols import (
    RATING,
    REVIEW,
    SENTENCES,
    SOLVE,
    TURING,
    TWO_MODELS,
    USES,
    opened,
    solved,
    staged,
    take_part,
    write,
)
from tests.world import Person, draft_study, silent

pytestmark = pytest.mark.django_db
ITEMS, METHODS, RATERS = 8, 2, 2


@pytest.fixture
def rating(tmp_path: Path) -> Study:
    return opened(tmp_path / "r", "ratings", "rating", RATING, sources=TWO_MODELS, sittings=4)


@pytest.fixture
def tasks(tmp_path: Path) -> Study:
    """The solve stage, answered and closed."""
    return solved(tmp_path / "s")


def rater(name: str, sitting: int = 1) -> Person:
    return Person(name, slug="ratings", submission=f"{name}-{sitting}")


def test_every_explanation_is_rated_by_so_many_people(rating: Study) -> None:
    """Two rounds of disjoint lists, and each person stays in one round: k distinct raters per explanation."""
    lists = Slot.objects.filter(study=rating)
    assert Counter(lists.values_list("lane", flat=True)) == {"round-0": 2, "round-1": 2}
    for person, sitting in (("ann", 1), ("ben", 1), ("ann", 2), ("ben", 2)):
        take_part(rater(person, sitting))
    sessions = Session.objects.filter(study=rating)
    lanes = dict.fromkeys(sessions.values_list("participant_id", "lane"))
    assert len(lanes) == 2, "nobody left the round of the first sitting"
    rated = Counter(
        Response.objects.filter(trial__kind="rate").values_list("trial__item__key", "trial__condition__name")
    )
    assert len(rated) == ITEMS * METHODS and set(rated.values()) == {RATERS}
    by_person = Counter(
        Response.objects.filter(trial__kind="rate").values_list(
            "session__participant_id", "trial__item__key", "trial__condition__name"
        )
    )
    assert set(by_person.values()) == {1}
    assert Slot.objects.filter(study=rating, kept=True).count() == 4


def test_a_half_answered_rating_is_refused_by_the_name_of_the_question(rating: Study) -> None:
    ann = rater("ann")
    ann.arrive()
    trial = next(t for t in ann.trials() if t.kind == "rate")
    asked = trial.extra["questions"]
    half = {"trial": str(trial.pk), "value": {asked[0]: 3}, "rt_ms": 1, "shown_ms": 1}
    reply = ann.respond(half)
    assert reply.status_code == 400
    assert set(reply.json()["error"]["fields"]) == {f"responses.0.value.{asked[1]}"}
    assert not Response.objects.exists()
    assert ann.respond({**half, "value": dict.fromkeys(asked, 3)}).status_code == 200


def test_it_shows_each_explanation_as_its_own_model_sees_the_item(rating: Study) -> None:
    """A condition is a method on a model: its stimulus and its prediction are that model's."""
    assert Prediction.objects.filter(item__study=rating).count() == ITEMS
    fine = {p.item_id: p.predicted for p in Prediction.objects.filter(predictor="fine")}
    for trial in Trial.objects.filter(slot__study=rating, kind="rate").select_related(
        "stimulus", "condition"
    ):
        assert trial.stimulus is not None and trial.condition is not None
        size = {"saliency-coarse": 16, "saliency-fine": 32}[trial.condition.name]
        assert read_view(current_store(), trial.stimulus.image_key).shape == (size, size, 3)
    frames = read_frames(rating)
    for _, row in frames.stimuli[frames.stimuli["condition"] == "saliency-fine"].iterrows():
        key = rating.items.get(key=row["item"]).pk
        assert row["predicted"] == fine[key]


def test_it_is_unsealed_by_its_last_kept_slot(rating: Study) -> None:
    """All slots count: in this study a slot has no condition."""
    slots = list(Slot.objects.filter(study=rating).order_by("ordinal"))
    for slot in slots:
        assert seal_of(study_facts(rating), "human").sealed
        person = Person(f"p{slot.ordinal}", slug="ratings")
        take_part(person)
    assert not seal_of(study_facts(rating), "human").sealed


def test_it_has_a_pilot_of_three(rating: Study) -> None:
    assert plan_pilot(rating, 3, silent) == 3
    assert Slot.objects.filter(study=rating, pilot=True).count() == 3


def test_it_pays_no_bonus_for_what_cannot_be_right(tmp_path: Path) -> None:
    path = write(tmp_path / "b", "bonus", "rating", RATING, sources=TWO_MODELS)
    reward = "amount_cents = 100\nbonus_per_match_cents = 5\nbonus_max_cents = 50"
    path.write_text(path.read_text().replace("amount_cents = 100", reward))
    with pytest.raises(InvalidStudy, match="nothing is right or wrong in this rating study"):
        load_study(path)


def test_a_region_outside_the_grid_is_refused_by_name(tmp_path: Path) -> None:
    staged(tmp_path / "g", "tasks", SOLVE)
    eve = Person("eve", slug="tasks")
    eve.arrive()
    trial = eve.trials()[0]
    answer = {"trial": str(trial.pk), "rt_ms": 1, "shown_ms": 1}
    for region in ([16], [0, 0], None):
        reply = eve.respond({**answer, "value": {"choice": "left", "region": region}})
        assert reply.status_code == 400, region
        assert set(reply.json()["error"]["fields"]) == {"responses.0.value.region"}
    assert eve.respond({**answer, "value": {"choice": "left", "region": [15]}}).status_code == 200


def test_a_guess_is_stored_before_its_answer_is_revealed(tmp_path: Path) -> None:
    """Texts, guess first: no payload holds the label, the reply tells it in words, a reload repeats it."""
    opened(tmp_path / "t", "letters", "reverse_turing", TURING, sources=SENTENCES)
    tim = Person("tim", slug="letters")
    tim.arrive()
    first = tim.state["block"]["trials"][0]
    assert first["kind"] == "learn" and first["content"]["label"] is None
    pieces = first["content"]["text"]["tokens"]
    assert "".join(piece["text"] for piece in pieces).strip() and first["content"]["image"] is None
    trial = tim.trials()[0]
    assert trial.item is not None
    answer = {"trial": first["id"], "value": {"choice": "singular"}, "rt_ms": 9, "shown_ms": 9}
    told = tim.respond(answer).json()["feedback"][first["id"]]
    assert told["label"] == trial.item.predicted.capitalize()
    assert told["correct"] == (trial.item.predicted == "singular")
    assert told["choice"] == "singular"
    assert tim.respond(answer).json()["feedback"] == {first["id"]: told}, "asked twice, told the same"
    assert tim.refresh()["feedback"] == told
    take_part(tim)
    frame = read_frames(Study.objects.get(slug="letters")).trials
    guesses, tests = (frame[frame["phase"] == phase] for phase in ("train", "test"))
    assert guesses["matches_model"].isna().all() and len(guesses) == 3
    assert tests["matches_model"].notna().sum() == 2


def test_a_later_stage_starts_from_frozen_solutions_alone(tasks: Study, tmp_path: Path) -> None:
    path = write(tmp_path / "v", "judged", "blind_review", REVIEW, uses=USES)
    with pytest.raises(StudyError, match="not frozen yet. Run freeze tasks"):
        draft_study(path)
    freeze(tasks)
    study = draft_study(path)
    assert study.solutions_digest == tasks.frozen_digest


def test_a_review_is_handed_out_alone_and_its_hour_is_kept(tasks: Study, tmp_path: Path) -> None:
    """The page does not hold the next task, and a reload does not restart the time."""
    freeze(tasks)
    study = staged(tmp_path / "v", "judged", REVIEW)
    lea = Person("lea", slug="judged")
    lea.arrive()
    first = lea.state["block"]["trials"]
    assert [trial["position"] for trial in first] == [0]
    handed_out = HandOut.objects.get()
    lea.refresh()
    assert HandOut.objects.get().handed_out_at == handed_out.handed_out_at
    take_part(lea)
    rows = HandOut.objects.filter(session__study=study)
    assert rows.count() == Response.objects.filter(session__study=study).count() == 2 * (4 + 2 + 2) + 2
    for row in rows:
        answered = Response.objects.get(session=row.session, trial=row.trial)
        assert row.handed_out_at <= answered.received_at


def test_acceptance_is_exported_as_such_and_earns_nothing(tasks: Study, tmp_path: Path) -> None:
    freeze(tasks)
    study = staged(tmp_path / "v", "judged", REVIEW)
    lea = Person("lea", slug="judged")
    take_part(lea)
    reviews = read_frames(study).trials
    assert list(reviews["accepted"].astype(bool)) == [True] * 18
    assert reviews["matches_model"].isna().all() and reviews["matches_truth"].isna().all()
    assert sum(matches_of([lea.session().pk]).values()) == 0
    answered = read_frames(tasks).trials
    assert answered["matches_truth"].notna().all() and "region_cells" in answered


@pytest.mark.parametrize("protocol", ["rating", "solve", "review", "reverse_turing"])
def test_a_preview_may_begin_at_every_trial(tasks: Study, tmp_path: Path, protocol: str) -> None:
    freeze(tasks)
    if protocol == "rating":
        study = opened(tmp_path / "p", "ratings", "rating", RATING, sources=TWO_MODELS)
    elif protocol == "review":
        study = staged(tmp_path / "p", "judged", REVIEW)
    elif protocol == "reverse_turing":
        study = opened(tmp_path / "p", "letters", "reverse_turing", TURING, sources=SENTENCES)
    else:
        study = tasks
    slot = Slot.objects.filter(study=study).order_by("ordinal").first()
    assert slot is not None
    for position in range(slot.trials.count()):
        participant = study.participants.create()
        session, token = start_session(study, participant, origin="preview")
        Session.objects.filter(pk=session.pk).update(slot=slot, state="running")
        session.refresh_from_db()
        skip_to(session, position)
        looker = Person("x", slug=study.slug, token=token)
        reply = looker.call("GET", "/api/session/")
        assert reply.status_code == 200 and reply.json()["next"] == position
        # A guess that was never given has nothing to reveal.
        assert reply.json()["feedback"] is None
