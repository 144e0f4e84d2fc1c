"""Money on the simulated Prolific: units, bonuses in two steps, costs, and that none appears or vanishes."""

import pytest

from tests.crowd.rehearsal.prolific.prolific_client import conserved, researcher, said

pytestmark = pytest.mark.pure


def test_it_reads_bonuses_in_major_units_and_answers_in_minor_ones() -> None:
    with researcher(fee_bp=2500, vat_bp=2000) as client:
        study = client.published()
        first, second = client.finished(study), client.finished(study)
        answer = client.batch(study, f"{first},4.25", f"{second},30")
        assert answer.status_code == 201
        batch = answer.json()
        # Fees: 106.25 and 750, rounded; tax: a fifth of each fee.
        assert batch == {
            "id": batch["id"],
            "study": study,
            "amount": 3425,
            "fees": 106 + 750,
            "vat": 21 + 150,
            "total_amount": 3425 + 856 + 171,
        }
        assert client.work(first)["bonus_payments"] == []
        assert client.post(f"bulk-bonus-payments/{batch['id']}/pay/").status_code == 202
        assert client.work(first)["bonus_payments"] == [425]
        assert client.work(second)["bonus_payments"] == [3000]


def test_it_takes_fractions_of_a_cent_as_fees() -> None:
    """A third of 0.05, in halves of a minor unit; and a fifth of that as tax."""
    with researcher(fee_bp=3333, vat_bp=2000, fee_parts=2) as client:
        study = client.published()
        submission = client.finished(study)
        answer = client.batch(study, f"{submission},0.05")
        batch = answer.json()
        assert (batch["amount"], batch["fees"], batch["vat"], batch["total_amount"]) == (5, 1.5, 0.5, 7)
        assert '"fees": 1.5,' in answer.text and '"total_amount": 7}' in answer.text
        client.post(f"bulk-bonus-payments/{batch['id']}/pay/")
        first = client.get("workspaces/rehearsal/balance/").json()
        assert first["total_balance"] == 10_000_000 - 7
        client.post(f"bulk-bonus-payments/{client.batch(study, f'{submission},0.07').json()['id']}/pay/")
        assert client.get("workspaces/rehearsal/balance/").json()["total_balance"] == 10_000_000 - 7 - 10
        assert conserved(client.verb("state"))


def test_it_pays_again_when_told_to_pay_again() -> None:
    with researcher() as client:
        study = client.published()
        submission = client.finished(study)
        batch = client.batch(study, f"{submission},1.50").json()["id"]
        for _ in range(2):
            assert client.post(f"bulk-bonus-payments/{batch}/pay/").status_code == 202
        assert client.work(submission)["bonus_payments"] == [150, 150]
        state = client.verb("state")
        assert state["batches"][batch]["paid_count"] == 2
        assert conserved(state)


def test_it_pays_later_and_never_two_at_once() -> None:
    with researcher(pay_delay_s=180) as client:
        study = client.published()
        submission = client.finished(study)
        first, second = (client.batch(study, f"{submission},1").json()["id"] for _ in range(2))
        assert client.post(f"bulk-bonus-payments/{first}/pay/").status_code == 202
        assert client.work(submission)["bonus_payments"] == []
        assert client.post(f"bulk-bonus-payments/{first}/pay/").status_code == 409
        assert client.post(f"bulk-bonus-payments/{second}/pay/").status_code == 409
        client.verb("advance", seconds=180)
        assert client.work(submission)["bonus_payments"] == [100]
        assert client.post(f"bulk-bonus-payments/{second}/pay/").status_code == 202


def test_it_names_those_who_have_not_taken_part() -> None:
    with researcher() as client:
        study, other = client.published(), client.published()
        here, elsewhere = client.finished(study), client.finished(other)
        answer = client.batch(study, f"{here},1.00", f"{elsewhere},1.00", "nobody,1.00")
        assert answer.status_code == 400
        assert elsewhere in said(answer) and "nobody" in said(answer) and here not in said(answer)


