"""The documentation names everything that exists, and nothing else."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
import yaml
from annotated_types import Ge, Gt, Le, Lt
from django.core.management import get_commands, load_command_class
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from analysis.columns import TABLES
from analysis.exports import EXPORTERS
from analysis.reports import REPORTERS
from crowd.platforms import PLATFORMS, settings_of_all
from experiments.definition import gate_page_tables, study, text_tables
from experiments.definition import preregistration_table as declared_plan
from experiments.gates import GATES
from experiments.kinds import KINDS
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.paradigms.screening import RULES
from experiments.simulation import PEOPLE
from experiments.wording.sentence_tables import LANGUAGES
from setup.prove import PROOFS
from stimuli.datasets import DATASET_PARAMS, DATASETS
from stimuli.explainers import EXPLAINERS
from stimuli.metrics import METRICS, SET_METRICS, scored_by
from stimuli.predictors import PREDICTOR_PARAMS, PREDICTORS
from stimuli.registry import declared_parameters
from stimuli.spec import Component

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "docs").glob("*.md")}
PAGES |= {name: (ROOT / name).read_text() for name in ("README.md", "CHANGELOG.md")}
ROOMS = ("stimuli", "experiments", "analysis", "crowd")
COMMANDS = {name: app for name, app in get_commands().items() if app.split(".")[0] in ROOMS}
TABLES_OF_STUDY: dict[str, type[BaseModel]] = {
    "The file itself": study.StudyDefinition,
    "[stimuli]": study.Stimuli,
    "[[conditions]]": study.ConditionTable,
    "[[answers]]": study.AnswerTable,
    "[explained]": study.ExplainedTable,
    "[render]": study.Render,
    "[texts]": text_tables.TextFiles,
    "[interface]": text_tables.InterfaceFiles,
    "quiz.toml": gate_page_tables.QuizQuestion,
    "[checks]": study.Checks,
    "[[questions]]": gate_page_tables.QuestionTable,
    "[practice]": gate_page_tables.PracticeTable,
    "[training]": gate_page_tables.TrainingTable,
    "[plates]": gate_page_tables.PlatesTable,
    "[device]": study.DeviceTable,
    "[presentation]": study.PresentationTable,
    "[policy]": study.Policy,
    "[ethics]": study.Ethics,
    "[reward]": study.Reward,
    "[preregistration]": declared_plan.PreregistrationTable,
    "[preregistration.smallest_effect]": declared_plan.SmallestEffect,
    "[recruitment]": study.Recruitment,
}
FILLED_FROM_TEXTS = {"quiz"}


def sections(text: str) -> dict[str, str]:
    """The text below each heading, up to the next one."""
    parts = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return dict(zip((name.strip() for name in parts[1::2]), parts[2::2], strict=True))


def rows(text: str) -> dict[str, list[str]]:
    """The rows of a section's table by their first cell, which is code."""
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("| `")]
    return {row[0].strip().strip("`"): [cell.strip() for cell in row[1:]] for row in cells}


STUDY_PAGE = sections(PAGES["docs/study-toml.md"]) | sections(PAGES["docs/methods.md"])


def documented_models() -> Iterator[tuple[str, type]]:
    yield from TABLES_OF_STUDY.items()
    for name in PARADIGMS:
        yield f'[design] of "{name}"', get_paradigm(name).Design
    for name in DATASETS:
        yield f'Dataset "{name}"', DATASET_PARAMS.load(name)
    for name in PREDICTORS:
        yield f'Predictor "{name}"', PREDICTOR_PARAMS.load(name)
    for name in EXPLAINERS:
        yield f'Explainer "{name}"', EXPLAINERS.load(name)
    for name in METRICS | SET_METRICS:
        yield f'Metric "{name}"', (METRICS | SET_METRICS).load(name)


MODELS = dict(documented_models())
FIELDS = {heading: declared_parameters(model) for heading, model in MODELS.items()}


