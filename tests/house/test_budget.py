"""The suite's budget: what each room cost at the last measurement against what it may cost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.run import budget, choice
from tests.run.budget import Measurement

pytestmark = pytest.mark.pure

TOLD = """# CPU seconds of each test file when last measured
# reference loop: 0.0500 s
30.0 collection
12.0 tests/crowd/platforms/test_x.py
3.0 tests/crowd/test_y.py
0.5 tests/house/test_z.py
"""


def test_a_measurement_reads_as_it_was_written() -> None:
    measured = Measurement.read(TOLD)
    assert measured.loop_s == 0.05 and measured.text() == TOLD
    assert budget.by_room(measured.seconds) == {"collection": 30.0, "crowd": 15.0, "house": 0.5}


def test_a_room_that_costs_too_much_is_named_with_its_heaviest_files() -> None:
    """15 s are 300 loops of .05 s."""
    measured = Measurement.read(TOLD)
    limits = {"collection": 600.0, "crowd": 300.0, "house": 10.0}
    assert budget.over(measured, limits) == []
    [said] = budget.over(measured, {**limits, "crowd": 299.0})
    assert said.startswith("crowd costs 300 units, and its budget is 299")
    assert said.index("platforms/test_x.py") < said.index("test_y.py") and "with a reason" in said
    [said] = budget.over(measured, {"collection": 600.0, "crowd": 300.0})
    assert said.startswith("house costs 10 units and has no budget")


def test_the_same_work_on_a_slower_machine_costs_the_same() -> None:
    fast = Measurement.read(TOLD)
    slow = Measurement({path: 3 * spent for path, spent in fast.seconds.items()}, 3 * fast.loop_s)
    limits = {"collection": 600.0, "crowd": 299.0, "house": 10.0}
    assert budget.over(slow, limits) == budget.over(fast, limits)


def test_every_room_keeps_its_budget() -> None:
    assert budget.over(Measurement.read(budget.SECONDS.read_text()), budget.budgets()) == []


def test_nearly_every_file_was_measured() -> None:
    measured = Measurement.read(budget.SECONDS.read_text())
    files = budget.files_of_tests()
    assert len(budget.unmeasured(measured, files)) <= budget.UNMEASURED_MAX, "make seconds, after a whole run"
    gone = set(measured.seconds) - set(files) - {budget.COLLECTION}
    assert len(gone) <= budget.UNMEASURED_MAX, gone


def test_what_is_fast_was_measured() -> None:
    paths = [budget.ROOT / path for path in choice.measured()]
    assert any(map(choice.is_fast, paths)) and not all(map(choice.is_fast, paths))
    assert not choice.is_fast(budget.ROOT / "tests" / "test_of_tomorrow.py")


def test_the_loop_does_the_same_work_everywhere() -> None:
    """Of 600,000 texts of numbers: 10 have one digit, 90 two, 900 three, and so on."""
    digits = 10 * 1 + 90 * 2 + 900 * 3 + 9_000 * 4 + 90_000 * 5 + 500_000 * 6
    assert budget.loop() == digits
    assert budget.loop_s() > 0


def test_a_process_that_lives_is_counted_with_what_it_did() -> None:
    """It computes for three tenths of a second, and waits; the kernel counts in hundredths."""
    counts = "import sys, time; start = time.process_time()\nwhile time.process_time() < start + .3: pass\n"
    words = [sys.executable, "-c", counts + "print(flush=True); sys.stdin.read()"]
    alone, together = budget.spent_s(with_living=False), budget.spent_s(with_living=True)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        seen = budget.spent_s(with_living=True) - together
        without = budget.spent_s(with_living=False) - alone
        child.communicate()
    assert seen - without >= 0.2 if Path("/proc").is_dir() else seen == without
