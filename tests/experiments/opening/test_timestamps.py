"""Time stamps of plans, by an authority of the test's own; openssl is the witness."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from experiments.definition.preregistration_table import PreregistrationTable
from experiments.errors import StudyError
from experiments.opening.timestamps import (
    StampFiles,
    stamp_files,
    stamp_request,
    stamped_files,
    stamped_text,
    verify_stamp,
)
from tests.run.authority import Authority, authority

pytestmark = pytest.mark.pure
PLAN: dict[str, Any] = {
    "study": {"slug": "small", "paradigm": "meta_predictor"},
    "hypotheses": ["Saliency maps help."],
    "digests": {"definition": "d" * 64, "plans": "p" * 64, "predictors": {}, "pictures": None},
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("tsa") / "ours")


def files(asked: Authority, *, plan: dict[str, Any] = PLAN, root: bytes = b"") -> StampFiles:
    return StampFiles("plan.tsr", asked.reply(stamp_request(plan)), "root.pem", root or asked.root)


def refused(given: StampFiles, plan: dict[str, Any] = PLAN) -> str:
    with pytest.raises(StudyError) as error:
        verify_stamp(given, plan)
    return str(error.value)


def openssl(folder: Path, *words: str) -> str:
    return subprocess.run(["openssl", *words], cwd=folder, capture_output=True, text=True).stdout


def test_a_stamp_tells_who_stamped_which_digest_and_when(asked: Authority, tmp_path: Path) -> None:
    """openssl verifies the files of the package, and knows the same digest."""
    stamp = verify_stamp(files(asked), PLAN)
    assert (stamp["authority"], stamp["vouched_by"]) == ("CN=Test Authority", "CN=Test Root")
    assert timedelta(0) <= datetime.now(UTC) - datetime.fromisoformat(stamp["at"]) < timedelta(minutes=10)
    for end, data in stamped_files(stamp, PLAN).items():
        (tmp_path / f"plan{end}").write_bytes(data)
    (tmp_path / "root.pem").write_bytes(asked.root)
    words = [
        "openssl",
        "ts",
        "-verify",
        "-data",
        "plan-stamped.json",
        "-in",
        "plan.tsr",
        "-CAfile",
        "root.pem",
    ]
    assert "Verification: OK" in subprocess.run(words, cwd=tmp_path, capture_output=True, text=True).stdout
    digest = openssl(tmp_path, "dgst", "-sha256", "-r", "plan-stamped.json")
    assert digest.split()[0] == stamp["digest"]


def test_pictures_are_no_part_of_what_is_stamped(asked: Authority) -> None:
    """They are rendered later, and everything else counts."""
    given = files(asked)
    opened = {**PLAN, "digests": {**PLAN["digests"], "pictures": {"baseline": "b" * 64}}}
    assert verify_stamp(given, opened) == verify_stamp(given, PLAN)
    for other in (
        {**PLAN, "hypotheses": ["Saliency maps hurt."]},
        {**PLAN, "digests": {**PLAN["digests"], "plans": "q" * 64}},
    ):
        assert "stamps another plan" in refused(given, other)


def test_a_changed_response_is_told(asked: Authority) -> None:
    given = files(asked)
    whole = given.response
    # The last bytes are the signature; the seconds of the time lie in what is signed.
    year = whole.rindex(datetime.now(UTC).strftime("%Y%m").encode())
    for place in (len(whole) - 3, year + 13):
        changed = bytearray(whole)
        changed[place] ^= 1
        told = refused(StampFiles("plan.tsr", bytes(changed), "root.pem", asked.root))
        assert "was changed after it was signed" in told
    assert "is no time stamp response" in refused(StampFiles("plan.tsr", b"<html>", "root.pem", asked.root))


def test_certificates_that_do_not_vouch_are_told(asked: Authority, tmp_path: Path) -> None:
    """A foreign root of the same name, a certificate that is no root, none at all, and one for mail."""
    foreign = authority(tmp_path / "foreign")
    assert "none in root.pem vouches for" in refused(files(asked, root=foreign.root))
    signer = (asked.folder / "signer.pem").read_bytes()
    assert "no self-signed certificate" in refused(files(asked, root=signer))
    assert "holds no certificates" in refused(files(asked, root=b"nothing"))
    assert verify_stamp(files(asked, root=signer + asked.root), PLAN)["vouched_by"] == "CN=Test Root"


def test_a_response_without_its_certificate_is_verified_by_the_studys_file(asked: Authority) -> None:
    """An authority may leave its certificate out although it was asked for it."""
    (asked.folder / "plan.txt").write_text(stamped_text(PLAN))
    openssl(asked.folder, "ts", "-query", "-data", "plan.txt", "-sha256", "-no_nonce", "-out", "bare.tsq")
    response = asked.reply((asked.folder / "bare.tsq").read_bytes())
    signer = (asked.folder / "signer.pem").read_bytes()
    assert len(response) < len(asked.reply(stamp_request(PLAN)))
    stamp = verify_stamp(StampFiles("plan.tsr", response, "all.pem", signer + asked.root), PLAN)
    assert stamp["authority"] == "CN=Test Authority"
    told = refused(StampFiles("plan.tsr", response, "root.pem", asked.root))
    assert "Neither plan.tsr nor root.pem holds the certificate that signed" in told


def test_files_that_are_named_are_read_from_the_folder(tmp_path: Path) -> None:
    declared = PreregistrationTable(timestamp="plan.tsr", timestamp_certificates="root.pem")
    assert stamp_files(tmp_path, PreregistrationTable()) is None and declared.is_silent
    with pytest.raises(StudyError, match=r"plan\.tsr, which cannot be read: No such file"):
        stamp_files(tmp_path, declared)
    for name in ("plan.tsr", "root.pem"):
        (tmp_path / name).write_bytes(name.encode())
    assert stamp_files(tmp_path, declared) == StampFiles("plan.tsr", b"plan.tsr", "root.pem", b"root.pem")
    with pytest.raises(ValueError, match="go together"):
        PreregistrationTable(timestamp="plan.tsr")
    with pytest.raises(ValueError, match="pattern"):
        PreregistrationTable(timestamp="../plan.tsr", timestamp_certificates="root.pem")
