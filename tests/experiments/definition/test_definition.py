"""study.toml: every mistake in one run, each with its key, the value, the limit and the remedy."""

from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
from django.core.management import CommandError, call_command

from experiments.drafting.draft import build_draft
from experiments.errors import FrozenStudy, InvalidStudy, Problem, StudyError
from experiments.models import Item, Slot, Study
from experiments.study_files.load import find_study, load_study, material_folder
from stimuli.models import Stimulus
from stimuli.training import small_network
from tests import world


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return world.write_study(tmp_path / "small")


def change(path: Path, *pairs: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    path.write_text(text)


def mistakes(path: Path) -> dict[str, Problem]:
    """By key; every one of them says all four things."""
    with pytest.raises(InvalidStudy) as caught:
        load_study(path)
    problems = caught.value.problems
    for problem in problems:
        assert problem.key and problem.limit and problem.remedy
        assert str(problem) in str(caught.value)
    assert str(caught.value).startswith(f"{path} has {len(problems)} mistake")
    by_key = {problem.key: problem for problem in problems}
    assert len(by_key) == len(problems)
    return by_key


# Reading


def test_it_reads_the_small_study(path: Path) -> None:
    study = load_study(path)
    assert (study.slug, study.seed, len(study.conditions), study.checks.repeat) == ("small", 11, 3, 1)
    assert study.choices == (("left", "Left"), ("right", "Right"))
    assert study.texts["consent"].startswith("# consent") and study.quiz[0].answer == "machine"


def test_it_points_at_the_line_that_is_not_toml(path: Path) -> None:
    change(path, ('title = "Left or right"', 'title = "Left or right'))
    assert str(mistakes(path)["title"]) == (
        'line 3: title = "Left or right: is not TOML: unterminated string. Mend that line.'
    )


@pytest.mark.parametrize("content", [b"\xff\xfe", b"slug = '\xe4'", b"\x00"])
def test_it_reads_text_only(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert set(mistakes(path)) == {"file"}


def test_it_says_when_there_is_no_such_study(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no such file"):
        find_study(str(tmp_path / "study.toml"))
    with pytest.raises(StudyError, match="Did you mean 'wolf-or-husky'"):
        find_study("wolf-or-huskie")


def test_it_names_every_mistake_in_one_run(path: Path) -> None:
    change(
        path,
        ("seed = 11", "seed = -1"),
        ("blocks = 2", "blocks = 0\nblcks = 3"),
        ('classes = ["left", "right"]', 'classes = ["left", "left"]'),
        ('name = "saliency"\nrole = "method"', 'name = "control"\nrole = "method"'),
        ('explainer = { name = "saliency" }', 'explainer = { name = "salience" }'),
        ('consent = "consent.md"', 'consent = "../consent.md"'),
        ('debrief = "debrief.md"', 'debrief = "gone.md"'),
        ("repeat = 1", "repeat = -1"),
        ("instructed_share_min = 1.0", "instructed_share = 1.0"),
        ("total_minutes = [0, 600]", 'total_minutes = "long"'),
        ("expected_minutes = 4", ""),
        ('kind = "choice"', 'kind = "choices"'),
        ('contact = "lab@example.org"', 'contact = ""'),
    )
    problems = mistakes(path)
    expected = {
        "seed", "design.blocks", "design.blcks", "stimuli", "conditions.name", "conditions.2.explainer",
        "texts.consent", "texts.debrief", "checks.repeat", "screening.instructed_share",
        "reward.expected_minutes", "questions.0.kind", "ethics.contact",
    }  # fmt: skip
    assert expected <= set(problems)
    assert {key for key in problems if key not in expected} <= {
        key for key in problems if key.startswith("screening.total_minutes")
    }
    assert problems["seed"].value == "-1" and "greater than or equal to 0" in problems["seed"].limit
    assert problems["reward.expected_minutes"].limit == "is missing"


def test_it_knows_the_explainers_and_their_parameters(path: Path) -> None:
    change(path, ('explainer = { name = "saliency" }', 'explainer = { name = "occlusion", patch = 3 }'))
    problem = mistakes(path)["conditions.2.explainer"]
    assert "patch" in problem.limit and "patch_share" in problem.limit
    change(path, ('{ name = "occlusion", patch = 3 }', '{ name = "grad_camera" }'))
    problem = mistakes(path)["conditions.2.explainer"]
    assert "grad_camera" in str(problem) and "grad_cam" in problem.limit


def test_it_knows_the_rules_of_screening(path: Path) -> None:
    change(path, ("instructed_share_min = 1.0", "instructed_share_min = 1.5\nlucky_min = 1"))
    problems = mistakes(path)
    assert "instructed_share_min" in problems["screening.lucky_min"].limit
    change(path, ("lucky_min = 1\n", ""))
    assert mistakes(path)["screening.instructed_share_min"].value == "1.5"
    change(path, ("instructed_share_min = 1.5", ""), ("total_minutes = [0, 600]", "total_minutes = [9, 3]"))
    assert set(mistakes(path)) == {"screening.total_minutes"}


@pytest.mark.parametrize("name", ["../outside.md", "/etc/hostname", "a/../../outside.md", "link.md"])
def test_it_takes_no_text_from_elsewhere(path: Path, name: str) -> None:
    (path.parent.parent / "outside.md").write_text("secret")
    (path.parent / "link.md").symlink_to(path.parent.parent / "outside.md")
    change(path, ('"consent.md"', f'"{name}"'))
    problem = mistakes(path)["texts.consent"]
    assert problem.limit == "must lie beside study.toml" and "secret" not in str(problem)


def test_it_wants_one_baseline(path: Path) -> None:
    change(path, ('role = "baseline"', 'role = "control"\nexplainer = { name = "random" }'))
    assert "exactly 1" in mistakes(path)["conditions.role"].limit


def test_it_wants_answers_that_can_be_right(path: Path) -> None:
    quiz = path.parent / "quiz.toml"
    quiz.write_text(quiz.read_text().replace('answer = "machine"', 'answer = "nobody"'))
    [problem] = mistakes(path).values()
    assert problem.key.startswith("quiz.0") and "nobody" in str(problem)
    quiz.write_text("[[questions]\n")
    assert "is not TOML" in mistakes(path)["texts.quiz"].limit


def test_it_refuses_paradigms_without_pages(path: Path) -> None:
    change(path, ('paradigm = "meta_predictor"', 'paradigm = "meta_predictr"'))
    assert "meta_predictor" in mistakes(path)["paradigm"].limit


# The digest


def test_it_covers_all_that_a_person_would_meet(path: Path) -> None:
    digests = {load_study(path).digest}
    assert load_study(path).digest in digests
    for name in ("consent.md", "instructions.md", "debrief.md", "explained.md", "plain.md", "quiz.toml"):
        file = path.parent / name
        file.write_text(file.read_text().replace("machine", "model") + "\n# more\n")
        digests.add(load_study(path).digest)
    for old, new in (("slots = 3", "slots = 4"), ("repeat = 1", "repeat = 2"), ("cents = 100", "cents = 90")):
        change(path, (old, new))
        digests.add(load_study(path).digest)
    # A comment at the end of quiz.toml is no question: "model" for "machine" is what changed there.
    assert len(digests) == 10


def test_it_does_not_depend_on_spelling(path: Path) -> None:
    before = load_study(path).digest
    change(path, ("seed = 11", "seed = 0xB  # eleven"), ("min_view_ms = 0", "'min_view_ms' = 0"))
    path.write_text("\n" + path.read_text())
    assert load_study(path).digest == before


# From the definition to a draft


Breaking = Callable[[Path], None]


def one_picture(path: Path) -> None:
    for file in sorted((path.parent / "images" / "left").iterdir())[1:]:
        file.unlink()


def corrupt_header(path: Path) -> None:
    (path.parent / "images" / "left" / "left-03.png").write_bytes(b"no picture at all")


def cut_short(path: Path) -> None:
    file = path.parent / "images" / "right" / "left-03.png"
    file.write_bytes(file.read_bytes()[:200])


def no_folder(path: Path) -> None:
    change(path, ('path = "images"', 'path = "pictures"'))


def unknown_class(path: Path) -> None:
    change(path, ('classes = ["left", "right"]', 'classes = ["left", "top"]'))


def no_weights(path: Path) -> None:
    change(path, ('{ name = "toy", input_px = 32 }', MODEL.format(width=4)))


def other_weights(path: Path) -> None:
    safetensors.torch.save_model(small_network(width=4, classes=2), str(path.parent / "w.safetensors"))
    change(path, ('{ name = "toy", input_px = 32 }', MODEL.format(width=6)))


def spoiled_weights(path: Path) -> None:
    (path.parent / "w.safetensors").write_bytes(b"\x80\x04\x95pickle?")
    change(path, ('{ name = "toy", input_px = 32 }', MODEL.format(width=4)))


def pickled_weights(path: Path) -> None:
    change(path, ('{ name = "toy", input_px = 32 }', MODEL.format(width=4).replace(".safetensors", ".pth")))


def unknown_dataset(path: Path) -> None:
    change(path, ('name = "folder"', 'name = "folders"'))


def unknown_parameter(path: Path) -> None:
    change(path, ("input_px = 32 }", "input_pixels = 32 }"))


MODEL = (
    '{{ name = "torch_image", weights = "w.safetensors", builder = "stimuli.training:small_network", '
    'builder_params = {{ width = {width}, classes = 2 }}, input_px = 32, labels = ["left", "right"] }}'
)
BROKEN: list[tuple[Breaking, str]] = [
    (one_picture, 'class "left" has 1 picture'),
    (corrupt_header, "left-03.png"),
    (cut_short, "left-03.png"),
    (no_folder, "there is no folder"),
    (unknown_class, "'top'"),
    (no_weights, "w.safetensors"),
    (other_weights, "does not fit the network"),
    (spoiled_weights, "is no safetensors file"),
    (pickled_weights, "only .pt2 and .safetensors"),
    (unknown_dataset, "folders"),
    (unknown_parameter, "input_pixels"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("spoil", "said"), BROKEN)
def test_it_says_what_cannot_be_built_and_stores_nothing(
    path: Path, store_folder: Path, spoil: Breaking, said: str
) -> None:
    spoil(path)
    with pytest.raises(CommandError) as caught:
        call_command("build_stimuli", str(path))
    assert said in str(caught.value) and "Traceback" not in str(caught.value)
    assert not Study.objects.exists() and not Item.objects.exists() and not Stimulus.objects.exists()


@pytest.mark.django_db
def test_it_lets_an_open_study_never_change(path: Path, store_folder: Path) -> None:
    study = world.opened_study(path)
    slots = list(Slot.objects.order_by("pk").values())
    assert build_draft(load_study(path), path.parent, world.silent).pk == study.pk
    consent = path.parent / "consent.md"
    consent.write_text(consent.read_text() + "One word more.\n")
    with pytest.raises(FrozenStudy, match="choose a new slug, or extend"):
        build_draft(load_study(path), path.parent, world.silent)
    with pytest.raises(CommandError, match=study.digest[:12]):
        call_command("study_open", str(path))
    study.refresh_from_db()
    assert study.state == "open" and list(Slot.objects.order_by("pk").values()) == slots


def drafted(path: Path) -> Study:
    """Without its pictures, at which nothing looks here."""
    return build_draft(load_study(path), material_folder(path), world.silent)


@pytest.mark.django_db
def test_it_replaces_a_draft(path: Path, store_folder: Path) -> None:
    first = drafted(path)
    change(path, ("seed = 11", "seed = 12"))
    second = drafted(path)
    assert Study.objects.count() == 1 and (first.digest, second.seed) != (second.digest, 11)
    assert Item.objects.filter(study=second).count() == 56 == Item.objects.count()
