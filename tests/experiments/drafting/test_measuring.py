"""What a study asks its metrics: which regions its pictures have and how many labels its models is known when
the draft is built.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.drafting.automatic_metrics import want_metrics
from experiments.drafting.draft import build_draft
from experiments.models import Rendering
from experiments.study_files.load import load_study
from stimuli.models import Measurement
from tests.experiments.protocols import RATING, TWO_MODELS, write
from tests.world import silent

pytestmark = pytest.mark.django_db
ASKED = '[[metrics]]\nname = "localisation"\n[[metrics]]\nname = "logit_randomisation"\n[texts]'


def test_it_names_the_regions_as_each_model_sees_them(tmp_path: Path) -> None:
    """Boxes are marked in pictures that two models see on views of their own."""
    path = write(tmp_path / "r", "ratings", "rating", RATING, sources=TWO_MODELS)
    path.write_text(path.read_text().replace("[texts]", ASKED, 1))
    root = path.parent / "images"
    picture = next(file for file in sorted(root.rglob("*.png")))
    box = f"image,concept,left,top,right,bottom\n{picture.relative_to(root)},eye,0,0,8,8\n"
    (root / "parts.csv").write_text(box)
    definition = load_study(path)
    study = build_draft(definition, path.parent, silent)
    count = Rendering.objects.filter(item__study=study, condition__explainer__isnull=False).count()
    assert want_metrics(definition, study) == 2 * count > 0
    assert want_metrics(definition, study) == 0
    fields = "stimulus__spec__predictor_key", "parameters__regions"
    rows = Measurement.objects.filter(metric="localisation").values_list(*fields)
    by_model = dict(rows)
    assert len(by_model) == len({*by_model.values()}) == 2 and all(by_model.values())
    assert {regions for _, regions in rows} == {*by_model.values()}
    of_labels = Measurement.objects.filter(metric="logit_randomisation")
    assert {*of_labels.values_list("parameters__labels", flat=True)} == {2}
