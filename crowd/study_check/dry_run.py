"""What a study would be, before anything is stored: plans, exposures, blind strategies, power, cost."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowd.platforms import PLATFORMS
from crowd.study_check.condition_look_alikes import Alike, look_alikes
from crowd.study_check.participant_texts import text_warnings
from crowd.study_check.picture_resolution import Showing, showing_of
from crowd.study_check.pixel_and_word_features import features_of
from crowd.study_check.prediction_cells import Row, cell_rows
from crowd.study_check.publication_quote import health_problems, question_warnings
from crowd.study_check.quality_warnings import control_warnings, warnings_about
from crowd.study_check.rating_dry_run import ITEMS_FEW, RatingPlan, rated_in, rated_warnings
from crowd.study_check.signed_maps import signs_of, signs_sentence
from crowd.study_check.stimulus_exposures import exposures
from crowd.study_check.stimulus_quality import Quality, look_at, stimulus_quality
from crowd.study_check.text_units import TextLengths, text_lengths
from crowd.study_check.thumbnails import Small, thumbnails
from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.drafting.declared_units import check_target_words, check_units
from experiments.drafting.draft import with_copies
from experiments.drafting.draft_rows import predictor_keys
from experiments.drafting.item_choice import choose
from experiments.drafting.material_set import MaterialSet
from experiments.drafting.model_answers import ModelPredictions, looks_of
from experiments.drafting.model_survey import ask
from experiments.drafting.perturbed_copies import copies_json
from experiments.errors import StudyError, sentence
from experiments.gates.promises import unkept
from experiments.gates.quiz import NAME as QUIZ
from experiments.paradigms import design_of, get_paradigm
from experiments.paradigms.base import BadDesign, GroupsTooLarge, Plan, PlanError
from experiments.paradigms.blind import (
    NEAREST_PICTURE,
    NEAREST_TEXT,
    BlindScore,
    ModelAnswers,
    asks_for_model,
    blind_scores,
    imbalance,
    knowledge,
    likeness,
    opposite,
    shortage,
)
from experiments.paradigms.chance import GUESSER_PASS_MAX, SLIP_SHARE, pass_probability
from experiments.sessions.progress import reading_minutes, trials_minutes
from experiments.stages.solution_freeze import frozen_source
from experiments.wording.smallest_window import needed_of, windows_of
from stimuli.errors import StimulusError
from stimuli.explainers import is_recorded, open_explainer
from stimuli.explainers.base import own_output
from stimuli.quality.model_faults import causes, unknowing
from stimuli.quality.model_knowledge import ModelLook
from stimuli.registry import closest
from stimuli.store import LocalStore, Store
from stimuli.store.read_through import ReadThrough

if TYPE_CHECKING:
    from analysis.planning.study_power import PlannedPower


@dataclass(frozen=True, slots=True)
class Models:
    """What is known of a study's models before anything is planned: by name, each on people's items, and the
    pool as (answer, right or wrong, items), empty if none could be made of their answers. `told` is what the
    datasets say of themselves, `doubted` what of it was hardly meant.
    """

    definition: StudyDefinition
    looks: Mapping[str, ModelLook]
    pool_cells: tuple[tuple[str, str, int], ...] = ()
    told: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()

    @property
    def is_asked(self) -> bool:
        """Whether people are asked for the models' answers."""
        return asks_for_model(get_paradigm(self.definition.paradigm))

    @property
    def unknowing(self) -> list[str]:
        """Why people cannot be asked about one of them, each with its measured causes."""
        told = [(name, why, causes(look)) for name, look in self.looks.items() if (why := unknowing(look))]
        return [self._add_model_name(name, "; ".join([why, *reasons])) for name, why, reasons in told]

    @property
    def causes(self) -> list[str]:
        """What else speaks against them."""
        looks = self.looks.items()
        return [
            self._add_model_name(name, why)
            for name, look in looks
            if not unknowing(look)
            for why in causes(look)
        ]

    def _add_model_name(self, name: str, sentence: str) -> str:
        return f"{name}: {sentence}" if len(self.looks) > 1 else sentence


