"""Both stores behave alike: a file is written once, completely or not at all, and listed in order."""

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer

from stimuli.errors import BadSpec, NotRendered, StoreSilent
from stimuli.pipeline import Bench, RenderedStimulus, attempt
from stimuli.spec import Component
from stimuli.store import LocalStore, MemoryStore, Patience, S3Store, Store, open_store, shard_key
from tests.stimuli.material import SALIENCY, specs_for, toy_source

pytestmark = pytest.mark.pure


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An S3 service over real HTTP."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["local", "s3", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "memory":
        return MemoryStore()
    if request.param == "local":
        return open_store(f"file://{tmp_path}/some%20folder")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    address = request.getfixturevalue("endpoint")
    bucket = f"bucket-{uuid.uuid4().hex}"
    boto3.client("s3", endpoint_url=address, region_name="us-east-1").create_bucket(Bucket=bucket)
    return open_store(f"s3://{bucket}/stimuli/?endpoint={address}")


def test_it_gives_back_what_was_put(store: Store) -> None:
    assert store.put("views/ab/ab12.png", b"\x00pixels\xff")
    assert store.get("views/ab/ab12.png") == b"\x00pixels\xff"
    assert store.has("views/ab/ab12.png")


def test_it_ignores_a_second_content(store: Store) -> None:
    assert store.put("maps/a.npz", b"first")
    assert not store.put("maps/a.npz", b"second")
    assert store.get("maps/a.npz") == b"first"


def test_it_names_what_is_not_there(store: Store) -> None:
    assert not store.has("maps/none.npz")
    with pytest.raises(NotRendered, match=r"maps/none.npz.*build_stimuli"):
        store.get("maps/none.npz")


def test_it_lists_keys_by_prefix_in_order(store: Store) -> None:
    for key in ("views/b.png", "views/a.png", "pictures/c.png"):
        store.put(key, b"x")
    assert list(store.keys("views/")) == ["views/a.png", "views/b.png"]
    assert list(store.keys()) == ["pictures/c.png", "views/a.png", "views/b.png"]


@pytest.mark.parametrize("store", ["local", "s3"], indirect=True)
def test_it_lists_and_removes_what_outlives_a_process(store: Store) -> None:
    assert isinstance(store, LocalStore | S3Store)
    before = time.time()
    keys = [f"maps/{number:04}.npz" for number in range(1005)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.put(key, key.encode()), keys))
    files = list(store.files())
    assert [file.key for file in files] == keys and {file.size_bytes for file in files} == {13}
    assert all(before - 2 <= file.at <= time.time() + 2 for file in files)
    store.remove([*keys[:1002], "maps/none.npz"])
    assert list(store.keys()) == keys[1002:]


@pytest.mark.parametrize(
    "key", ["", "/etc/passwd", "../up", "a/../b", "a//b", "A.png", ".hidden", "a\0b", "a/", "x" * 301]
)
def test_it_refuses_keys_that_are_no_file_names(store: Store, key: str) -> None:
    with pytest.raises(BadSpec, match="file key"):
        store.put(key, b"x")
    with pytest.raises(BadSpec, match="file key"):
        store.get(key)


def test_it_keeps_one_whole_content_of_many_writers(store: Store) -> None:
    contents = [bytes([i]) * 50_000 for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda content: store.put("pictures/one.png", content), contents))
    assert any(won) and store.get("pictures/one.png") in contents


