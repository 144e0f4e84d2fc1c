"""Runs proofs that are too long for `make test`. Each writes a table to docs/evidence/. Exits 1 if one fails.

    .venv/bin/python setup/prove.py [--seed S] [PROOF ...]

A proof is a list of units. A unit that has passed at this commit with this seed is not run again, so an
interrupted proof continues with its next unit. `make test` runs a short form of each proof but `measured`
(docs/running.md, "Tests and proofs").
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from setup.suite import ROOT, WORKERS, environment  # noqa: E402

EVIDENCE = ROOT / "docs" / "evidence"
STATE = ROOT / "var" / "proofs"
LIMIT_S = 3 * 3600.0
"""A proof that takes longer than this on two cores must be split into two."""
SAID_LINES = 40


@dataclass(frozen=True, slots=True)
class Unit:
    """One command of a proof; `{seed}` in it becomes the seed."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """A claim and the units that prove it: the claim holds if every unit passes."""

    name: str
    claim: str
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one unit; `said` is the end of its output."""

    unit: str
    is_passed: bool
    seconds: float
    said: str


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The commit, seed and machine of a proof. `commit` is empty if the checkout has uncommitted changes."""

    commit: str
    seed: int
    machine: str


def tests(name: str, *chosen: str, database: str = "postgresql", workers: str = "0") -> Unit:
    """A unit that runs tests on one database."""
    options = ("--database", database, "--seed", "{seed}", "--processes", workers)
    # The folder, if no file is named: else pytest takes an option's value for it (setup/suite.py).
    folder = () if any(word.startswith("tests/") for word in chosen) else ("tests",)
    return Unit(name, (sys.executable, "-m", "pytest", *folder, "-q", *options, *chosen))


def full(name: str, *chosen: str) -> Unit:
    """A unit that runs tests in the full size, which takes too long for `make test`."""
    return tests(name, "--full", *chosen)


REHEARSAL = "tests/journeys/test_rehearsal.py::test_it_pays_everybody_once"
LOOKS = "tests/stimuli/test_looks.py"
CALIBRATION = "tests/analysis/test_calibration.py"
PLANS = "tests/analysis/test_calibration_plans.py"
PREFERENCE = "tests/analysis/test_preference_proof.py"
RECOVERY = "tests/journeys/test_recovery.py"
CROSSED, MARGIN = "tests/analysis/test_pigeonhole.py", "tests/analysis/test_margin.py"
MEASURED = (sys.executable, "-m", "tests.proofs.measured")
MUTANTS = (sys.executable, "-m", "tests.proofs.mutants")
TIMING = (sys.executable, "-m", "tests.proofs.timing")
PLATES = (sys.executable, "-m", "tests.proofs.plates")
RATES = ("30", "60", "144")
TIMED = ("--long-seconds", str(ROOT / "var" / "long.txt"))
MUTATED = ("analysis/stats", "experiments/kinds", "experiments/gates")
PROOFS = (
    Proof(
        "crashes",
        "Three hundred people on Prolific and sixty on Mechanical Turk are paid what they are owed, once, "
        "with the waiting times of a live study on a moved clock, although each fault of the platform's "
        "simulator comes in one of twenty calls that can meet it, and the settling process is killed (-9) "
        "twenty times; so are 24 people with each fault alone. Fifty pictures by every method are complete "
        "although a worker is killed ten times.",
        (
            full("prolific", f"{REHEARSAL}_whatever_dies[prolific]"),
            full("mturk", f"{REHEARSAL}_whatever_dies[mturk]"),
            full("each alone, prolific", f"{REHEARSAL}_with_each_fault_alone[prolific]"),
            full("each alone, mturk", f"{REHEARSAL}_with_each_fault_alone[mturk]"),
            full("many methods", "tests/journeys/test_many_methods.py"),
        ),
    ),
    Proof(
        "long",
        "Every test that `make test` leaves out because it takes long passes; so does, on SQLite, every test "
        "whose result may depend on the database.",
        (
            tests("postgresql", "-m", "long and not sqlite_only", *TIMED, workers="2"),
            tests(
                *("sqlite", "-m", "both_databases or (long and sqlite_only)", *TIMED),
                database="sqlite",
                workers="2",
            ),
        ),
    ),
    Proof(
        "flood",
        "Fifty people finish, ten of them behind the flooding address, while 5,000 invented arrivals come "
        "from one address and one network of IPv6 to a study of 200 places. Of sixty people whom the "
        "platform lists, in a study that has no place more than it offers, all finish and none waits longer "
        "than 180 s for a flood from one network of 48 bits and fifty addresses of IPv4, of which everybody "
        "consents at once.",
        (
            full("flood", "tests/crowd/test_floods.py", "-k", "through_a_flood"),
            full("who waits how long", "tests/crowd/test_flood_clock.py", "-k", "nobody"),
        ),
    ),
    Proof(
        "refusals",
        "For each thing that Prolific's own pages leave open about money, sixty people, five runs of settle "
        "on a moved clock and two deaths of it in the middle of calls: the ledger and the simulated "
        "platform's books agree to the cent, nobody is paid twice, and whoever is not paid is named under "
        "Needs your hand. A row has the page, what it leaves open, the fault, the calls that met it, the "
        "deaths, the ledger, what the platform paid, and the lines that need a hand with the hours until "
        "they stood there.",
        (full("both books", "tests/crowd/test_books.py"),),
    ),
    Proof(
        "recipes",
        "The default recipe is the one of least opacity whose strengths are read off photographs, by every "
        "kind of colour vision, on one half of them and again on the other.",
        (Unit("recipes", (sys.executable, "-m", "tests.proofs.recipes", "--seed", "{seed}")),),
    ),
    Proof(
        "plates",
        "The contrast of plates falls with the severity of a simulated deficiency, lies between the declared "
        "bounds at the severity that they are made for, and below them where cones are missing; on the line "
        "between protan and deutan eyes it falls up to 0.9 and then rises by less than 0.3. Classifiers "
        "read no digit off the lightness or the size of dots, whose upper 95 % limit is .15 at most where "
        "chance is .10, but do read planted differences of these kinds, and colour. A small network reads "
        "plates, not all of them, and fewer through the eyes that they are made for. People were not tested.",
        tuple(Unit(name, (*PLATES, name, "--seed", "{seed}")) for name in ("contrast", "cues", "network")),
    ),
    Proof(
        "screens",
        "Every page that a participant can meet in studies of pictures, texts, advice, tasks and judgements "
        "fits six windows, and axe finds nothing on it.",
        (full("windows", "tests/journeys/test_screens.py"),),
    ),
    Proof(
        "published",
        "A ResNet-18 of torchvision's and of timm's architecture and a ViT-B/16 of torchvision's and of "
        "transformers', their last layer trained on the shipped photographs, go from their files of weights "
        "to a report by the documentation alone; as their libraries draw them at first, they are refused.",
        (full("from weights to a report", "tests/journeys/test_published_study.py"),),
    ),
    Proof(
        "measured",
        "By the default recipe (`positive`) methods rank as they do by their own signed maps; by "
        "`magnitude`, as maps were drawn before recipes had a sign, they rank otherwise, and a "
        "quarter to more than a half of what methods with a sign that read gradients painted "
        "brightest was evidence against the answer. Both networks are trained on the spot, all "
        "weights, to tell crops of five photographs apart, and are so sure that insertion tells few "
        "methods apart: the table says nothing of which method is better elsewhere. Ranks stand in "
        "brackets, 1 for the least deletion and the most insertion.",
        tuple(
            Unit(name, (*MEASURED, "--seed", "{seed}", "--network", name))
            for name in ("resnet18", "vit_tiny_patch16_224")
        ),
    ),
    Proof(
        "leaks",
        "A target leak that is planted in 20 items (empty maps for one answer, a corner mark; marked words, "
        "concepts, sentences and pictures that code it) is found in 19 of 20 seeds or more; honest ones that "
        "differ by class or by answer because the object does are accused in at most 5 % of 400 seeds.",
        (
            full("maps", LOOKS, "-k", "planted or honest", "-rP"),
            full("other kinds", "tests/stimuli/test_quality_forms.py", "-rP"),
        ),
    ),
    Proof(
        "calibration",
        "Over 2,000 simulated studies, tests err at the rate that they claim, and intervals cover as often. "
        "Intervals of Utility do so over a grid of baselines, Utilities, spreads and numbers of people, from "
        "five people on; of three beside twenty they do not, and none is printed. Under the studies' own "
        "plans tests of people keep their level for people on these pictures. For the method on other "
        "pictures they do not with few or fixed pictures; the mixed model errs in 3 to 7 % by its F.",
        (
            full("error rates", CALIBRATION, "-k", "error"),
            full("coverage", CALIBRATION, "-k", "cover"),
            full("plans and unequal groups", PLANS, "-k", "claim or family or unequal", "-rP"),
            full("mixed model", PLANS, "-k", "mixed", "-rP"),
            full("Utility by people", "tests/analysis/test_utility_grid.py", "-rP"),
        ),
    ),
    Proof(
        "verdicts",
        "Over 1,000 simulated reviews each, with 12 and 24 leads, 40 and 60 tasks and small to large "
        "differences between leads, tasks and solutions, 95 % intervals of a share and of a difference hold "
        "what is planted in 92 to 98 %. Over 500 each, a difference that lies at the margin is called "
        "equivalent in 5 % at most, and worse or superior in 2.5 %, as far as chance lets them be counted.",
        (
            full("intervals", CROSSED, "-k", "level", "-rP"),
            full("decisions", MARGIN, "-k", "rare or there_is", "-rP"),
        ),
    ),
    Proof(
        "blindness",
        "Over 2,000 reviews that 128 leads are handed out: from keys, types, lengths, headers, queries, "
        "bytes and times of delivery nothing tells people's solutions from the model's. The 99.9 % interval "
        "of the AUC of two decoders, each asked about leads that it has not learnt from, holds .5, and the "
        "upper end of that of 95 % lies below .60. One byte more of a reply or of a picture is found, and so "
        "are 20 ms.",
        (full("payloads", "tests/experiments/test_source_blindness.py", "-rP"),),
    ),
    Proof(
        "timing",
        "Error of our stamp against the browser's own record: onset, offset, time on the screen and response "
        "time of a picture that is shown for 100 ms between a fixation mark and a mask. Headless with frames "
        "that are begun from outside, the record is the pixels of each frame; where Chromium runs freely, it "
        "is the browser's trace. A software display presents a frame as soon as it is drawn, a panel at its "
        "next refresh, which is what the stamps name: run freely, they are late by most of a frame, and "
        "response times short by as much. The lag of panels, keyboards and mice is not measured here. "
        "Positive errors: the stamp is later, the time longer. A rate that cannot be made is named.",
        tuple(
            Unit(f"{way}, {rate} Hz", (*TIMING, way, "--rate", rate, "--seed", "{seed}"))
            for way in ("controlled", "headless", "headed")
            for rate in RATES
        ),
    ),
    Proof(
        "recovery",
        "Effects planted in people are found again in the report of the stored study, and nothing else is. A "
        "difference of .55 points between two methods, rated by five of 16 raters each on 24 pictures, is "
        "found in four of five studies or more, and none at the rate of .05 over 500 studies.",
        (
            full("planted", RECOVERY, "-k", "covers"),
            full("nothing planted", RECOVERY, "-k", "chance"),
            full("ratings", "tests/analysis/test_rating_recovery.py", "-rP"),
            full("decisions", "tests/analysis/test_assisted_recovery.py", "-rP"),
            full("judgements", "tests/analysis/test_turing_recovery.py", "-rP"),
        ),
    ),
    Proof(
        "planted",
        "Of 200 other seeds at least nine in ten find the demo's planted case, in which the evidence is "
        "marked, and at most one in eight its null, the same masks on other pictures. Pictures, plans and "
        "people are drawn from the seed, the network is the frozen one. Computational observers, not people.",
        (Unit("planted", (sys.executable, "-m", "tests.proofs.planted", "--seed", "{seed}")),),
    ),
    Proof(
        "preference",
        "A scorer of preferences fitted on a synthetic twin of PASTA (1,000 images, 21 methods, 5 raters) "
        "reaches .8 of the ceiling with new images. If ratings follow from which part of the object a map "
        "covers, plain properties stay at chance and the embedding does not. With shuffled ratings the p of "
        "the whole pipeline is uniform.",
        (
            full("twins", PREFERENCE, "-k", "twin", "-rP"),
            full("shuffles", PREFERENCE, "-k", "shuffled", "-rP"),
            full("annotation", "tests/stimuli/test_preference_annotation.py", "-k", "saves", "-rP"),
        ),
    ),
    Proof(
        "order",
        "With people in a fixed order of arrival, every number of the demo is what it was at f38355e; on a "
        "processor on which the demo's network gets other weights, all that does not depend on pictures.",
        (full("demo", "tests/before/test_order.py"),),
    ),
    Proof(
        "databases",
        "Every test that has rows passes on SQLite as it does on PostgreSQL in `make test`.",
        (tests("sqlite", "-m", "not pure and not browser", database="sqlite", workers=str(WORKERS)),),
    ),
    Proof(
        "mutants",
        "Of 200 mutants the suite kills at least 85 %.",
        (
            Unit(
                "mutants",
                (
                    *(sys.executable, "-m", "tests.proofs.mutants"),
                    "--seed",
                    "{seed}",
                    "--count",
                    "200",
                    *MUTATED,
                ),
            ),
        ),
    ),
)


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def circumstances(seed: int) -> Circumstances:
    # The tables are left out: a table that was just written does not change the code that is proved.
    is_changed = bool(git("status", "--porcelain", "--", ".", ":!docs/evidence"))
    return Circumstances("" if is_changed else git("rev-parse", "--short=12", "HEAD"), seed, machine())


def machine() -> str:
    """Processor, cores, memory, and the versions of libraries that the numbers may depend on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "torch", "Django"))
    return (
        f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores, {memory_gib:.0f} GiB, "
        f"{platform.system()}, Python {platform.python_version()}, {libraries}"
    )


