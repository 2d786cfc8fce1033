"""A certificate authority for tests, by the openssl program."""

import subprocess
from pathlib import Path


class Authority:
    """Signs certificates; `file` is its own, in PEM."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.file = folder / "ca.pem"
        self._key = folder / "ca.key"
        self._openssl(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test CA",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
            "-keyout", self._key, "-out", self.file,
        )  # fmt: skip

    def certificate(self, name: str) -> tuple[Path, Path]:
        """Return the certificate and the key of a host or an address."""
        stem = self._folder / name
        cert, key, request, more = (stem.with_suffix(s) for s in (".pem", ".key", ".csr", ".ext"))
        kind = "IP" if name[0].isdigit() else "DNS"
        more.write_text(f"subjectAltName={kind}:{name}\nextendedKeyUsage=serverAuth\n")
        self._openssl(
            "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
            "-keyout", key, "-out", request,
        )  # fmt: skip
        self._openssl(
            "x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self._key,
            "-CAcreateserial", "-days", "2", "-extfile", more, "-out", cert,
        )  # fmt: skip
        return cert, key

    def _openssl(self, *arguments: str | Path) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
