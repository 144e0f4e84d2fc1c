"""What a picture's address answers: bytes of its own, of a length that says nothing about the picture."""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import numpy as np
import pytest
from django.test import Client
from moto.server import ThreadedMotoServer
from PIL import Image

from experiments.api.trial_scene import media_files
from experiments.errors import StudyError
from experiments.models import Session, Study
from experiments.opening.opening import open_study
from experiments.opening.picture_lengths import SPREAD_BYTES
from stimuli.models import Stimulus
from stimuli.store.png_padding import LEAST_BYTES
from tests import worlds
from tests.world import Person, draft_study, opened_study, silent, write_study

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db

COLUMNS = {
    "image": "image_file",
    "tile": "image_tile_file",
    "explanation": "explanation_file",
    "tile_explanation": "explanation_tile_file",
}


@pytest.fixture
def small(store_folder: Path, db: None, tmp_path: Path) -> Study:
    """The small study over files of its own, which a test may spoil."""
    return opened_study(write_study(tmp_path / "small"))


@pytest.fixture
def three(small: Study) -> list[Session]:
    """One session under each condition, at the first trial."""
    people = [Person(f"p{number}") for number in range(3)]
    for person in people:
        person.arrive()
    return [person.session() for person in people]


@pytest.fixture
def draft(store_folder: Path, tmp_path: Path) -> Study:
    return draft_study(write_study(tmp_path / "draft"))


def answers(sessions: list[Session]) -> Iterator[tuple[str, str, str, Any]]:
    """Reference, part, stored file and answer of every picture that the sessions may see."""
    for session in sessions:
        for reference, picture in media_files(session):
            yield reference, picture.part, picture.file, Client().get(f"/m/{reference}")


def stored(settings: Settings, file: str) -> Path:
    return Path(settings.STORAGE_URL) / file


def decoded(content: bytes) -> Any:
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image)


def longest(settings: Settings, files: list[str]) -> int:
    return max(stored(settings, file).stat().st_size for file in files if file)


def test_opening_finds_the_longest_picture_of_each_part(small: Study, settings: Settings) -> None:
    """Sizes as the file system tells them. All conditions count alike: else the length would tell one."""
    for part, column in COLUMNS.items():
        files = list(Stimulus.objects.filter(renderings__item__study=small).values_list(column, flat=True))
        assert small.picture_bytes[part] == longest(settings, files), part
    assert small.picture_bytes["practice"] == longest(settings, [row["file"] for row in small.practice])
    assert len(small.picture_bytes) == 5


def test_no_two_addresses_share_their_bytes_and_the_pixels_are_the_stored_ones(
    three: list[Session], settings: Settings
) -> None:
    served, pictures = set(), set()
    for reference, _, file, reply in answers(three):
        assert reply.status_code == 200
        served.add(hashlib.sha256(reply.content).digest())
        pictures.add(file)
        assert np.array_equal(decoded(reply.content), decoded(stored(settings, file).read_bytes()))
        assert Client().get(f"/m/{reference}").content == reply.content
    assert len(served) == sum(len(dict(media_files(session))) for session in three) > 1.5 * len(pictures)


def test_the_length_says_nothing_about_the_picture(
    small: Study, three: list[Session], settings: Settings
) -> None:
    """It stays when every stored picture is replaced by another, shorter one: so it follows from the address
    alone. Before the padding the lengths differed."""
    before, unpadded, files = dict[str, int](), dict[str, set[int]](), set[str]()
    for reference, part, file, reply in answers(three):
        before[reference] = len(reply.content)
        files.add(file)
        unpadded.setdefault(part, set()).add(stored(settings, file).stat().st_size)
        least = small.picture_bytes[part] + LEAST_BYTES
        assert least <= before[reference] < least + SPREAD_BYTES
    assert all(len(lengths) > 3 for lengths in unpadded.values())
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2)).save(buffer, "PNG")
    for file in files:
        worlds.spoil(stored(settings, file), buffer.getvalue())
    after = {reference: len(reply.content) for reference, *_, reply in answers(three)}
    assert after == before and len(set(before.values())) > 100


def test_every_way_of_asking_gives_the_same_whole_file(three: list[Session]) -> None:
    [reference, *_] = dict(media_files(three[0]))
    whole = Client().get(f"/m/{reference}")
    asked = {"Range": "bytes=0-9", "Accept-Encoding": "gzip, br", "If-None-Match": "*", "If-Range": '"x"'}
    for name, value in asked.items():
        reply = Client().get(f"/m/{reference}", headers={name: value})
        assert (reply.status_code, reply.content) == (200, whole.content), name
        assert dict(reply.headers) == dict(whole.headers)
    head = Client().head(f"/m/{reference}")
    assert (head.status_code, head.content, dict(head.headers)) == (200, b"", dict(whole.headers))
    assert whole["Content-Length"] == str(len(whole.content))
    assert not {"ETag", "Last-Modified", "Content-Encoding", "Accept-Ranges"} & set(whole.headers)
    # A proxy that makes pictures smaller would undo the padding.
    assert "no-transform" in whole["Cache-Control"] and "immutable" in whole["Cache-Control"]


