"""What each person is due: tables computed by hand, and rules that hold for every table."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowd.ground.amounts import share_of, split
from crowd.money.policy import Due, SessionEnd, Terms, dues_of
from crowd.platforms.mturk.fees import base_cents

pytestmark = pytest.mark.pure

PLAIN = Terms(reward_cents=140, base_cents=140, screened_share=0.5, turned_away_share=0.25)
BONUS = Terms(reward_cents=140, base_cents=140, bonus_per_match_cents=3, bonus_max_cents=50)


def amounts(terms: Terms, end: SessionEnd) -> dict[str, int]:
    return {due.kind: due.cents for due in dues_of(terms, end)}


@pytest.mark.parametrize(
    ("cents", "share", "due"),
    [
        (140, 0.25, 35),
        (101, 0.5, 51),  # halves up
        (99, 0.5, 50),
        (100, 0.285, 29),  # 28.5, though 100 * 0.285 is 28.499999999999996
        (1, 0.49, 0),
        (100, Fraction(1, 3), 33),
        (100, Fraction(2, 3), 67),
        (0, 1.0, 0),
    ],
)
def test_it_shares_in_whole_cents(cents: int, share: float | Fraction, due: int) -> None:
    assert share_of(cents, share) == due


@pytest.mark.parametrize(
    ("end", "due"),
    [
        (SessionEnd("complete"), {"base": 140}),
        (SessionEnd("screened"), {"screen_out": 70}),
        (SessionEnd("turned_away"), {"compensation": 35}),
        (SessionEnd("withdrawn", answered=9, planned=36), {"compensation": 35}),
        (SessionEnd("withdrawn", answered=36, planned=36), {"compensation": 140}),
        (SessionEnd("withdrawn", answered=0, planned=36), {}),
        (SessionEnd("withdrawn", answered=0, planned=0), {}),
        (SessionEnd("left"), {}),
        (SessionEnd("declined"), {}),
        (SessionEnd("screened", consented=False), {}),
        (SessionEnd("withdrawn", consented=False, answered=9, planned=36), {}),
    ],
)
def test_it_owes_by_the_way_a_sitting_ended(end: SessionEnd, due: dict[str, int]) -> None:
    assert amounts(PLAIN, end) == due


@pytest.mark.parametrize(
    ("withdrawn", "due"), [("full", {"compensation": 140}), ("none", {}), ("pro_rata", {"compensation": 47})]
)
def test_it_follows_the_rule_for_who_withdraws(withdrawn: str, due: dict[str, int]) -> None:
    terms = Terms(reward_cents=140, base_cents=140, withdrawn=withdrawn)  # type: ignore[arg-type]
    assert amounts(terms, SessionEnd("withdrawn", answered=1, planned=3)) == due


@pytest.mark.parametrize(
    ("matches", "due"),
    [
        (0, {"base": 140}),
        (1, {"base": 140, "bonus": 3}),
        (16, {"base": 140, "bonus": 48}),
        (17, {"base": 140, "bonus": 50}),
        (21, {"base": 140, "bonus": 50}),
        (None, {"base": 140, "bonus": 50}),  # answers removed after finishing: pay is not touched
    ],
)
def test_it_owes_a_bonus_for_matches(matches: int | None, due: dict[str, int]) -> None:
    assert amounts(BONUS, SessionEnd("complete", matches=matches)) == due


@pytest.mark.parametrize(
    ("cap", "earlier", "due"),
    [
        (190, 0, {"base": 140, "bonus": 50}),
        (160, 0, {"base": 140, "bonus": 20}),
        (140, 0, {"base": 140}),
        (320, 170, {"base": 140, "bonus": 10}),
        (100, 0, {"base": 140}),  # the reward itself is never cut
    ],
)
def test_it_cuts_the_bonus_at_a_person_s_cap(cap: int, earlier: int, due: dict[str, int]) -> None:
    terms = Terms(140, 140, bonus_per_match_cents=3, bonus_max_cents=50, person_cap_cents=cap)
    assert amounts(terms, SessionEnd("complete", matches=20, earlier_cents=earlier)) == due


def test_it_pays_the_rest_of_a_split_reward_as_a_bonus() -> None:
    base, rest = split(140, 0.25)
    assert (base, rest) == (35, 105)
    terms = Terms(140, base, bonus_per_match_cents=3, bonus_max_cents=50, base_for_all=True)
    assert amounts(terms, SessionEnd("complete", matches=2)) == {"base": 35, "bonus": 111}


@pytest.mark.parametrize(
    ("end", "due"),
    [
        (SessionEnd("screened"), {"base": 35, "screen_out": 35}),
        (SessionEnd("turned_away"), {"base": 35}),
        (SessionEnd("withdrawn", answered=1, planned=10), {"base": 35}),  # approving pays no less
        (SessionEnd("withdrawn", answered=9, planned=10), {"base": 35, "compensation": 91}),
        (SessionEnd("withdrawn", answered=0, planned=10), {}),
    ],
)
def test_it_pays_the_base_first_where_approving_is_the_only_way(end: SessionEnd, due: dict[str, int]) -> None:
    terms = Terms(140, 35, screened_share=0.5, turned_away_share=0.25, base_for_all=True)
    assert amounts(terms, end) == due


def test_it_gives_each_amount_a_sentence() -> None:
    terms = Terms(140, 35, screened_share=0.5, bonus_per_match_cents=3, bonus_max_cents=50)
    dues = [*dues_of(terms, SessionEnd("complete", matches=4)), *dues_of(terms, SessionEnd("screened"))]
    assert [due.reason for due in dues] == [
        "Consented and finished.",
        "The rest of the reward (105); 4 answers that match the model, 3 each, at most 50.",
        "Screened out before a place: 50% of the reward.",
    ]


cents = st.integers(0, 100_000)
shares = st.integers(0, 1000).map(lambda n: n / 1000)
endings = st.sampled_from(["complete", "screened", "turned_away", "withdrawn", "left", "declined"])
sittings = st.builds(
    SessionEnd,
    ending=endings,
    consented=st.booleans(),
    answered=st.integers(0, 60),
    planned=st.integers(0, 60),
    matches=st.none() | st.integers(0, 60),
    earlier_cents=cents,
)


@st.composite
def some_terms(draw: st.DrawFn, split_reward: bool = True) -> Terms:
    reward = draw(st.integers(1, 100_000))
    base, _ = split(reward, draw(shares)) if split_reward else (reward, 0)
    per_match = draw(st.integers(0, 500))
    return Terms(
        reward_cents=reward,
        base_cents=base,
        screened_share=draw(shares),
        turned_away_share=draw(shares),
        withdrawn=draw(st.sampled_from(["pro_rata", "full", "none"])),
        bonus_per_match_cents=per_match,
        bonus_max_cents=draw(st.integers(1, 5000)) if per_match else 0,
        person_cap_cents=draw(st.none() | st.integers(reward, reward + 5000)),
        base_for_all=split_reward and draw(st.booleans()),
    )


@given(some_terms(), sittings)
def test_it_never_owes_more_than_the_most(terms: Terms, end: SessionEnd) -> None:
    total = sum(due.cents for due in dues_of(terms, end))
    assert 0 <= total <= terms.reward_cents + terms.bonus_max_cents
    if terms.person_cap_cents is not None and end.earlier_cents == 0:
        assert total <= terms.person_cap_cents
    if end.ending in {"left", "declined"} or not end.consented:
        assert total == 0


@given(some_terms(), st.none() | st.integers(0, 60))
def test_it_owes_who_finished_the_same_however_it_is_split(terms: Terms, matches: int | None) -> None:
    whole = Terms(
        terms.reward_cents,
        terms.reward_cents,
        bonus_per_match_cents=terms.bonus_per_match_cents,
        bonus_max_cents=terms.bonus_max_cents,
        person_cap_cents=terms.person_cap_cents,
    )
    end = SessionEnd("complete", matches=matches)
    assert sum(d.cents for d in dues_of(terms, end)) == sum(d.cents for d in dues_of(whole, end))


@given(some_terms(), sittings)
def test_it_owes_each_kind_once_and_nothing_of_no_cents(terms: Terms, end: SessionEnd) -> None:
    dues: tuple[Due, ...] = dues_of(terms, end)
    assert len({due.kind for due in dues}) == len(dues)
    assert all(due.cents > 0 and due.reason.endswith(".") for due in dues)


@given(st.integers(1, 100_000), shares)
def test_it_splits_as_the_platform_does(reward: int, share: float) -> None:
    base, rest = split(reward, share)
    assert base + rest == reward and base >= 1
    assert base == base_cents(reward, share)


@given(cents, st.integers(0, 60), st.integers(1, 60))
def test_it_is_nearer_to_a_share_than_half_a_cent(reward: int, answered: int, planned: int) -> None:
    share = min(Fraction(1), Fraction(answered, planned))
    assert abs(share_of(reward, share) - reward * share) <= Fraction(1, 2)
