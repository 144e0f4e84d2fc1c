"""Time stamps (RFC 3161) of plans: what is sent to an authority, and what its response proves. Nothing here
uses a network."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from experiments.definition.preregistration_table import PreregistrationTable
from experiments.errors import StudyError
from experiments.paradigms import get_paradigm
from stimuli.spec import canonical_json

SHA256_OID = "2.16.840.1.101.3.4.2.1"


@dataclass(frozen=True, slots=True)
class StampFiles:
    """A response and the certificates (PEM) that vouch for it, with the names of their files."""

    name: str
    response: bytes
    certificates_name: str
    certificates: bytes


def stamped_text(document: Mapping[str, Any]) -> str:
    """What is stamped of a plan: all that is known before it opens, as canonical JSON. The digests of
    pictures are left out, and that of the plans if it depends on pictures; the stamp is no part of it."""
    digests = {**document["digests"], "pictures": None}
    if get_paradigm(document["study"]["paradigm"]).merges_coinciding:
        digests["plans"] = None
    return canonical_json({**document, "digests": digests})


def stamp_request(document: Mapping[str, Any]) -> bytes:
    """The request over the plan's SHA-256, DER. It asks for the authority's certificates and has no nonce, so
    that the same plan gives the same request."""
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

    builder = TimestampRequestBuilder().data(stamped_text(document).encode())
    return (
        builder.hash_algorithm(HashAlgorithm.SHA256)
        .nonce(nonce=False)
        .cert_request(cert_request=True)
        .build()
        .as_bytes()
    )


def stamp_files(folder: Path, declared: PreregistrationTable | None) -> StampFiles | None:
    """The files that the table names; None if it names none. Raises StudyError if one cannot be read."""
    if declared is None or not declared.timestamp:
        return None
    names = (declared.timestamp, declared.timestamp_certificates)
    try:
        response, certificates = ((folder / name).read_bytes() for name in names)
    except OSError as error:
        raise StudyError(
            f"[preregistration] names {error.filename}, which cannot be read: {error.strerror}."
        ) from error
    return StampFiles(names[0], response, names[1], certificates)


def verify_stamp(files: StampFiles, document: Mapping[str, Any]) -> dict[str, str]:
    """What the response proves, as it is stored: `authority`, `at`, `digest`, `vouched_by` and the `response`
    itself in base64. Verified are the signature, that the signer's certificate is one for time stamps and was
    valid then, its chain to a self-signed certificate of the file, and that the plan is the one stamped; not
    whether a certificate was revoked. Raises StudyError.
    """
    from cryptography import x509
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    digest = sha256(stamped_text(document).encode()).hexdigest()
    try:
        given = x509.load_pem_x509_certificates(files.certificates)
    except ValueError as error:
        raise StudyError(f"{files.certificates_name} holds no certificates in PEM: {error}.") from error
    roots = [c for c in given if c.issuer == c.subject]
    if not roots:
        raise StudyError(
            f"{files.certificates_name} holds no self-signed certificate: add the authority's root."
        )
    try:
        response = decode_timestamp_response(files.response)
        if response.status != 0:
            said = "; ".join(response.status_string) or f"status {response.status}"
            raise StudyError(f"{files.name}: the authority granted no time stamp ({said}). Ask again.")
        stamped = response.tst_info.message_imprint
        # The verifier takes a signer off the response that it reads, so this one is read apart.
        signer = next(iter(decode_timestamp_response(files.response).signed_data.signer_infos))
        held = [x509.load_der_x509_certificate(data) for data in response.signed_data.certificates]
        leaf = next(
            (
                c
                for c in (*held, *given)
                if (c.issuer, c.serial_number) == (signer.issuer, signer.serial_number)
            ),
            None,
        )
        if leaf is None:
            raise StudyError(
                f"Neither {files.name} nor {files.certificates_name} holds the certificate that signed: add "
                "the authority's certificate for time stamps to the second."
            )
        below = [c for c in given if c not in roots and c != leaf]
        VerifierBuilder(tsa_certificate=leaf, roots=roots, intermediates=below).build().verify(
            response, stamped.message
        )
    except VerificationError as error:
        raise StudyError(_refusal_text(files, str(error))) from error
    except ValueError as error:
        raise StudyError(
            f"{files.name} is no time stamp response (RFC 3161, DER), or was changed: {error}."
        ) from error
    if stamped.hash_algorithm.dotted_string != SHA256_OID or stamped.message.hex() != digest:
        raise StudyError(
            f"{files.name} stamps another plan: it holds {stamped.message.hex()}, and SHA-256 of this plan "
            f"is {digest}. A plan changes with its file, its models and the version of Legible; make a new "
            "request with study_check."
        )
    return {
        "authority": leaf.subject.rfc4514_string(),
        "at": response.tst_info.gen_time.isoformat(timespec="seconds"),
        "digest": digest,
        "vouched_by": "; ".join(root.subject.rfc4514_string() for root in roots),
        "response": base64.b64encode(files.response).decode(),
    }


def _refusal_text(files: StampFiles, why: str) -> str:
    if "certificate verify error" in why:
        return (
            f"{files.name} is signed by a certificate that none in {files.certificates_name} vouches for, or "
            "that was not valid then. Save the certificates of the authority that was asked."
        )
    if "Unable to verify" in why:
        return f"{files.name} was changed after it was signed: its signature does not fit. Ask again."
    return f"{files.name} is not accepted: {why}"


def stamp_words(stamp: Mapping[str, str], opened_at: str) -> str:
    """Who says when the plan was there, and what was verified."""
    when = f"{stamp['at'][:19].replace('T', ' ')} UTC"
    late = " That is after the study opened." if stamp["at"] > opened_at else ""
    return (
        f"Time stamp (RFC 3161) of {stamp['authority']}, {when}, over SHA-256 {stamp['digest']} of the plan "
        f"without the digests of its pictures.{late} Verified when it was stored: digest, signature, and "
        f"certificates up to {stamp['vouched_by']}, which the study's folder gives. Whether a "
        "certificate was revoked was not asked."
    )


def stamped_files(stamp: Mapping[str, str], document: Mapping[str, Any]) -> dict[str, bytes]:
    """The text that was stamped and the response, by the end of their names: what others can verify."""
    return {"-stamped.json": stamped_text(document).encode(), ".tsr": base64.b64decode(stamp["response"])}