def memory_of(proof: Proof, place: Circumstances) -> Path:
    return STATE / f"{proof.name}-{place.commit}-{place.seed}.jsonl"


def remembered(proof: Proof, place: Circumstances) -> dict[str, Result]:
    """The units that have passed at this commit with this seed; none if the code is not committed."""
    path = memory_of(proof, place)
    if not place.commit or not path.exists():
        return {}
    results = [Result(**json.loads(line)) for line in path.read_text().splitlines()]
    return {result.unit: result for result in results if result.is_passed}


def run(unit: Unit, seed: int, within_s: float) -> Result:
    """Runs one unit and prints its output as it comes."""
    started = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(
        [word.replace("{seed}", str(seed)) for word in unit.command],
        cwd=ROOT, env=environment(), text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        alarm = threading.Timer(within_s, running.kill)
        alarm.start()
        for line in running.stdout:
            print(line, end="", flush=True)
            lines = [*lines[1 - SAID_LINES :], line]
        alarm.cancel()
    seconds = time.monotonic() - started
    if seconds > within_s:
        lines.append(f"Stopped: with the units before it, it takes longer than {LIMIT_S / 3600:.0f} hours.\n")
    return Result(unit.name, running.returncode == 0, seconds, "".join(lines))


def prove(proof: Proof, place: Circumstances) -> list[Result]:
    """Runs the units that have not passed yet, and stores the result of each as soon as it ends."""
    passed = remembered(proof, place)
    results: list[Result] = []
    for unit in proof.units:
        print(f"\n=== {proof.name}: {unit.name} ===", flush=True)
        if unit.name in passed:
            print("passed before")
            results.append(passed[unit.name])
            continue
        result = run(unit, place.seed, LIMIT_S - sum(each.seconds for each in results))
        results.append(result)
        if place.commit:
            STATE.mkdir(parents=True, exist_ok=True)
            with memory_of(proof, place).open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
    return results


def page(proof: Proof, place: Circumstances, results: Sequence[Result], day: str) -> str:
    """The page of evidence: the claim, the table, and the end of each unit's output."""
    rows = [
        f"| {result.unit} | {'passed' if result.is_passed else 'FAILED'} | {result.seconds / 60:.1f} |"
        for result in results
    ]
    said = [f"## {result.unit}\n\n```\n{result.said.strip()}\n```\n" for result in results]
    minutes = sum(result.seconds for result in results) / 60
    return "\n".join(
        [
            *(f"# Proof: {proof.name}", "", proof.claim, ""),
            *("| commit | seed | day | minutes | machine |", "| --- | --- | --- | --- | --- |"),
            f"| {place.commit} | {place.seed} | {day} | {minutes:.1f} | {place.machine} |",
            *("", "| unit | result | minutes |", "| --- | --- | --- |", *rows, "", *said),
        ]
    )


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Run long proofs and write what came of them.")
    parser.add_argument("proofs", nargs="*", metavar="PROOF", help=", ".join(proof.name for proof in PROOFS))
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(words)
    known = {proof.name: proof for proof in PROOFS}
    unknown = [name for name in asked.proofs if name not in known]
    if unknown:
        print(f"no proof is called {', '.join(unknown)}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    place = circumstances(asked.seed)
    is_passed = True
    for proof in [known[name] for name in asked.proofs] or PROOFS:
        results = prove(proof, place)
        is_passed = is_passed and all(result.is_passed for result in results)
        text = page(proof, place, results, datetime.now(UTC).date().isoformat())
        if place.commit:
            EVIDENCE.mkdir(parents=True, exist_ok=True)
            (EVIDENCE / f"{proof.name}.md").write_text(text)
        else:
            print(f"\n{text}\nNot written to docs/evidence/: commit your changes first.")
    return 0 if is_passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