def toml_of(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "the defaults below"
    return "none" if value is None else f"`{toml_of(value)}`"


def parts_of(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation) if get_origin(annotation) is not Literal else ():
        yield from parts_of(part)


def demands_of(field: FieldInfo) -> Iterator[str]:
    """The numbers that bound a field, and the words that it takes, as the page writes them."""
    parts = list(parts_of(field.annotation))
    for part in parts:
        if get_origin(part) is Literal:
            yield from (json.dumps(word) for word in get_args(part))
    for part in [*parts, *field.metadata]:
        for bound in (part, *getattr(part, "metadata", ())):
            for kind in (Ge, Gt, Le, Lt):
                if isinstance(bound, kind):
                    value = float(getattr(bound, kind.__name__.lower()))
                    yield str(int(value)) if value.is_integer() else str(value)


def test_it_keeps_the_readme_short() -> None:
    assert len(PAGES["README.md"].splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES)
def test_it_links_to_files_and_headings_that_exist(page: str) -> None:
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        if target.startswith(("https://", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        headings = sections(path.read_text()) if path.suffix == ".md" and path.is_file() else {}
        if not path.exists() or (anchor and anchor not in map(anchor_of, headings)):
            dead.append(target)
    assert not dead, dead


def anchor_of(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize(
    ("kind", "names", "page"),
    [
        ("paradigm", PARADIGMS, "docs/adding.md"),
        ("paradigm", PARADIGMS, "docs/study-toml.md"),
        ("dataset", DATASETS, "docs/methods.md"),
        ("predictor", PREDICTORS, "docs/methods.md"),
        ("explainer", EXPLAINERS, "docs/methods.md"),
        ("metric", METRICS | SET_METRICS, "docs/methods.md"),
        ("screening rule", RULES, "docs/study-toml.md"),
        ("reporter", REPORTERS, "docs/adding.md"),
        ("exporter", EXPORTERS, "docs/data.md"),
        ("exporter", EXPORTERS, "docs/adding.md"),
        ("platform", PLATFORMS, "docs/running.md"),
        ("platform", PLATFORMS, "docs/adding.md"),
        ("language", LANGUAGES, "docs/adding.md"),
        ("trial kind", KINDS, "docs/adding.md"),
        ("gate", GATES, "docs/adding.md"),
        ("simulated person", PEOPLE, "docs/science.md"),
        ("table", TABLES, "docs/data.md"),
        ("command", COMMANDS, "docs/running.md"),
    ],
)
def test_it_documents_every_registered_name(kind: str, names: dict[str, Any], page: str) -> None:
    missing = [name for name in names if not re.search(rf"[`\"]{re.escape(name)}\b", PAGES[page])]
    assert not missing, f"{page} does not name the {kind} {missing}"


def test_it_documents_the_further_texts_of_every_paradigm() -> None:
    page = sections(PAGES["docs/study-toml.md"])["Further texts"]
    told = {
        name: [text for text in get_paradigm(name).texts if f"`{text}`" not in page] for name in PARADIGMS
    }
    assert told == dict.fromkeys(PARADIGMS, [])
    assert all(f"`{name}`" in page for name in PARADIGMS if get_paradigm(name).texts)


def test_it_says_of_every_metric_what_it_scores() -> None:
    rows = dict(re.findall(r"^\| the (method|drawn) ?(?:field)? \| (.+) \|$", PAGES["docs/methods.md"], re.M))
    said = {name: what for what, row in rows.items() for name in re.findall(r"`(\w+)`", row)}
    assert said == {name: scored_by(Component(name)) for name in METRICS | SET_METRICS}


@pytest.mark.parametrize("name", COMMANDS)
def test_it_gives_every_command_and_option_a_help(name: str) -> None:
    command = load_command_class(COMMANDS[name], name)
    assert command.help
    parser = command.create_parser("manage.py", name)
    section = sections(PAGES["docs/running.md"])["Commands"]
    actions = [action for action in parser._actions if action.dest not in COMMON]
    line = next(
        (line for line in section.splitlines() if line.startswith((f"| `{name}`", f"| `{name} "))), ""
    )
    assert line, f"docs/running.md does not name {name}"
    options = [next((o for o in action.option_strings if o[:2] == "--"), "") for action in actions]
    missing = [option for option in options if f"`{option}" not in line]
    assert not missing, f"docs/running.md does not name {missing} of {name}"


COMMON = {
    *("help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color"),
    "skip_checks",
}


def test_it_documents_every_setting_and_no_other() -> None:
    tree = ast.parse((ROOT / "crowd" / "settings.py").read_text())
    read = {
        node.args[0].value: node.args[1] if len(node.args) > 1 else None
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"env_text", "env_flag", "env_number", "env_amounts"}
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }
    read |= dict.fromkeys(settings_of_all())
    documented = rows(sections(PAGES["docs/running.md"])["Settings"])
    assert set(documented) == set(read)
    for name, default in read.items():
        if isinstance(default, ast.Constant) and isinstance(default.value, str | int) and default.value != "":
            assert f"`{default.value}`".lower() in documented[name][0].lower(), name


def test_it_documents_every_proof_and_no_other() -> None:
    table = PAGES["docs/running.md"].split("| proof |")[1].split("\n\n")[0]
    assert list(rows(table)) == [proof.name for proof in PROOFS]


def test_it_documents_what_other_programs_read_from_the_environment() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    variables = set(re.findall(r"\$\{(\w+)", json.dumps(compose)))
    assert not [name for name in variables if f"`{name}`" not in PAGES["docs/running.md"]]


@pytest.mark.parametrize("page", sorted(set(PAGES) - {"README.md", "CHANGELOG.md", "docs/index.md"}))
def test_a_page_says_first_for_whom_it_is_and_how_long_it_takes(page: str) -> None:
    title, empty, first, *_ = PAGES[page].splitlines()
    assert title.startswith("# ") and not empty
    assert re.fullmatch(r"\*For .+\. .*(minutes|hour|look things up).*\*", first)


def is_accepted(field: FieldInfo, example: str, meaning: str) -> bool:
    """Whether the field takes the example, or the example is the heading of the table that the key is."""
    if example.startswith("[") and f"`{example}`" in meaning:
        return True
    annotation: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    try:
        TypeAdapter(annotation).validate_python(tomllib.loads(f"key = {example}")["key"])
    except (tomllib.TOMLDecodeError, ValidationError):
        return False
    return True


def test_an_example_that_a_key_does_not_take_is_seen() -> None:
    alpha = study.Render.model_fields["alpha"]
    taken = {
        example: is_accepted(alpha, example, "") for example in ("0.5", "2.0", '"half"', "0,5", "[render]")
    }
    assert [example for example, is_taken in taken.items() if is_taken] == ["0.5"]


@pytest.mark.parametrize("heading", MODELS)
def test_it_documents_every_key_of_a_study_and_no_other(heading: str) -> None:
    model, documented = MODELS[heading], rows(STUDY_PAGE[heading])
    filled = FILLED_FROM_TEXTS if model is study.StudyDefinition else set()
    assert set(documented) == set(FIELDS[heading]) - filled


@pytest.mark.parametrize("heading", MODELS)
def test_it_documents_defaults_and_limits_as_they_are(heading: str) -> None:
    for name, (value, default, *examples, meaning) in rows(STUDY_PAGE[heading]).items():
        field = FIELDS[heading][name]
        for example in examples:
            assert is_accepted(field, example.strip("`").replace(r"\|", "|"), meaning), f"{heading} {name}"
        assert default == default_of(field), f"{heading} {name}"
        words = re.split(r"[\s,]+", value)
        missing = [demand for demand in demands_of(field) if demand not in words]
        assert not missing, f"{heading} {name}: {missing} is not in {value!r}"
        assert meaning


def test_it_documents_the_limits_of_every_screening_rule() -> None:
    documented = rows(STUDY_PAGE["[screening]"])
    assert set(documented) == set(RULES)
    for name, rule in RULES.items():
        value, timing, _ = documented[name]
        assert timing == rule.timing
        assert name == "incomplete" or f"{rule.low:g} to {rule.high:.17g}" in value


def test_it_writes_no_words_of_marketing() -> None:
    banned = r"\b(seamless|powerful|cutting.edge|state.of.the.art|easily|simply|robust|blazing|leverag\w*)\b"
    matches = {page: re.findall(banned, text, re.IGNORECASE) for page, text in PAGES.items()}
    assert not any(matches.values()), matches


def test_it_has_a_citation_that_reads() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None and str(citation["version"]) == version[1]
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    assert f"## {version[1]}" in PAGES["CHANGELOG.md"]


WHERE = re.findall(r"^\| \d+ \| (.+?) \| `(.+?)` \| `(.+?)` \|$", PAGES["docs/where.md"], re.MULTILINE)


@pytest.mark.parametrize(("question", "path", "symbol"), WHERE)
def test_it_answers_where_something_is_decided(question: str, path: str, symbol: str) -> None:
    """The symbol is defined in that file: a class, a function, a member of a class, or a name at the top."""
    assert symbol in defined_in(ROOT / path), question


def test_it_answers_all_twenty_questions() -> None:
    assert len(WHERE) == 20


def defined_in(path: Path) -> set[str]:
    if path.suffix == ".ts":
        return set(re.findall(r"^export (?:const|function|class) (\w+)", path.read_text(), re.MULTILINE))
    names = set()
    for node in ast.parse(path.read_text()).body:
        names |= {name for name in named(node) if name}
        for member in getattr(node, "body", []) if isinstance(node, ast.ClassDef) else []:
            names |= {f"{node.name}.{name}" for name in named(member) if name}  # type: ignore[attr-defined]
    return names


def named(node: ast.stmt) -> list[str]:
    """What a statement defines."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [getattr(node, "name", ""), *(getattr(target, "id", "") for target in targets)]