@dataclass(frozen=True, slots=True)
class DryRun:
    """A study as it would be planned. Shares 0-1; money in cents of `currency`."""

    definition: StudyDefinition
    labels: tuple[str, ...]
    surveyed: tuple[tuple[str, str], ...]
    models: Models
    plans: tuple[Plan, ...]
    blind: tuple[BlindScore, ...]
    cells: tuple[Row, ...] = ()
    unfit: tuple[str, ...] = ()
    alike: tuple[Alike, ...] = ()
    quality: tuple[Quality, ...] = ()
    thumbnails: Mapping[str, tuple[Small, ...]] = field(default_factory=dict)
    showing: Showing | None = None
    dropped: Mapping[str, Any] = field(default_factory=dict)
    copies: Mapping[str, Any] = field(default_factory=dict)
    is_looked_at: bool = False
    signs: Mapping[str, bool | None] = field(default_factory=dict)
    predictors: Mapping[str, str] = field(default_factory=dict)
    texts: TextLengths = TextLengths()

    @property
    def signs_words(self) -> str:
        """Which maps have a sign, and what of them is shown; nothing if there are no maps."""
        cut_away = {quality.condition: quality.cut_away for quality in self.quality}
        return signs_sentence(self.signs, self.definition.render.spec().sign, cut_away) if self.signs else ""

    @property
    def unmade(self) -> list[str]:
        """Conditions of whose explanations none could be made and drawn, if any was looked at."""
        known = {quality.condition for quality in self.quality}
        conditions = self.definition.conditions if self.is_looked_at else ()
        return [c.name for c in conditions if c.explainer is not None and c.name not in known]

    @property
    def is_seen_with_answer(self) -> bool:
        """Whether every explanation stands beside the model's answer, and none is there when it is asked; so
        too if no answer is right or wrong."""
        if not get_paradigm(self.definition.paradigm).scores(design_of(self.definition)):
            return True
        trials = (trial for plan in self.plans for trial in plan.trials)
        return all(trial.label is not None for trial in trials if trial.explained)

    @property
    def imbalance(self) -> str | None:
        """Why the study is not balanced although it asks for it, or None."""
        return imbalance(self.blind) if self.definition.stimuli.balance == "prediction_x_correct" else None

    @property
    def is_of_texts(self) -> bool:
        """Whether people read texts instead of looking at pictures."""
        return get_paradigm(self.definition.paradigm).modalities == ("text",)

    @property
    def is_between(self) -> bool:
        """Whether every slot has one condition."""
        return all(plan.condition for plan in self.plans)

    def unmatched(self) -> int | None:
        """How many plans differ from the first of their number in items, order, sides or checks; None if
        the paradigm plans no twins."""
        first: dict[int, object] = {}
        differ, twins = 0, 0
        for plan in self.plans:
            if plan.matched is None:
                continue
            trials = [
                (t.position, t.block, t.phase, t.item, t.check, t.expected, t.choices, t.reservoir)
                for t in plan.trials
            ]
            twins += plan.matched in first
            differ += first.setdefault(plan.matched, trials) != trials
        return differ if twins else None

    @property
    def explained(self) -> str:
        """Which number of the model the conditions explain, in words; those of a control may be others."""
        said: dict[str, list[str]] = {}
        for condition in self.definition.conditions:
            if condition.explainer is not None:
                component = condition.explainer.component()
                # What was made elsewhere does not say what it explains.
                output = "" if is_recorded(component) else own_output(open_explainer(component))
                said.setdefault(self.definition.target_of(condition).words(output), []).append(condition.name)
        if len(said) == 1:
            return next(iter(said))
        return "; ".join(f"{words} ({', '.join(names)})" for words, names in said.items())

    @property
    def rated(self) -> RatingPlan | None:
        """What is rated, if the study is one of ratings."""
        return rated_in(self.plans, self.definition.sittings_max, self.copies)

    def minutes_estimate(self) -> float:
        """From the plan: reading and practice, then the trials."""
        kinds = [trial.kind for trial in self.plans[0].trials]
        return reading_minutes(self.definition) + trials_minutes(self.definition, kinds)

    def trials_rows(self) -> list[tuple[str, int]]:
        kinds = Counter(f"{t.check} check" if t.check else t.phase for t in self.plans[0].trials)
        return [*sorted(kinds.items()), ("together", len(self.plans[0].trials))]

    def exposure_rows(self) -> list[tuple[str, int, int, int, int, int, int]]:
        """Per condition: stimuli, showings in training and in test, how many stimuli are tested, and least
        and most tests of one of these."""
        shown = exposures(self.plans)
        rows = []
        for condition in self.definition.conditions:
            train = {item: n for (item, name), n in shown.train.items() if name == condition.name}
            test = {item: n for (item, name), n in shown.test.items() if name == condition.name}
            totals = len({*train, *test}), sum(train.values()), sum(test.values())
            least, most = min(test.values(), default=0), max(test.values(), default=0)
            rows.append((condition.name, *totals, len(test), least, most))
        return rows

    def pass_rows(self) -> list[tuple[str, float]]:
        quiz = [len(question.choices) for question in self.definition.quiz]
        gates = {QUIZ: quiz} if quiz else None
        guesser = pass_probability(self.plans[0], self.definition.rules, gates=gates)
        attentive = pass_probability(self.plans[0], self.definition.rules, SLIP_SHARE, gates=gates)
        return [("a guesser", guesser.total), ("a person with 5 % slips", attentive.total)]

    @property
    def power(self) -> PlannedPower | None:
        """Of the test that the paradigm plans."""
        from analysis.planning.study_power import power_of

        return power_of(self.definition, self.plans)

    def cost_cents(self) -> int:
        return len(self.plans) * self.definition.reward.amount_cents

    def confused_pairs(self) -> list[tuple[str, str, int, int]]:
        """Class pairs by how often one is taken for the other: a as b, b as a."""
        taken = Counter(self.surveyed)
        pairs = {tuple(sorted(pair)) for pair in taken if pair[0] != pair[1]}
        rows = [(a, b, taken[a, b], taken[b, a]) for a, b in pairs]
        return sorted(rows, key=lambda row: (-row[2] - row[3], row))


