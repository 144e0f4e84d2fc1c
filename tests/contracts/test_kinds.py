"""What every trial kind promises: it sends no secret, its check is exact, its preview passes the check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from experiments.kinds import KINDS, get_kind
from experiments.kinds.base import Button, InvalidResponse, Media, Reply, Text, Token, TrialView
from experiments.kinds.scoring import agreement, follows, is_as_asked, score
from experiments.simulation.people import Located
from stimuli.errors import UnknownName

pytestmark = pytest.mark.pure

PLAIN = TrialView(3, 0, "test", "", "", "grad_cam", ("husky", "wolf"), "", "wolf", "husky")
TRIALS: dict[str, TrialView] = {
    "learn": replace(PLAIN, kind="learn", phase="train", label="husky"),
    "learn, guess first": replace(PLAIN, kind="learn", phase="train"),
    "predict": replace(PLAIN, kind="predict", right="husky"),
    "predict, repeat": replace(PLAIN, kind="predict", check="repeat", expected="wolf"),
    "instructed": replace(
        PLAIN, kind="instructed", check="instructed", expected="j", choices=("d", "f", "j", "k")
    ),
    "review": replace(PLAIN, kind="review", extra={"solution": "s1", "answer": "7"}, right=None),
    "solve": replace(
        PLAIN, kind="solve", choices=("1", "2", "cannot_say"), right="2", extra={"grid": 28}, truth="2"
    ),
    "decide": replace(PLAIN, kind="decide", right="wolf", extra={"step": "first"}),
    "decide, again": replace(PLAIN, kind="decide", right="wolf", extra={"step": "second"}),
    "decide, advised": replace(PLAIN, kind="decide", right="wolf", extra={"step": "second"}, label="husky"),
    "rate": replace(PLAIN, kind="rate", choices=("1", "2", "3", "4", "5"), extra={"questions": ["q2", "q1"]}),
}
NOTED = {
    "questions": [{"id": "q2", "ms": 900, "changes": 0}, {"id": "q1", "ms": 2100, "changes": 3}],
    "revealed_ms": 1700,
    **{"strokes": 4, "undos": 1, "first_stroke_ms": 800, "marked_with": "pen"},
}
"""All that a page may note beside an answer and a kind has columns for."""
GOOD: dict[str, Sequence[Mapping[str, Any]]] = {
    "learn": [{"seen": True}],
    "learn, guess first": [{"choice": "wolf"}],
    "predict": [{"choice": "wolf"}, {"choice": "husky"}],
    "predict, repeat": [{"choice": "wolf"}],
    "instructed": [{"choice": "d"}],
    "review": [{"accept": True}, {"accept": False}],
    "solve": [
        {"choice": "1", "region": [0]},
        {"choice": "2", "region": [3, 783]},
        {"choice": "cannot_say", "region": None},
        {"choice": "cannot_say"},
    ],
    "decide": [{"choice": "wolf"}, {"choice": "husky"}],
    "decide, again": [{"choice": "wolf"}],
    "decide, advised": [{"choice": "husky"}],
    "rate": [{"q1": 1, "q2": 5}, {"q2": 3, "q1": 3}],
}
ODD: Sequence[Mapping[str, Any]] = [
    *({}, {"choice": None}, {"choice": True}, {"choice": 1}, {"choice": ["husky"]}, {"choice": "other"}),
    *({"choice": "husky", "more": 1}, {"seen": 1}, {"seen": False}, {"seen": "true"}, {"accept": 1}),
    *({"accept": None}, {"accept": True, "choice": "husky"}, {"q1": 3}, {"q1": 3, "q2": 3, "q3": 3}),
    *({"q1": True, "q2": 3}, {"q1": 0, "q2": 3}, {"q1": 6, "q2": 3}, {"q1": 3.0, "q2": 3}, {"q7": 3}),
    *({"choice": "1", "region": [2, 1]}, {"choice": "1", "region": [1, 1]}, {"choice": "1", "region": [-1]}),
    *({"choice": "1", "region": [True]}, {"choice": "1", "region": [784]}, {"choice": "1", "region": [4000]}),
    *({"choice": "1", "region": "1"}, {"choice": "1", "region": []}, {"choice": "1"}),
    {"choice": "cannot_say", "region": [5]},
]
SECRETS = ("grad_cam", "truth", "predicted", "expected", "right", "condition", "solution", "repeat")


class Everything:
    """A scene with everything that a page could show, under neutral names."""

    buttons: tuple[Button, ...]
    label: str | None = None
    reservoir: tuple[str, ...] = ("11", "12")

    def __init__(self, trial: TrialView) -> None:
        self.buttons = tuple(Button(value=v, text=v.upper(), key=v[0]) for v in trial.choices)
        self.label = trial.label

    def image(self, role: str = "") -> Media | None:
        return Media(url=f"/m/a{role}", width_px=64, height_px=48, alt="Picture")

    def explanation(self, role: str = "") -> Media | None:
        return Media(url=f"/m/b{role}", width_px=64, height_px=48, alt="Picture")

    def text(self, role: str = "") -> Text | None:
        return Text(tokens=(Token(text="a ", shade=None), Token(text="word", shade=0.5)))

    def words(self, name: str, /, **values: str) -> str:
        return f"{name} {' '.join(values.values())}".strip()

    def answered(self, position: int) -> Mapping[str, Any] | None:
        return {"choice": "wolf"}


class Someone:
    """An observer that always takes the first choice."""

    def study(self, trial: Mapping[str, Any]) -> Reply:
        shown = trial["content"]["label"] is not None
        choice = trial["content"]["choices"][0]["value"]
        return Reply({"seen": True} if shown else {"choice": choice}, 900, 900)

    def decide(self, trial: Mapping[str, Any]) -> Reply:
        return Reply({"choice": trial["content"]["choices"][0]["value"]}, 900, 900)

    obey = decide

    def rate(self, trial: Mapping[str, Any], question: Mapping[str, Any]) -> int:
        return 1

    def pick(self, trial: Mapping[str, Any], name: str, options: Sequence[Any]) -> Any:
        return options[0]

    def locate(self, trial: Mapping[str, Any], nothing: str) -> Located:
        return Located(trial["content"]["choices"][0]["value"], (0, 3), 900)

    def judge(self, trial: Mapping[str, Any]) -> tuple[bool, int]:
        return True, 900

    def linger_ms(self, trial: Mapping[str, Any], part: str = "") -> int:
        return 1200


@pytest.fixture(params=TRIALS)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_it_tries_every_kind() -> None:
    assert {trial.kind for trial in TRIALS.values()} == set(KINDS.names)


def test_it_accepts_what_its_page_can_send(case: str) -> None:
    for value in GOOD[case]:
        get_kind(TRIALS[case].kind).check(TRIALS[case], value)


@pytest.mark.parametrize("value", ODD, ids=str)
def test_it_refuses_everything_else_with_a_sentence(case: str, value: Mapping[str, Any]) -> None:
    """A wrong value of one kind is wrong for every kind, unless it is a plain answer of that kind."""
    if value in GOOD[case]:
        return
    with pytest.raises(InvalidResponse, match=r"\w+ \w+ \w+"):
        get_kind(TRIALS[case].kind).check(TRIALS[case], value)


def test_it_lists_what_the_database_may_take_without_asking(case: str) -> None:
    trial, kind = TRIALS[case], get_kind(TRIALS[case].kind)
    for value in kind.accepted(trial):
        kind.check(trial, value)
    # A guess is answered with feedback, so no statement may store it unread.
    assert not (kind.accepted(trial) and kind.waits({"label": trial.label}) and trial.kind == "learn")


def test_its_preview_passes_its_own_check(case: str) -> None:
    get_kind(TRIALS[case].kind).check(TRIALS[case], get_kind(TRIALS[case].kind).preview(TRIALS[case]))


def test_its_wire_tells_no_secret(case: str) -> None:
    trial = TRIALS[case]
    content = get_kind(trial.kind).content(trial, Everything(trial))
    text = content.model_dump_json()
    assert not [word for word in SECRETS if word in text]
    named = trial.kind == "learn" and trial.label is not None
    assert named or '"label":"husky"' not in text
    # A second decision stands beside this person's first one, and beside the advice if there is one.
    beside = {"earlier": trial.extra.get("step") == "second", "advice": trial.label is not None}
    told = content.model_dump()
    assert {name: told[name] is not None for name in beside if name in told} == {
        name: is_there for name, is_there in beside.items() if name in told
    }


def test_an_observer_answers_what_the_check_accepts(case: str) -> None:
    trial, kind = TRIALS[case], get_kind(TRIALS[case].kind)
    wire = {
        "id": "7",
        "position": trial.position,
        "kind": trial.kind,
        "content": kind.content(trial, Everything(trial)).model_dump(),
    }
    reply = kind.answer(Someone(), wire)
    kind.check(trial, reply.value)
    assert 0 < reply.rt_ms <= reply.shown_ms


def test_it_fills_the_columns_that_it_declares(case: str) -> None:
    kind = get_kind(TRIALS[case].kind)
    for value in GOOD[case]:
        cells = {**kind.cells(TRIALS[case], value), **kind.noted(NOTED)}
        assert set(cells) == {column.name for column in kind.columns}


def test_no_two_kinds_declare_a_column_differently() -> None:
    columns = {column for name in KINDS for column in get_kind(name).columns}
    assert len({column.name for column in columns}) == len(columns) >= 3


def scores(case: str) -> Iterator[float | None]:
    yield from (score(TRIALS[case], value) for value in GOOD[case])


def test_it_scores_only_what_the_plan_calls_right() -> None:
    assert list(scores("predict")) == [0.0, 1.0]
    assert list(scores("solve")) == [0.0, 1.0, 0.0, 0.0]
    decisions = {case for case in TRIALS if case.startswith("decide")}
    assert [list(scores(case)) for case in sorted(decisions)] == [[1.0, 0.0], [0.0], [1.0]]
    for case in set(TRIALS) - {"predict", "solve", *decisions}:
        assert set(scores(case)) == {None}, case


def test_it_keeps_score_and_agreement_apart() -> None:
    """Model, truth and what is right are three things; acceptance agrees with none of them."""
    predict, solve = TRIALS["predict"], TRIALS["solve"]
    assert agreement(predict, {"choice": "wolf"}, predict.predicted) == 0.0
    assert agreement(predict, {"choice": "wolf"}, predict.truth) == 1.0
    assert agreement(solve, {"choice": "2", "region": [1]}, solve.truth) == 1.0
    assert agreement(predict, {"choice": "wolf"}, None) is None
    advised = TRIALS["decide, advised"]
    assert [agreement(advised, {"choice": "wolf"}, label) for label in ("husky", "wolf")] == [0.0, 1.0]
    for case in ("learn, guess first", "predict, repeat", "instructed", "review", "rate"):
        assert agreement(TRIALS[case], GOOD[case][0], "wolf") is None, case


def test_a_check_is_passed_by_what_it_asks_for() -> None:
    assert is_as_asked(TRIALS["instructed"], {"choice": "j"}) is True
    assert is_as_asked(TRIALS["instructed"], {"choice": "d"}) is False
    assert is_as_asked(TRIALS["predict, repeat"], {"choice": "wolf"}) is True
    assert is_as_asked(TRIALS["predict"], {"choice": "wolf"}) is None
    # Rating checks of studies that opened before were answered on the scale; the same rule judges them.
    assert follows("rate", "4", {"q1": 4}) and not follows("rate", "4", {"q1": 4, "q2": 5})
    assert not follows("learn", "", {"seen": True})


def test_a_rating_names_each_fault_by_its_question() -> None:
    with pytest.raises(InvalidResponse) as caught:
        get_kind("rate").check(TRIALS["rate"], {"q1": 9, "q3": 2})
    assert set(caught.value.fields) == {"q1", "q2", "q3"}


def test_a_region_is_held_to_the_trials_own_grid() -> None:
    solve = get_kind("solve")
    small = replace(TRIALS["solve"], extra={"grid": 4})
    solve.check(small, {"choice": "1", "region": [15]})
    with pytest.raises(InvalidResponse, match="0 to 15") as caught:
        solve.check(small, {"choice": "1", "region": [16]})
    assert set(caught.value.fields) == {"region"}
    unmarked = replace(TRIALS["solve"], extra={"grid": 28, "region": False})
    solve.check(unmarked, {"choice": "1"})


def test_it_names_the_known_kinds_if_asked_for_another() -> None:
    with pytest.raises(UnknownName, match="did you mean 'predict'"):
        get_kind("predikt")