def test_it_pays_a_returned_submission_and_a_participant_by_id() -> None:
    with researcher() as client:
        study = client.published()
        taken = client.verb("take", posting=study)
        client.verb("return", submission=taken["submission"])
        batch = client.batch(study, f"{taken['person']},0.40").json()
        assert batch["amount"] == 40
        client.post(f"bulk-bonus-payments/{batch['id']}/pay/")
        assert client.work(taken["submission"])["bonus_payments"] == [40]


@pytest.mark.parametrize(
    "line",
    ["participant_id,amount", "{id},1.005", "{id},-1", "{id},0", "{id},0.00", "{id}", "{id},1,5", "{id},£1"],
)
def test_it_refuses_a_line_that_is_no_id_and_amount(line: str) -> None:
    with researcher() as client:
        study = client.published()
        submission = client.finished(study)
        answer = client.batch(study, f"{submission},1.00", line.format(id=submission))
        assert answer.status_code == 400
        assert client.verb("state")["batches"] == {}


def test_it_takes_at_most_200_lines() -> None:
    with researcher() as client:
        study = client.published()
        submission = client.finished(study)
        assert client.batch(study, *[f"{submission},0.01"] * 200).status_code == 201
        assert client.batch(study, *[f"{submission},0.01"] * 201).status_code == 400


def test_it_does_not_pay_a_bonus_out_of_what_is_set_aside() -> None:
    with researcher(fee_bp=0, balance_cents=1000) as client:
        study = client.published()
        submission = client.finished(study)
        too_much = client.batch(study, f"{submission},4.01").json()["id"]
        assert client.post(f"bulk-bonus-payments/{too_much}/pay/").status_code == 400
        assert client.work(submission)["bonus_payments"] == []
        just = client.batch(study, f"{submission},4.00").json()["id"]
        assert client.post(f"bulk-bonus-payments/{just}/pay/").status_code == 202
        assert client.decide(submission, "APPROVE").status_code == 200
        state = client.verb("state")
        assert (state["balance"], state["available"]) == (400, 0)


def test_it_approves_no_submission_without_money() -> None:
    with researcher(fee_bp=0, balance_cents=600) as client:
        study = client.published()
        submission = client.finished(study)
        client.verb("fund", cents=-401)
        assert client.decide(submission, "APPROVE").status_code == 400
        assert client.post("submissions/bulk-approve/", {"submission_ids": [submission]}).status_code == 400
        assert client.work(submission)["status"] == "AWAITING REVIEW"
        client.verb("fund", cents=1)
        assert client.decide(submission, "APPROVE").status_code == 200
        state = client.verb("state")
        assert (state["balance"], state["submissions"][submission]["reward_paid_count"]) == (0, 1)
        assert conserved(state)


def test_it_knows_no_other_batch() -> None:
    with researcher() as client:
        assert client.post(f"bulk-bonus-payments/{'0' * 24}/pay/").status_code == 404


def test_it_tells_costs_in_minor_units() -> None:
    with researcher(fee_bp=2500, vat_bp=2000) as client:
        costs = client.post("study-cost-calculator/", {"reward": 200, "total_available_places": 3}).json()
        assert costs == {"total_cost": 780}
        study = client.published()
        submission = client.finished(study)
        client.decide(submission, "APPROVE")
        client.post(f"bulk-bonus-payments/{client.batch(study, f'{submission},1').json()['id']}/pay/")
        balance = client.get("workspaces/rehearsal/balance/").json()
        assert balance["total_balance"] == 10_000_000 - 390
        assert balance["available_balance"] == balance["total_balance"] - 2 * 260
        assert sum(balance["available_balance_breakdown"].values()) == balance["available_balance"]


def test_it_recommends_pay_per_currency() -> None:
    with researcher(currency="USD") as client:
        rows = client.get("reward-recommendations/", workspace_id="rehearsal", currency="USD").json()
        assert rows == [{"currency": "USD", "min_reward_per_hour": 800, "recommended_reward_per_hour": 1200}]
        assert client.get("workspaces/rehearsal/balance/").json()["currency_code"] == "USD"
