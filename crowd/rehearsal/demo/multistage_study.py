"""A study of several stages in one demo: which files belong together, and how one stage ends before the next
begins."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crowd.people.study_closure import close_whole
from experiments.definition.study import StudyDefinition
from experiments.drafting.plates import vision_of
from experiments.errors import StudyError
from experiments.management.commands.freeze import print_frozen
from experiments.models import Session, Solution, Study
from experiments.sessions.verdicts import tries_of
from experiments.stages.solution_freeze import LABELS, freeze
from experiments.study_files.load import STUDIES_DIR
from experiments.terminal import Terminal

ENDED_BY = "demo"
WHY_ENDED = "all of its lists were filled by simulated people"
VISIONS = ("ordinary", "reduced", "unclear", "skipped")
ROUTED = ("kind", "ordinary", "reduced", "unclear", "no answers", "went on", "left, paid")


@dataclass(frozen=True, slots=True)
class StageFile:
    """What a study file says of its place: its slug, and the study whose solutions it starts from, if any."""

    path: Path
    slug: str
    source: str


def stages_of(path: Path, folders: Sequence[Path]) -> tuple[Path, ...]:
    """The file with the stages before and after it, first to last; mostly it is alone.

    A stage names the one before it (`[design] solutions_from`). Files are sought beside the given one, in the
    folders beside that one's folder, in `folders`, and among the shipped studies; the nearest place counts.
    StudyError if a stage is missing, or if several start from one.
    """
    given = _read_stage(path)
    if given is None:
        return (path,)
    places = [list(place) for place in _places(path, folders)]
    stages = [given]
    while stages[0].source:
        stages.insert(0, _before(stages[0], places))
        if stages[0].path in [stage.path for stage in stages[1:]]:
            raise StudyError(f"{path}: its stages start from each other. Mend [design] solutions_from.")
    while (after := _after(stages[-1], places)) is not None:
        stages.append(after)
    return tuple(stage.path for stage in stages)


def _before(stage: StageFile, places: Sequence[Sequence[StageFile]]) -> StageFile:
    for place in places:
        for named in place:
            if named.slug == stage.source:
                return named
    raise StudyError(
        f"{stage.slug!r} starts from the solutions of {stage.source!r}, and no study file with that slug was "
        f"found. Put the file of that stage beside {stage.path}, or into a folder beside its own."
    )


def _after(stage: StageFile, places: Sequence[Sequence[StageFile]]) -> StageFile | None:
    for place in places:
        following = [named for named in place if named.source == stage.slug]
        if len(following) > 1:
            names = ", ".join(str(named.path) for named in following)
            raise StudyError(
                f"Several studies start from the solutions of {stage.slug!r} ({names}): name the one that is "
                "to follow with --study."
            )
        if following:
            return following[0]
    return None


def _places(path: Path, folders: Sequence[Path]) -> Iterator[Iterator[StageFile]]:
    """Files of studies by the places where they lie, the nearest first, each file once."""
    met: set[Path] = set()
    beside = path.resolve().parent
    here, near = sorted(beside.glob("*.toml")), sorted(beside.parent.glob("*/study.toml"))
    for files in (here, near, *(sorted(f.glob("*/study.toml")) for f in (*folders, STUDIES_DIR))):
        new = [file for file in files if file.resolve() not in met]
        met |= {file.resolve() for file in new}
        yield (named for file in new if (named := _read_stage(file)) is not None)


def _read_stage(path: Path) -> StageFile | None:
    """None for what is no study file; its mistakes are told to who asks for it."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None
    design = raw.get("design")
    source = str(design.get("solutions_from", "")) if isinstance(design, dict) else ""
    if "slug" not in raw:
        return None
    return StageFile(path.resolve(), str(raw["slug"]), "" if source == LABELS else source)


def check_sources(definitions: Sequence[StudyDefinition]) -> None:
    """Refuses stages that do not fit together before anybody comes: conditions are sources of solutions, so
    all stages have the same ones. Raises StudyError."""
    for before, after in zip(definitions, definitions[1:], strict=False):
        has, needs = (
            ", ".join(sorted(f"{c.name} ({c.role})" for c in each.conditions)) for each in (before, after)
        )
        if has != needs:
            raise StudyError(
                f"{after.slug!r} starts from the solutions of {before.slug!r}, whose sources are {has}; its "
                f"own conditions are {needs}. Give both the same conditions."
            )


def end_stage(study: Study, terminal: Terminal) -> None:
    """Closes a stage whose lists are filled, and freezes its solutions."""
    terminal.line("")
    for sentence in close_whole(study, ENDED_BY, WHY_ENDED):
        terminal.line(sentence)
    study.refresh_from_db()
    digest = freeze(study, progress=terminal.progress)
    print_frozen(study, terminal)
    count = Solution.objects.filter(study=study).count()
    terminal.line(f"{study.slug} is frozen: {count} solutions, digest {digest}.")


def print_routing(study: Study, terminal: Terminal) -> None:
    """What the colour check says of simulated people, who are never told, and how many of them it led on;
    nothing for a study without one."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for session in Session.objects.filter(study=study, origin="simulated").select_related("study"):
        vision = vision_of(study, tries_of(session))
        if vision is not None:
            went = "left, paid" if session.slot_id is None else "went on"
            counted[session.simulated_kind].update((vision, went))
    rows = [(kind, *(counted[kind][name] for name in (*VISIONS, *ROUTED[-2:]))) for kind in sorted(counted)]
    if rows:
        terminal.table("Colour vision of simulated people by the plates, and where it led", ROUTED, rows)
