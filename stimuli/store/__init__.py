"""Content-addressed files, write-once: on a local disk or in an S3 bucket.

A key such as `views/ab/ab12….png` names a content that never changes; so a second writer with the same key
has the same content, and is ignored. A reader sees a whole file or none, even if the writer is killed.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from stimuli.errors import BadSpec, NotRendered, StoreSilent

_PART = re.compile(r"[a-z0-9][a-z0-9._-]*")
_INCOMING = ".incoming"
_KEYS_PER_REQUEST = 1000


class Store(Protocol):
    """Files by key. Keys are lower-case path parts joined by `/`; contents are bytes."""

    def put(self, key: str, data: bytes) -> bool:
        """Store `data` whole under `key`; True if this call stored it, False if the key was taken already."""
        ...

    def get(self, key: str) -> bytes:
        """Return the content of `key`; NotRendered if there is none."""
        ...

    def has(self, key: str) -> bool:
        """Say whether `key` has a content."""
        ...

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Yield the stored keys that start with `prefix`, in alphabetical order."""
        ...


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as a listing names it; `at` in seconds since 1970."""

    key: str
    at: float
    size_bytes: int


class ListableStore(Store, Protocol):
    """A store that outlives its process, and so has to be cleaned."""

    def files(self) -> Iterator[ListedFile]:
        """Yield every file, those that killed writers left as well, in alphabetical order."""
        ...

    def remove(self, keys: Sequence[str]) -> None:
        """Remove these files of a listing; a key that is gone already is no mistake."""
        ...


def shard_key(room: str, digest: str, suffix: str) -> str:
    """`room/ab/abcd….suffix`: 256 folders per room keep each folder short."""
    return f"{room}/{digest[:2]}/{digest}.{suffix}"


def check_key(key: str) -> str:
    """Return `key` if it can be a file name everywhere; BadSpec for empty, absolute or climbing keys."""
    if len(key) > 300 or not all(_PART.fullmatch(part) for part in key.split("/")):
        raise BadSpec(
            f"the file key {key[:80]!r} is refused: use lower-case letters, digits, '.', '_', '-' and '/', "
            "parts that start with a letter or digit, at most 300 characters"
        )
    return key


class LocalStore:
    """Files below one folder.

    A content is written to a private name, flushed to the disk, and then linked to its key, which fails if
    the key exists: safe with concurrent writers and with writers killed at any moment, which leave only a
    private file.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, key: str, data: bytes) -> bool:
        final = self.root / check_key(key)
        if final.exists():
            return False
        final.parent.mkdir(parents=True, exist_ok=True)
        incoming = self.root / _INCOMING
        incoming.mkdir(exist_ok=True)
        private = incoming / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with private.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            return _settle(private, final)
        finally:
            private.unlink(missing_ok=True)

    def get(self, key: str) -> bytes:
        try:
            return (self.root / check_key(key)).read_bytes()
        except FileNotFoundError:
            raise NotRendered(_missing(key)) from None

    def has(self, key: str) -> bool:
        return (self.root / check_key(key)).is_file()

    def keys(self, prefix: str = "") -> Iterator[str]:
        stored = (path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file())
        yield from sorted(key for key in stored if key.startswith(prefix) and not key.startswith(_INCOMING))

    def files(self) -> Iterator[ListedFile]:
        for path in sorted(self.root.rglob("*")):
            with suppress(FileNotFoundError):  # A writer has just settled its private file.
                if path.is_file():
                    known = path.stat()
                    yield ListedFile(path.relative_to(self.root).as_posix(), known.st_mtime, known.st_size)

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key.removeprefix(f"{_INCOMING}/"))
            (self.root / key).unlink(missing_ok=True)


class MemoryStore:
    """Contents of one process, which end with it."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    def put(self, key: str, data: bytes) -> bool:
        return self._contents.setdefault(check_key(key), data) is data

    def get(self, key: str) -> bytes:
        if not self.has(key):
            raise NotRendered(_missing(key))
        return self._contents[key]

    def has(self, key: str) -> bool:
        return check_key(key) in self._contents

    def keys(self, prefix: str = "") -> Iterator[str]:
        yield from sorted(key for key in self._contents if key.startswith(prefix))


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a bucket is waited for: to connect, for each part of a reply, and how often it is asked."""

    connect_s: float
    reply_s: float
    tries: int


LONG = Patience(connect_s=10, reply_s=60, tries=5)
"""A worker writes whole predictors and has nothing else to do."""
SHORT = Patience(connect_s=2, reply_s=3, tries=2)
"""A person waits. With the pause between the tries a silent bucket costs at most 7 s."""