def test_a_picture_that_was_stored_anew_and_longer_is_served_whole(
    small: Study, three: list[Session], settings: Settings
) -> None:
    reference, picture = next(iter(media_files(three[0])))
    noise = np.random.default_rng(1).integers(0, 256, (160, 160, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, "PNG")
    worlds.spoil(stored(settings, picture.file), buffer.getvalue())
    content = Client().get(f"/m/{reference}").content
    assert len(content) > small.picture_bytes[picture.part] + LEAST_BYTES + SPREAD_BYTES
    assert np.array_equal(decoded(content), noise)


# Pictures that are missing or damaged


def jpeg() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32)).save(buffer, "JPEG")
    return buffer.getvalue()


def spoil(path: Path, how: str) -> None:
    if how == "missing":
        path.unlink()
    else:
        worlds.spoil(path, {"cut": path.read_bytes()[:-5], "empty": b"", "jpeg": jpeg()}[how])


def test_spoilt_pictures_are_not_served_and_the_log_names_them(
    three: list[Session], settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    pictures = dict(media_files(three[0]))
    for how, reference in zip(("cut", "empty", "jpeg", "missing"), pictures, strict=False):
        file = pictures[reference].file
        spoil(stored(settings, file), how)
        caplog.clear()
        with caplog.at_level(logging.ERROR, "experiments.api.media"):
            reply = Client().get(f"/m/{reference}")
        assert reply.status_code == 404 and file.encode() not in reply.content, how
        [record] = [each for each in caplog.records if each.name == "experiments.api.media"]
        assert file in record.getMessage()


def test_no_study_opens_with_a_spoilt_picture(draft: Study, settings: Settings) -> None:
    explained = Stimulus.objects.filter(renderings__item__study=draft).exclude(explanation_file="")
    row = explained.order_by("-pk").values_list(*COLUMNS.values())[0]
    for file in [*row, draft.practice[-1]["file"]]:
        whole = stored(settings, file).read_bytes()
        for how in ("cut", "jpeg", "missing"):
            spoil(stored(settings, file), how)
            with pytest.raises(StudyError, match=rf"'small' cannot be opened: .*{file}.*STORAGE_URL"):
                open_study(draft, silent)
            worlds.spoil(stored(settings, file), whole)
        draft.refresh_from_db()
        assert (draft.state, draft.picture_bytes, draft.slots.count()) == ("draft", {}, 0)
    assert open_study(draft, silent).state == "open"


# Studies from before, and other stores


def test_a_study_that_was_opened_before_is_measured_when_it_is_opened_again(
    small: Study, three: list[Session]
) -> None:
    rooms = small.picture_bytes
    Study.objects.filter(pk=small.pk).update(picture_bytes={})
    first = [reply.content for *_, reply in answers(three)]
    assert len(set(first)) == len(first), "bytes differ also before it is measured"
    small.refresh_from_db()
    plans = small.plan_digest
    assert open_study(small, silent).picture_bytes == rooms
    small.refresh_from_db()
    assert (small.picture_bytes, small.plan_digest) == (rooms, plans)
    lengths = {len(reply.content) for *_, reply in answers(three)}
    assert min(lengths) > min(rooms.values())


@pytest.mark.long(stays="test_every_way_of_asking_gives_the_same_whole_file")
def test_a_bucket_gives_the_bytes_that_the_disk_gives(
    small: Study, three: list[Session], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {reference: reply.content for reference, *_, reply in answers(three[:1])}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        address = "http://{}:{}".format(*server.get_host_and_port())
        client = boto3.client("s3", endpoint_url=address, region_name="us-east-1")
        client.create_bucket(Bucket="pictures")
        root = Path(settings.STORAGE_URL)
        for path in root.rglob("*.png"):
            client.put_object(Bucket="pictures", Key=f"all/{path.relative_to(root)}", Body=path.read_bytes())
        settings.STORAGE_URL = f"s3://pictures/all?endpoint={address}"
        assert {reference: reply.content for reference, *_, reply in answers(three[:1])} == before
        rooms = small.picture_bytes
        small.picture_bytes = {}
        assert open_study(small, silent).picture_bytes == rooms
    finally:
        server.stop()


def test_another_slug_of_the_same_pictures_gives_other_bytes(small: Study, tmp_path: Path) -> None:
    """Two studies share stored pictures; a table of one is of no use in the other."""
    other = opened_study(write_study(tmp_path / "again", slug="again"))
    people = [Person("ada"), Person("ada", slug=other.slug)]
    for person in people:
        person.arrive()
    first, second = (
        {file: reply.content for _, _, file, reply in answers([person.session()])} for person in people
    )
    shared = set(first) & set(second)
    assert len(shared) > 8 and not {first[file] for file in shared} & set(second.values())