def dry_run(
    definition: StudyDefinition,
    folder: Path,
    store: Store,
    progress: Callable[[str, int, int], None],
    pictures: int = 0,
    quality: int = 0,
    told: Callable[[Models], None] = lambda models: None,
    *,
    drawn: bool = False,
) -> DryRun:
    """Predicts the items, plans every slot, scores the blind strategies. Stores only the models and what they
    answered, so that they are asked once. `pictures` is the number of items that may be rendered to see which
    conditions look alike, `quality` that of items whose maps are looked at for what is wrong with them, and
    are kept as thumbnails if `drawn`. `told` gets what is known of the models, before anything that follows
    from it is refused. StudyError at once if the solutions that the study starts from are not frozen.
    """
    check_target_words(definition)
    frozen_source(definition)
    with tempfile.TemporaryDirectory(prefix="legible-check-") as scratch:
        reading = ReadThrough(store, LocalStore(Path(scratch)))
        gathered, models = _gather_material(definition, folder, reading, progress, told)
        pool, answers = gathered.material.pool, ModelAnswers()
        plans = tuple(answers.watched(_plans(gathered, models)))
        alike = look_alikes(definition, gathered, reading, pictures, progress) if pictures else ()
        measured: tuple[Quality, ...] = ()
        small: Mapping[str, tuple[Small, ...]] = {}
        if quality:
            looked = look_at(definition, gathered, reading, quality, progress)
            measured = stimulus_quality(definition, gathered, reading, looked)
            if drawn:
                small = thumbnails(definition, gathered, reading, looked, measured, progress)
        return DryRun(
            definition=definition,
            labels=gathered.first.predictor.labels,
            surveyed=tuple(
                (i.truth, i.predicted)
                for survey in gathered.surveys.values()
                for i in survey.items
                if i.use == "task"
            ),
            models=models,
            plans=plans,
            blind=blind_scores(plans, pool, features_of(gathered, reading)),
            cells=tuple(cell_rows(plans, pool)),
            unfit=tuple(answers.unfit(pool, models.unknowing)),
            alike=alike,
            quality=measured,
            thumbnails=small,
            showing=showing_of(definition, gathered),
            is_looked_at=quality > 0,
            signs=signs_of(definition, gathered, reading),
            dropped=gathered.dropped.as_json() if gathered.dropped else {},
            copies=copies_json(gathered.copies),
            predictors=predictor_keys(gathered),
            texts=text_lengths(definition, gathered, reading),
        )


