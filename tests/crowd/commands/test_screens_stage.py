"""The throwaway copy that pages are pictured from: each language begins with it as it was made."""

from __future__ import annotations

import pytest

from crowd.models import Posting
from crowd.rehearsal.screens.study_copy import Stage
from experiments.models import Slot, Study

pytestmark = pytest.mark.django_db


def test_every_language_begins_anew(built: int, db: None) -> None:
    study = Study.objects.get(pk=built)
    english = Stage(study, "en")
    english.close(True)
    english.lead_back()
    assert Posting.objects.filter(study=study, state=Posting.State.CLOSED).count() == 1
    german = Stage(study, "de")
    assert study.definition["language"] == "de"
    assert (german.local.pk, german.coded.pk) == (english.local.pk, english.coded.pk)
    for posting in Posting.objects.filter(study=study):
        assert (posting.state, posting.options) == (Posting.State.OPEN, {})
    german.free(next(iter(german.arms)))
    assert Slot.objects.filter(study=study, kept=False).count() == 1
