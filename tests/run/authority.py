"""A throw-away time-stamp authority: a root, a certificate for time stamps below it, and openssl to sign."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CONFIGURATION = """[tsa]
default_tsa = one
[one]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
"""


@dataclass(frozen=True)
class Authority:
    """`root` holds the root's certificate, PEM."""

    folder: Path
    root: bytes

    def reply(self, request: bytes) -> bytes:
        """The response to a request, DER, with the certificate that signs it if the request asks for it."""
        query, answer = self.folder / "plan.tsq", self.folder / "plan.tsr"
        query.write_bytes(request)
        words: list[str | Path] = ["openssl", "ts", "-reply", "-queryfile", query]
        words += ["-signer", self.folder / "signer.pem"]
        words += ["-inkey", self.folder / "key.pem", "-config", self.folder / "ts.cnf", "-out", answer]
        subprocess.run(words, check=True, capture_output=True)
        return answer.read_bytes()


def authority(folder: Path, name: str = "Test Authority", *, stamps: bool = True) -> Authority:
    """Without `stamps` its certificate is one for mail."""
    folder.mkdir(parents=True)
    root_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root = _certificate("Test Root", "Test Root", root_key, root_key, None)
    purpose = ExtendedKeyUsageOID.TIME_STAMPING if stamps else ExtendedKeyUsageOID.EMAIL_PROTECTION
    signer = _certificate(name, "Test Root", key, root_key, purpose)
    (folder / "signer.pem").write_bytes(signer.public_bytes(Encoding.PEM))
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    (folder / "serial").write_text("01")
    (folder / "ts.cnf").write_text(CONFIGURATION.format(folder=folder))
    return Authority(folder, root.public_bytes(Encoding.PEM))


def _certificate(
    name: str,
    issuer: str,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    purpose: x509.ObjectIdentifier | None,
) -> x509.Certificate:
    now = datetime.now(UTC)
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (name, issuer)]
    builder = x509.CertificateBuilder().subject_name(names[0]).issuer_name(names[1])
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    builder = builder.add_extension(
        x509.BasicConstraints(ca=purpose is None, path_length=None), critical=True
    )
    if purpose is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
    return builder.sign(signer, hashes.SHA256())
