"""Simulated people: drawn from a seed, slow as people are, attentive, careless or gone."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.design.rng import Streams
from experiments.kinds.base import Choice
from experiments.simulation import KINDS_SAID, OBSERVERS, PEOPLE, person_class
from experiments.simulation.people import ExampleView, TestView
from experiments.simulation.population import (
    DEFAULT_MIX,
    drawn_traits,
    parse_mix,
    populate,
)
from experiments.simulation.reading import asked_choice, choice_for
from experiments.simulation.timing import DECIDE, ExGaussian
from stimuli.errors import UnknownName

pytestmark = pytest.mark.pure

SIDES = (Choice("husky", "Husky", "f"), Choice("wolf", "Wolf", "j"))
KEYS = tuple(Choice(key, key.upper(), key) for key in "dfjk")


def check_at(position: int, key: str) -> TestView:
    return TestView(
        position, KEYS, prompt=f"This is not a picture question. Please press the key {key.upper()}."
    )


def kept_checks(kind: str, people: int = 60) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Per person, the share of eight instructed checks that were followed."""
    shares = []
    for number in range(people):
        person = person_class(kind).drawn(11, number)
        said = [person.answer(check_at(p, KEYS[p % 4].key)).value["choice"] for p in range(8)]
        shares.append(np.mean([value == KEYS[p % 4].value for p, value in enumerate(said)]))
    return np.array(shares, dtype=np.float64)


@pytest.mark.parametrize("kind", PEOPLE)
def test_it_draws_the_same_person_twice_and_another_for_another_seed(kind: str) -> None:
    person, same = person_class(kind).drawn(3, 5), person_class(kind).drawn(3, 5)
    assert person == same
    assert person.traits != person_class(kind).drawn(4, 5).traits
    assert person.traits != person_class(kind).drawn(3, 6).traits


@pytest.mark.parametrize("kind", PEOPLE)
def test_it_answers_the_same_in_any_order(kind: str) -> None:
    person = person_class(kind).drawn(3, 5)
    views = [TestView(position, SIDES) for position in range(10)]
    forwards = [person.answer(view) for view in views]
    assert forwards == [person.answer(view) for view in reversed(views)][::-1]
    assert {str(reply.value["choice"]) for reply in forwards} <= {"husky", "wolf"}


def test_it_says_of_every_kind_what_it_does() -> None:
    assert set(KINDS_SAID) == set(PEOPLE.names)


def test_it_refuses_an_unknown_kind_by_name() -> None:
    with pytest.raises(UnknownName, match="no kind of simulated person 'oracle'.*learner"):
        person_class("oracle")


def test_it_draws_ex_gaussian_times_with_the_declared_moments() -> None:
    timing = ExGaussian(mu_ms=2000, sigma_ms=300, tau_ms=1000)
    rng = np.random.default_rng(0)
    times = np.array([timing.draw_ms(rng) for _ in range(20_000)])
    assert timing.mean_ms == 3000
    assert times.mean() == pytest.approx(3000, rel=0.01)
    assert times.std() == pytest.approx((300**2 + 1000**2) ** 0.5, rel=0.03)
    # The third central moment of a sum is that of the exponential alone: 2 tau^3.
    assert ((times - times.mean()) ** 3).mean() == pytest.approx(2 * 1000**3, rel=0.15)


def test_it_stretches_and_floors_times() -> None:
    slow = ExGaussian(100, 0, 0, floor_ms=150)
    assert slow.draw_ms(np.random.default_rng(0)) == 150
    assert slow.draw_ms(np.random.default_rng(0), slowness=3) == 300


def test_it_takes_a_plausible_time_as_a_learner() -> None:
    person = person_class("learner").drawn(0, 0)
    tests = [person.answer(TestView(p, SIDES)).rt_ms for p in range(300)]
    examples = [person.study_example(ExampleView(p, "Wolf", SIDES)).rt_ms for p in range(300)]
    # Rarely a lapse, which is quicker; so a little below the declared mean.
    assert 0.8 < np.mean(tests) / (DECIDE.mean_ms * person.traits.slowness) < 1.1
    minutes = (15 * np.mean(examples) + 26 * np.mean(tests)) / 60_000
    assert 1.5 < minutes < 10


def test_it_passes_instructed_checks_when_attentive_and_fails_them_when_careless() -> None:
    assert all(kept_checks(kind).mean() > 0.95 for kind in ("learner", *OBSERVERS))
    assert 0.6 < kept_checks("guesser").mean() < 0.95
    # A person who does not read still presses the right key of four by chance.
    assert kept_checks("careless").mean() < 0.5


def test_it_answers_wildly_fast_or_late_when_careless() -> None:
    times = [
        person_class("careless").drawn(1, n).answer(TestView(p, SIDES)).rt_ms
        for n in range(20)
        for p in range(20)
    ]
    assert np.median(times) < 300
    assert np.mean(np.array(times) > 15_000) == pytest.approx(0.3, abs=0.08)