class S3Store:
    """Files in a bucket, below `prefix`. `client` is a boto3 S3 client.

    Writing is conditional on the key being free (If-None-Match). If a service lacks the condition, it is
    first asked whether the key is there: two writers may then both write, and write the same content.
    """

    def __init__(self, bucket: str, prefix: str, client: Any) -> None:
        self.bucket = bucket
        self.prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self.client = client

    def put(self, key: str, data: bytes) -> bool:
        where = {"Bucket": self.bucket, "Key": self.prefix + check_key(key)}
        try:
            self.client.put_object(**where, Body=data, IfNoneMatch="*")
        except self.client.exceptions.ClientError as error:
            if _code(error) in {"PreconditionFailed", "412"}:
                return False
            if _code(error) not in {"NotImplemented", "501", "ConditionalRequestConflict", "409"}:
                raise
            if self.has(key):
                return False
            self.client.put_object(**where, Body=data)
        return True

    def get(self, key: str) -> bytes:
        """Return the content of `key`; NotRendered if there is none, StoreSilent if no answer comes."""
        from botocore.exceptions import BotoCoreError

        try:
            reply = self.client.get_object(Bucket=self.bucket, Key=self.prefix + check_key(key))
            content: bytes = reply["Body"].read()
        except BotoCoreError as error:
            raise StoreSilent(f"the bucket {self.bucket} does not answer: {error}") from error
        except self.client.exceptions.ClientError as error:
            if _code(error) in {"NoSuchKey", "404"}:
                raise NotRendered(_missing(key)) from None
            raise
        return content

    def has(self, key: str) -> bool:
        from botocore.exceptions import BotoCoreError

        try:
            self.client.head_object(Bucket=self.bucket, Key=self.prefix + check_key(key))
        except BotoCoreError as error:
            raise StoreSilent(f"the bucket {self.bucket} does not answer: {error}") from error
        except self.client.exceptions.ClientError as error:
            if _code(error) in {"NoSuchKey", "NotFound", "404"}:
                return False
            raise
        return True

    def keys(self, prefix: str = "") -> Iterator[str]:
        return (file.key for file in self._listed(prefix))

    def files(self) -> Iterator[ListedFile]:
        return self._listed()

    def _listed(self, prefix: str = "") -> Iterator[ListedFile]:
        pages = self.client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self.bucket, Prefix=self.prefix + prefix):
            for entry in page.get("Contents", []):
                key = str(entry["Key"]).removeprefix(self.prefix)
                yield ListedFile(key, entry["LastModified"].timestamp(), int(entry["Size"]))

    def remove(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _KEYS_PER_REQUEST):
            part = [{"Key": self.prefix + check_key(key)} for key in keys[start : start + _KEYS_PER_REQUEST]]
            reply = self.client.delete_objects(Bucket=self.bucket, Delete={"Objects": part, "Quiet": True})
            if refused := reply.get("Errors"):
                raise BadSpec(
                    f"the bucket {self.bucket} keeps {len(refused)} of {len(part)} files: "
                    f"{refused[0].get('Code', '')} {refused[0].get('Message', '')}"
                )


def open_store(url: str, patience: Patience = LONG) -> ListableStore:
    """Open the store at `url`: a path, `file:///path`, or `s3://bucket/prefix?endpoint=https://…&region=…`.

    Credentials come from boto3's usual places. BadSpec names any other scheme.
    """
    parts = urlsplit(url)
    if parts.scheme == "s3":
        import boto3  # slow to import, and not needed for files on disk
        from botocore.config import Config

        options = {name: values[0] for name, values in parse_qs(parts.query).items()}
        client = boto3.client(
            "s3",
            endpoint_url=options.get("endpoint"),
            region_name=options.get("region", "us-east-1"),
            config=Config(
                connect_timeout=patience.connect_s,
                read_timeout=patience.reply_s,
                retries={"mode": "standard", "total_max_attempts": patience.tries},
            ),
        )
        return S3Store(parts.netloc, parts.path, client)
    if parts.scheme == "file":
        return LocalStore(Path(unquote(parts.path)))
    if "://" in url or not url:
        raise BadSpec(
            f"the storage address {url!r} is not known: use a path, file:///path or s3://bucket/prefix"
        )
    return LocalStore(Path(url))


def _settle(private: Path, final: Path) -> bool:
    try:
        os.link(private, final)
    except FileExistsError:
        return False
    except OSError:
        # Some file systems have no hard links. Replacing is as atomic, and the content is the same.
        os.replace(private, final)
    return True


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _missing(key: str) -> str:
    return f"no file {key} is stored: render the study's stimuli again (build_stimuli)"