def _gather_material(
    definition: StudyDefinition,
    folder: Path,
    store: Store,
    progress: Callable[[str, int, int], None],
    told: Callable[[Models], None],
) -> tuple[MaterialSet, Models]:
    asked = ask(definition, folder, store, progress)
    looks = looks_of(definition, asked, store)
    models = Models(
        definition,
        {" with ".join(filter(None, reversed(s))): look for s, look in looks.items()},
        pool_cells=_cells(definition, asked),
        told=_of_datasets(asked, "told"),
        doubted=_of_datasets(asked, "doubted"),
    )
    told(models)
    check_units(definition, asked)
    try:
        gathered = choose(definition, asked, folder, store, progress)
        return with_copies(definition, gathered, store, progress), models
    except (StudyError, StimulusError) as error:
        known = models.unknowing if models.is_asked else []
        raise StudyError(sentence("; ".join([str(error).rstrip("."), *known]))) from error


def _plans(gathered: MaterialSet, models: Models) -> Iterator[Plan]:
    """StudyError says why there are none: with the cause, if the models have one."""
    definition = models.definition
    paradigm, design = get_paradigm(definition.paradigm), design_of(definition)
    try:
        yield from paradigm.plans(design, gathered.material.pool, Streams(definition.seed))
    except PlanError as error:
        known = [*models.unknowing, *models.causes] if models.is_asked else []
        why = [shortage(error, known)]
        if isinstance(error, GroupsTooLarge):
            said = (getattr(opened.dataset, "grouping", "") for opened in gathered.opened.values())
            why += filter(None, dict.fromkeys(said))
        raise StudyError(sentence(f"{definition.slug} cannot be planned: {'; '.join(why)}")) from error


def _of_datasets(asked: ModelPredictions, what: str) -> tuple[str, ...]:
    """What the datasets say of themselves, each once, with its name if the study has several."""
    named = {name: opened.dataset for (name, _), opened in asked.opened.items()}
    said = [(name, line) for name, dataset in named.items() for line in getattr(dataset, what, ())]
    return tuple(f"{name}: {line}" if name else line for name, line in said)


def _cells(definition: StudyDefinition, asked: ModelPredictions) -> tuple[tuple[str, str, int], ...]:
    """The pool that the answers alone allow, before methods are refused or items dropped; none if they allow
    none, which is said when the items are chosen."""
    try:
        pool = get_paradigm(definition.paradigm).material(definition, asked.surveys).pool
    except BadDesign:
        return ()
    tasks = (item for item in pool.items if item.use == "task")
    counts = Counter((i.predicted, "right" if i.truth == i.predicted else "wrong") for i in tasks)
    return tuple((label, kind, count) for (label, kind), count in sorted(counts.items()))