def test_it_lets_one_of_many_local_writers_win(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        for turn in range(20):
            won = list(pool.map(lambda i, key=f"maps/{turn}.npz": store.put(key, bytes([i])), range(8)))
            assert sum(won) == 1 and store.get(f"maps/{turn}.npz") == bytes([won.index(True)])


def test_it_shows_no_part_of_a_file_whose_writer_was_killed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from stimuli.store import LocalStore\n"
        "store = LocalStore(Path(sys.argv[1])); print('go', flush=True)\n"
        "for i in range(10**6): store.put(f'maps/{i}.npz', b'x' * 4_000_000)"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    store = LocalStore(tmp_path)
    while not list(store.keys()):
        assert writer.poll() is None
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    keys = list(store.keys())
    assert keys and all(len(store.get(key)) == 4_000_000 for key in keys)
    assert store.put(f"maps/{len(keys)}.npz", b"next")


def test_it_copies_where_links_are_impossible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    store = LocalStore(tmp_path)
    assert store.put("views/a.png", b"first") and not store.put("views/a.png", b"second")
    assert list(store.keys()) == ["views/a.png"] and store.get("views/a.png") == b"first"


def test_it_says_soon_that_a_bucket_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"s3://bucket/stimuli?endpoint=http://127.0.0.1:{silent.getsockname()[1]}"
        store = open_store(url, Patience(connect_s=0.2, reply_s=0.2, tries=2))
        with pytest.raises(StoreSilent, match=r"bucket does not answer.*timeout"):
            store.get("views/a.png")
        # Both tries wait in its queue, and no third one.
        asked = [silent.accept()[0] for _ in range(2)]
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()
    for connection in asked:
        connection.close()


class Unconditional:
    """A client of a service that does not know If-None-Match."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    class exceptions:
        ClientError = ClientError

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, IfNoneMatch: str | None = None) -> None:
        if IfNoneMatch:
            raise ClientError({"Error": {"Code": "NotImplemented"}}, "PutObject")
        self.files[Key] = Body

    def head_object(self, *, Bucket: str, Key: str) -> None:
        if Key not in self.files:
            raise ClientError({"Error": {"Code": "404"}}, "HeadObject")


def test_it_writes_once_without_conditions_too() -> None:
    client = Unconditional()
    store = S3Store("bucket", "", client)
    assert store.put("views/a.png", b"first") and not store.put("views/a.png", b"second")
    assert client.files == {"views/a.png": b"first"}


def test_it_passes_other_refusals_on() -> None:
    class Closed(Unconditional):
        def put_object(self, **_: Any) -> None:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "PutObject")

    with pytest.raises(ClientError, match="AccessDenied"):
        S3Store("bucket", "", Closed()).put("views/a.png", b"x")


@pytest.mark.parametrize("url", ["", "ftp://host/files", "http://host/files"])
def test_it_knows_paths_files_and_buckets_only(url: str) -> None:
    with pytest.raises(BadSpec, match="storage address"):
        open_store(url)


def test_it_takes_a_plain_path(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert isinstance(store, LocalStore) and store.root == tmp_path


def test_it_spreads_files_over_folders() -> None:
    assert shard_key("maps", "abcdef", "npz") == "maps/ab/abcdef.npz"


def test_a_stimulus_takes_a_bucket_as_many_requests_as_documented(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket="counted")
    store = open_store(f"s3://counted/?endpoint={endpoint}")
    assert isinstance(store, S3Store)
    source, items = toy_source(tmp_path, store)
    specs = specs_for(source, items, SALIENCY, Component("gradient_x_input"))
    asked: list[str] = []

    def note(model: Any, **_: Any) -> None:
        asked.append(model.name)

    store.client.meta.events.register("before-call.s3", note)
    # A shelf of its own: a predictor that an earlier test restored in this process would save its GET.
    made = list(attempt(specs, Bench(store, warm=OrderedDict())))
    assert len(made) == 12 and all(isinstance(each, RenderedStimulus) for each in made)
    drawn, count = 12, 6
    assert Counter(asked) == {
        "PutObject": 3 * drawn + count,
        "HeadObject": 2 * drawn,
        "GetObject": drawn + count + 1,
    }
    documented = " ".join((Path(__file__).parents[3] / "docs" / "running.md").read_text().split())
    assert "three PUTs, two HEADs and a GET for each explanation, a PUT and a GET for each item" in documented