def test_it_guesses_at_chance_as_a_guesser() -> None:
    said = [
        person_class("guesser").drawn(1, n).answer(TestView(p, SIDES)).value["choice"]
        for n in range(20)
        for p in range(50)
    ]
    assert np.mean([value == "wolf" for value in said]) == pytest.approx(0.5, abs=0.05)


def test_it_leaves_in_the_middle_and_only_as_a_leaver() -> None:
    gone = [person_class("leaver").drawn(2, n).leaves_after(41) for n in range(40)]
    assert all(after is not None and 1 <= after <= 40 for after in gone)
    assert len(set(gone)) > 10
    assert person_class("leaver").drawn(2, 0).leaves_after(1) == 1
    assert all(person_class(k).drawn(2, 0).leaves_after(41) is None for k in PEOPLE if k != "leaver")


def test_it_is_a_learner_or_a_guesser_until_it_leaves() -> None:
    leavers = [person_class("leaver").drawn(2, n) for n in range(40)]
    assert 5 < sum(leaver.looks for leaver in leavers) < 35
    learner = person_class("learner").drawn(2, 0)
    assert all(leaver.traits.noise != learner.traits.noise for leaver in leavers)


@pytest.mark.parametrize(
    ("prompt", "key"),
    [
        ("This is not a picture question. Please press the key F.", "f"),
        ("Dies ist keine Bildfrage. Bitte drücken Sie die Taste K.", "k"),
        ('Attention: press "j" now, not the others.', "j"),
        ("To show that you are reading, choose D", "d"),
        ("This is a question about a picture.", None),
        ("Press F or press J.", None),
        ("", None),
    ],
)
def test_it_reads_which_key_is_asked_for(prompt: str, key: str | None) -> None:
    choice = asked_choice(prompt, KEYS)
    assert (choice.key if choice else None) == key


def test_it_reads_the_text_of_a_button_too() -> None:
    buttons = (Choice("1", "Often", "a"), Choice("2", "Never", "b"))
    assert asked_choice("Please choose Never here.", buttons) == buttons[1]
    assert choice_for("Often", buttons) == buttons[0]
    assert choice_for("2", buttons) == buttons[1]
    assert choice_for("3", buttons) is None


def test_it_parses_a_mix_and_keeps_it_exactly() -> None:
    mix = parse_mix(DEFAULT_MIX)
    assert str(mix) == DEFAULT_MIX
    observers = {"exemplar": 65, "prototype": 65, "one_reason": 62}
    assert mix.counts(240) == {**observers, "guesser": 19, "careless": 17, "leaver": 12}
    for total in range(1, 60):
        assert sum(mix.counts(total).values()) == total


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learner=0.5,guesser=0.4", "add up to 0.9"),
        ("learner=1,learner=0", "twice"),
        ("learner", "name=share"),
        ("learner=lots", "'lots'"),
        ("learner=1.5,guesser=-0.5", "between 0 and 1"),
        ("learner=nan", "between 0 and 1"),
        ("wizard=1", "no kind of simulated person 'wizard'"),
        ("", "name=share"),
    ],
)
def test_it_names_what_is_wrong_with_a_mix(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_mix(text)


def test_it_populates_by_seed_with_new_people_in_a_later_wave() -> None:
    mix = parse_mix("learner=0.5,guesser=0.5")
    people = populate(mix, 20, seed=7)
    assert people == populate(mix, 20, seed=7)
    assert len({person.name for person in people}) == 20
    assert [p.kind for p in people] != sorted((p.kind for p in people), reverse=True)
    later = populate(mix, 20, seed=7, first=20)
    assert not {p.name for p in people} & {p.name for p in later}
    with pytest.raises(ValueError, match="at least 1"):
        populate(mix, 0, seed=7)


def test_it_prints_what_was_drawn() -> None:
    people = populate(parse_mix("learner=0.75,leaver=0.25"), 40, seed=1)
    rows = drawn_traits(people)
    assert [(row.kind, row.count) for row in rows] == [("learner", 30), ("leaver", 10)]
    mean, low, high = rows[0].traits["noise"]
    noises = [person.traits.noise for person in people if person.kind == "learner"]
    assert (mean, low, high) == pytest.approx((np.mean(noises), min(noises), max(noises)))


def test_it_reads_a_failed_page_again() -> None:
    guessers = [person_class("guesser").drawn(5, n) for n in range(200)]
    first = np.mean([g.pick("q", 0, KEYS, KEYS[2]) == KEYS[2] for g in guessers])
    second = np.mean([g.pick("q", 1, KEYS, KEYS[2]) == KEYS[2] for g in guessers])
    assert first < second


def test_it_knows_no_condition() -> None:
    seen = set(TestView.__dataclass_fields__) | set(ExampleView.__dataclass_fields__)
    assert not seen & {"condition", "method", "arm", "mask", "truth", "expected", "predicted"}


def test_it_draws_from_named_streams_only() -> None:
    before = Streams(3)("traits", "learner", 0).random()
    populate(parse_mix(DEFAULT_MIX), 10, seed=3)
    assert Streams(3)("traits", "learner", 0).random() == before