def warnings_of(run: DryRun) -> list[str]:
    """What a careful researcher would correct before people are paid."""
    warnings = [*([run.imbalance] if run.imbalance else []), *run.models.doubted, *run.models.causes]
    if not run.unfit:
        warnings += run.models.unknowing
    guesser = run.pass_rows()[0][1]
    if guesser > GUESSER_PASS_MAX:
        warnings.append(
            f"a guesser passes all rules with probability {guesser:.2f}; above {GUESSER_PASS_MAX:.2f} the "
            "checks say little: add instructed checks, or ask for more of them"
        )
    nearest = NEAREST_TEXT if run.is_of_texts else NEAREST_PICTURE
    warnings += filter(None, (likeness(run.blind, len(run.definition.choices), nearest), opposite(run.blind)))
    if run.imbalance is None and (known := knowledge(run.blind)):
        warnings.append(known)
    warnings += text_warnings(run.definition)
    estimate, declared = run.minutes_estimate(), run.definition.reward.expected_minutes
    if not 0.5 <= declared / estimate <= 2:
        warnings.append(
            f"expected_minutes is {declared:g}, the plan comes to about {estimate:.1f}: people are told and "
            "paid by it, so mend it or say why"
        )
    warnings += [
        f"[platforms.{name}] belongs to no platform{closest(name, PLATFORMS)} and is not read; platforms are "
        f"{', '.join(PLATFORMS)}"
        for name in run.definition.platforms
        if name not in PLATFORMS
    ]
    warnings += [*rated_warnings(run.rated), *few_items_warnings(run)]
    warnings += unkept(run.definition)
    warnings += [str(problem).rstrip(".") for problem in health_problems(run.definition)]
    warnings += question_warnings(run.definition)
    warnings += stimulus_warnings(run)
    warnings += _window_warnings(run.definition)
    if run.definition.reward.amount_cents == 0:
        warnings.append("the reward is 0: say so in the consent text, or set [reward] amount_cents")
    return warnings


def few_items_warnings(run: DryRun) -> list[str]:
    """Test items that are too few, or fixed, for sentences about a method; a study of ratings has a warning
    of its own."""
    if run.rated is not None or all(c.role != "method" for c in run.definition.conditions):
        return []
    tests = (t for plan in run.plans for t in plan.trials if t.phase == "test" and not t.check)
    count = len({trial.item for trial in tests if trial.item is not None})
    is_fixed = getattr(design_of(run.definition), "items", None) == "fixed"
    if not count or (count >= ITEMS_FEW and not is_fixed):
        return []
    what = "texts" if run.is_of_texts else "pictures"
    who = "all people are tested on the same" if is_fixed else "people are tested on"
    few = f", fewer than {ITEMS_FEW}" if count < ITEMS_FEW else ""
    more = ['leave out items = "fixed"'] if is_fixed else []
    more += [f"test more {what}"] if few else []
    return [
        f'{who} {count} {what}{few}: what is found is true of these {what}, so say "on these {what}" in '
        f"every sentence about a method, or {' and '.join(more)}"
    ]


def _window_warnings(definition: StudyDefinition) -> list[str]:
    """A stated window in which people cannot see a whole trial at once."""
    stated, needed = windows_of(definition)[0], needed_of(definition)[0]
    if needed.holds(stated.width_px, stated.height_px):
        return []
    return [
        f"[device] lets in windows of {stated.width_px} x {stated.height_px} px, but a trial of this study "
        f"needs {needed.width_px} x {needed.height_px} px to be seen whole: leave out "
        "min_width_px and min_height_px"
    ]


def stimulus_warnings(run: DryRun) -> list[str]:
    """What a careful researcher would correct about the pictures and explanations that people would see."""
    warnings = []
    for names, count, looked in run.alike:
        warnings.append(
            f"{' and '.join(names)} look alike on {count} of {looked} items: people would be paid to look at "
            "the same picture under several names; keep one of them, or say in the report that they are one"
        )
    if run.showing is not None and run.showing.warning:
        warnings.append(run.showing.warning)
    warnings += run.texts.warnings
    if run.unmade:
        warnings.append(
            f"no explanation of {', '.join(run.unmade)} could be made and drawn, so nothing is said of them: "
            "build_stimuli names the reason"
        )
    warnings += warnings_about(run.quality, seen_with_answer=run.is_seen_with_answer)
    controls = {
        c.name: c.explainer.name
        for c in run.definition.conditions
        if c.role == "control" and c.explainer is not None
    }
    return warnings + control_warnings(run.quality, controls)


def rows_of_blind(scores: Sequence[BlindScore]) -> list[tuple[str, float, float, float]]:
    return [(score.strategy, score.pooled, score.lowest, score.highest) for score in scores]
