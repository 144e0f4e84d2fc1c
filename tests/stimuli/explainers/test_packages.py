"""What installed packages offer: found by metadata, told apart by version, refused by name if missing.

The processes of a deployment are in tests/journeys/studies/test_packages.py.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stimuli.datasets import open_dataset
from stimuli.errors import BadSpec, OtherPackage, UnknownName
from stimuli.explainers import EXPLAINERS, check_explainer, kind_of, packages_of, version_of
from stimuli.metrics import METRICS, check_metric
from stimuli.metrics.metric_key import describe_metric
from stimuli.pipeline import Bench, RenderedStimulus, StimulusFailure, attempt
from stimuli.predictors import restore
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component, StimulusSpec
from stimuli.spec_derivation import prepare, spec_for, survey
from stimuli.store import LocalStore, Store
from tests.packages import install_toy

pytestmark = pytest.mark.pure

RINGS = Component("toy_rings", {"rings": 4})
STORED = Component("legible-toy-methods:toy_rings", {"middle": "bright", "rings": 4})


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("packages")
    return {version: install_toy(folder, version) for version in ("1.0", "1.1")}


@pytest.fixture
def toy(installed: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Version 1.0 on the path."""
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(installed["1.0"]))
        yield patch
    sys.modules.pop("legible_toy_methods", None)


def newer(toy: pytest.MonkeyPatch, installed: dict[str, Path]) -> None:
    toy.syspath_prepend(str(installed["1.1"]))


def gone(toy: pytest.MonkeyPatch) -> None:
    toy.setattr(sys, "path", [place for place in sys.path if "installed-1" not in place])


def spec(explainer: Component) -> StimulusSpec:
    version, packages = version_of(explainer), packages_of(explainer)
    return StimulusSpec("a" * 64, "b" * 64, "", 0, explainer, version, 0, RenderSpec(), packages=packages)


def test_it_stores_the_full_name_and_every_parameter(toy: pytest.MonkeyPatch) -> None:
    assert check_explainer(RINGS) == STORED == check_explainer(STORED)
    assert kind_of(RINGS) == "image"
    assert packages_of(STORED) == ("legible-toy-methods==1.0",)
    assert "toy_rings" in EXPLAINERS.names and "toy_centre" in METRICS.names


def test_it_checks_parameters_as_of_the_core(toy: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadSpec, match="'toy_rings', parameter 'rings' is 99, but must lie between 1 and 20"):
        check_explainer(Component("toy_rings", {"rings": 99}))
    with pytest.raises(BadSpec, match="no parameter 'ring' .did you mean 'rings'"):
        check_explainer(Component("toy_rings", {"ring": 1}))


def test_it_has_other_keys_for_another_version(toy: pytest.MonkeyPatch, installed: dict[str, Path]) -> None:
    first, number = spec(STORED), describe_metric(Component("toy_centre"))
    newer(toy, installed)
    second, other = spec(STORED), describe_metric(Component("toy_centre"))
    assert first.explainer == second.explainer and first.version == second.version
    assert first.attribution_key != second.attribution_key and first.picture_key != second.picture_key
    assert StimulusSpec.from_json(first.as_json()) == first
    assert (number.package, other.package) == ("legible-toy-methods==1.0", "legible-toy-methods==1.1")
    assert number.key != other.key and number.name == "legible-toy-methods:toy_centre"


def test_it_names_the_package_inside_a_control(toy: pytest.MonkeyPatch) -> None:
    whole = check_explainer(Component("random", {"of": "toy_rings"}))
    assert whole.params["of"] == "legible-toy-methods:toy_rings"
    assert packages_of(whole) == ("legible-toy-methods==1.0",)
    assert packages_of(check_explainer(Component("random", {"of": "saliency"}))) == ()


def test_it_refuses_a_name_that_another_package_claims(toy: pytest.MonkeyPatch, tmp_path: Path) -> None:
    info = tmp_path / "other_methods-2.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: other-methods\nVersion: 2\n")
    info.joinpath("entry_points.txt").write_text("[legible.explainers]\ntoy_rings = a:b\nsaliency = a:b\n")
    toy.syspath_prepend(str(tmp_path))
    with pytest.raises(UnknownName, match="'toy_rings' is offered by legible-toy-methods and other-methods"):
        check_explainer(RINGS)
    assert check_explainer(STORED) == STORED
    for claimed in (Component("saliency"), Component("random", {"of": "saliency"})):
        with pytest.raises(
            UnknownName, match="'saliency' is offered by legible and other-methods: write 'leg"
        ):
            check_explainer(claimed)
    # What is stored as the core's is still the core's.
    assert spec(Component("saliency")).packages == () and version_of(Component("saliency")) >= 1
    assert check_explainer(Component("legible:saliency")) == Component("saliency", {})


def test_it_says_that_a_package_is_missing() -> None:
    with pytest.raises(
        UnknownName, match="no installed package 'legible-toy-methods' offers one: install it"
    ):
        check_explainer(STORED)
    with pytest.raises(UnknownName, match="there is no metric 'toy_centre'"):
        check_metric(Component("toy_centre"))


def prepared(folder: Path, store: Store) -> list[StimulusSpec]:
    """Two pictures of the toy data set for the toy predictor, under the toy explainer."""
    dataset, predictor = Component("toy_stripes", {"count": 2}), Component("toy_halves", {"input_px": 32})
    source = prepare(dataset, predictor, folder, store)
    assert source.packages == ("legible-toy-methods==1.0",)
    items = survey(source, store)
    assert [item.predicted == item.truth for item in items] == [True] * 4
    return [spec_for(item, source, RINGS, RenderSpec(), 0) for item in items[:2]]


def test_it_makes_stimuli_of_a_package_alone(toy: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    specs = prepared(tmp_path, store)
    centre = {made.picture_key: [check_metric(Component("toy_centre"))] for made in specs}
    made = list(attempt(specs, Bench(store), centre))
    assert all(isinstance(result, RenderedStimulus) for result in made)
    values = [result.numbers[0].measured for result in made if isinstance(result, RenderedStimulus)]
    assert all(value is not None and 0 < value.value < 1 for value in values)


def test_it_refuses_a_predictor_of_another_version(
    toy: pytest.MonkeyPatch, installed: dict[str, Path], tmp_path: Path
) -> None:
    store = LocalStore(tmp_path / "store")
    [archive] = [store.get(key) for key in (prepared(tmp_path, store), store.keys("predictors"))[1]]
    restore(archive)
    newer(toy, installed)
    with pytest.raises(
        OtherPackage, match="the predictor was made with legible-toy-methods==1.0, but .* is 1.1"
    ):
        restore(archive)


@pytest.mark.parametrize("change", ["newer", "gone"])
def test_it_renders_nothing_with_another_version(
    toy: pytest.MonkeyPatch, installed: dict[str, Path], tmp_path: Path, change: str
) -> None:
    """The predictor is the core's here, so only the method is missing."""
    store = LocalStore(tmp_path / "store")
    dataset = Component("synthetic", {"scenario": "biased", "count": 8, "model_count": 16, "size_px": 64})
    source = prepare(dataset, Component("toy", {"input_px": 32}), tmp_path, store)
    made = spec_for(survey(source, store)[0], source, RINGS, RenderSpec(), 0)
    if change == "newer":
        newer(toy, installed)
        reason = "but legible-toy-methods is 1.1 here: install legible-toy-methods==1.0 here, or build"
    else:
        gone(toy)
        reason = "and no legible-toy-methods is installed here: install legible-toy-methods==1.0 here"
    [failed] = attempt([made], Bench(store))
    assert isinstance(failed, StimulusFailure)
    assert (
        "explainer 'legible-toy-methods:toy_rings' was made with legible-toy-methods==1.0, " in failed.error
    )
    assert reason in failed.error


def test_it_imports_a_package_only_when_a_study_names_it(installed: dict[str, Path]) -> None:
    program = (
        "import sys\n"
        "from stimuli.explainers import EXPLAINERS, check_explainer\n"
        "from stimuli.spec import Component\n"
        "check_explainer(Component('saliency'))\n"
        "assert 'toy_rings' in EXPLAINERS and EXPLAINERS.origin('toy_rings')\n"
        "assert 'legible_toy_methods' not in sys.modules\n"
        "check_explainer(Component('toy_rings'))\n"
        "assert 'legible_toy_methods' in sys.modules\n"
    )
    env = {"PYTHONPATH": str(installed["1.0"]), "PATH": ""}
    subprocess.run([sys.executable, "-c", program], check=True, env=env, cwd=Path(__file__).parents[3])


def test_it_opens_no_data_set_by_a_module_path(tmp_path: Path) -> None:
    for name in ("legible_toy_methods:open_stripes", "os:system", "stimuli.datasets.folder:open_folder"):
        with pytest.raises(UnknownName, match="there is no dataset"):
            open_dataset(Component(name), tmp_path)
