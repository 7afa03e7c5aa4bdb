"""Converts text to `data/NAME/{train.bin,val.bin,meta.json}`.

The source is read twice, a few megabytes at a time, so its size does not matter. The first pass
counts the characters and collects the alphabet. The second pass encodes the text and writes the
files. The files get their final names only when all of them are complete. The last `val_fraction`
of the text is for validation, as in nanoGPT.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from stepglass import json_files
from stepglass.data import sources, tokenizer
from stepglass.data.library_tokenizer import LibraryTokenizer, last_word_end
from stepglass.data.sources import Source
from stepglass.data.tokenizer import CharTokenizer, Tokenizer
from stepglass.errors import ConfigError, DataError, os_reason
from stepglass.files import Folder, remove_stale, replacing
from stepglass.settings.schema import Config, Settings, setting
from stepglass.units import shown

SCHEMA = 1
MAX_WORD_CHARS = 1 << 20
CHECK_FOR_STOP_S = 0.1  # how often to check for signals during long work
BPE_SAMPLE_BYTES = 1 << 26  # text for learning bpe: more would change few merges and need memory


@dataclass(frozen=True, kw_only=True)
class PrepareConfig(Config):
    """All settings of `stepglass prepare`."""

    tokenizer: Literal["char", "bpe", "gpt2"] | str = setting(
        "char", "char, bpe (learned from the text), gpt2, or the folder of a run with its tokens"
    )
    vocab_size: int = setting(4096, "size of a bpe vocabulary", minimum=258, maximum=1_000_000)
    val_fraction: float = setting(
        0.1, "share of the text kept for validation", above=0, maximum=0.9
    )
    overwrite: bool = setting(
        False, "replace a data set of the same name that has another text or other tokens"
    )
    name: str = setting("", "name of the data set; empty: from the text's own name")
    data_dir: str = setting("data", "folder the data set's folder is made in", is_path=True)

    def used(self) -> list[str]:
        return ["val_fraction", "vocab_size"] if self.tokenizer == "bpe" else ["val_fraction"]

    def check(self) -> None:
        if self.tokenizer != "bpe" and self.vocab_size != PREPARE_SETTINGS.default("vocab_size"):
            raise ConfigError(f"--vocab_size is for --tokenizer=bpe; {self.tokenizer} has its own")
        if self.name and (self.name != Path(self.name).name or self.name in (".", "..")):
            raise ConfigError(f"--name expects a plain folder name, found {self.name!r}")


PREPARE_SETTINGS = Settings(PrepareConfig)

Progress = Callable[[str, int, int], None]  # current task, bytes done, bytes in total


@dataclass(frozen=True)
class Prepared:
    """The result of `prepare`, for the report to the user."""

    folder: Path
    meta: dict[str, Any]
    notes: list[str]


def prepare(words: list[str], cfg: PrepareConfig, progress: Progress) -> Prepared:
    """Make a data set from the text that `words` name."""
    data_dir = Path(cfg.data_dir)
    source = sources.find_source(words, data_dir)
    folder = data_dir / (cfg.name or source.name)
    stream = SourceText(source, cfg.tokenizer, progress)
    scan = stream.scan()
    num_train = scan.num_train_chars(cfg)
    if scan.num_chars < 2 or num_train < 1 or num_train >= scan.num_chars:
        raise DataError(
            f"{words[0]}: expected text for training and validation, found {scan.num_chars} "
            "characters"
        )
    if len(scan.alphabet) < 2 or not any(not char.isspace() for char in scan.alphabet):
        raise DataError(
            f"{words[0]}: expected text to learn from, found only "
            f"{' '.join(map(repr, sorted(scan.alphabet)[:5]))}"
        )
    if (kept := already_made(folder, cfg, scan)) is not None:
        return Prepared(folder, kept, source.notes)
    codec = make_tokenizer(cfg, stream, scan)
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        meta = write(folder, codec, stream, cfg, source, scan)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written: {os_reason(error)}") from error
    finally:
        for made in missing:
            if made.is_dir() and not any(made.iterdir()):
                made.rmdir()
    return Prepared(folder, meta, source.notes)


def already_made(folder: Path, cfg: PrepareConfig, scan: "Scan") -> dict[str, Any] | None:
    """What is known of the data set in this folder, if it is the same that would be made now. If it
    is another one, raise DataError unless it may be replaced: a run that was trained on it could
    not go on."""
    if cfg.overwrite or not (folder / "train.bin").exists():
        return None
    found = "a data set that `stepglass prepare` has not made"
    with suppress(OSError, ValueError, KeyError, TypeError):
        meta = json_files.read_json(folder / "meta.json")
        source, now = meta["source"], settings_kept(cfg)
        # Earlier versions did not store the settings.
        before = meta.get("settings", now | {"tokenizer": meta["tokenizer"]["kind"]})
        changed = [f"{key} was {shown(before[key])}" for key in now if before[key] != now[key]]
        if source["sha256"] != scan.sha256:
            found = f"another text, or another version of it ({shown(source['name'])})"
        elif changed:
            found = f"the same text, prepared in another way ({', '.join(changed)})"
        elif all((folder / f"{split}.bin").is_file() for split in ("train", "val")):
            return dict(meta)
    raise DataError(
        f"{folder}: holds {found}; --overwrite replaces it, and --name=NAME makes a second one"
    )


def settings_kept(cfg: PrepareConfig) -> dict[str, Any]:
    """The settings that decide what a data set contains."""
    return {name: getattr(cfg, name) for name in ("tokenizer", *cfg.used())}


@dataclass(frozen=True)
class Scan:
    """The results of the first pass."""

    num_chars: int
    alphabet: set[str]
    sha256: str

    def num_train_chars(self, cfg: PrepareConfig) -> int:
        return int(self.num_chars * (1 - cfg.val_fraction))


class SourceText:
    """The text of a source, in pieces. None separates two documents."""

    def __init__(self, source: Source, kind: str, progress: Progress) -> None:
        self._source = source
        self._kind = kind
        self._progress = progress

    def pieces(self, doing: str, digest: "hashlib._Hash") -> Iterator[str | None]:
        done = 0

        def advance(num_bytes: int) -> None:
            nonlocal done
            done += num_bytes
            self._progress(doing, done, self._source.num_bytes)

        last = ""
        for index, document in enumerate(self._source.documents):
            if index and self._kind != "char":
                yield None
            elif index and not last.endswith("\n"):
                yield "\n"  # char has no end-of-text token, so a newline separates documents
            for text in sources.read_text(document, digest, advance):
                if text:
                    last = text
                    yield text

    def scan(self) -> Scan:
        digest = hashlib.sha256()
        seen = np.zeros(tokenizer.UNICODE_SIZE, dtype=bool)
        num_chars = 0
        for piece in self.pieces("reading", digest):
            if piece is not None:
                num_chars += len(piece)
                seen[np.frombuffer(piece.encode("utf-32-le"), dtype=np.uint32)] = True
        return Scan(num_chars, {chr(code) for code in np.flatnonzero(seen)}, digest.hexdigest())

    def report_learning(self) -> None:
        """Report progress after the text is read and before anything is written."""
        self._progress("learning", self._source.num_bytes, self._source.num_bytes)

    def sample(self, max_bytes: int) -> Iterator[str]:
        """Pieces from all parts of the text, about `max_bytes` in total at most."""
        every = -(-self._source.num_bytes // max_bytes)
        for index, piece in enumerate(self.pieces("learning", hashlib.sha256())):
            if piece is not None and index % every == 0:
                yield from tokenizer.safe_pieces(piece)


def make_tokenizer(cfg: PrepareConfig, stream: SourceText, scan: Scan) -> Tokenizer:
    """Make the tokenizer that the user asked for."""
    if cfg.tokenizer == "gpt2":
        return tokenizer.gpt2()
    if cfg.tokenizer not in ("char", "bpe"):
        return tokenizer.tokenizer_of_run(cfg.tokenizer)
    if cfg.tokenizer == "bpe":
        texts = stream.sample(BPE_SAMPLE_BYTES)
        learn = partial(tokenizer.train_bpe, texts, cfg.vocab_size)
        return in_a_thread(learn, stream.report_learning)
    return CharTokenizer({char: index for index, char in enumerate(sorted(scan.alphabet))})


def in_a_thread(work: Callable[[], Tokenizer], meanwhile: Callable[[], None]) -> Tokenizer:
    """Run long work in a thread, because signals cannot interrupt it, and call `meanwhile` from
    time to time. If `meanwhile` raises, the thread goes on until the process ends.
    """
    results: list[Tokenizer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(CHECK_FOR_STOP_S)
        meanwhile()
    if errors:
        raise errors[0]
    return results[0]


def write(
    folder: Path,
    codec: Tokenizer,
    stream: SourceText,
    cfg: PrepareConfig,
    source: Source,
    scan: Scan,
) -> dict[str, Any]:
    """The second pass: encode, write, and put the three files in place together."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ("train.bin", "val.bin", "meta.json")
    for name in names:
        if (folder / name).is_dir():  # check this before the other files are replaced
            raise IsADirectoryError(21, "is a directory", str(folder / name))
    with Folder.open(folder) as opened:
        remove_stale(opened, names)
    dtype = np.dtype(np.uint16 if codec.vocab_size <= 1 << 16 else np.uint32).newbyteorder("<")
    digest = hashlib.sha256()
    with ExitStack() as files:
        # The files get their final names when the block ends, in reverse order of opening.
        # meta.json describes the others, so it must be renamed last and is opened first.
        meta_file = files.enter_context(replacing(folder / "meta.json"))
        splits = {
            name: TokenWriter(files.enter_context(replacing(folder / f"{name}.bin")), codec, dtype)
            for name in ("val", "train")
        }
        left = scan.num_train_chars(cfg)
        for piece in stream.pieces("encoding", digest):
            if piece is None:
                splits["train" if left > 0 else "val"].end_document()
                continue
            if left > 0:
                splits["train"].add(piece[:left])
            if len(piece) > left:
                splits["val"].add(piece[left:])
            left = max(0, left - len(piece))
        for split in splits.values():
            split.finish()
        if digest.hexdigest() != scan.sha256:
            raise DataError(
                f"{source.documents[0].name}: the text changed while it was read; prepare it again"
            )
        meta = {
            "schema": SCHEMA,
            "tokenizer": codec.to_json(),
            "vocab_size": codec.vocab_size,
            "dtype": dtype.name,
            "source": origin_of(source, scan),
            "splits": {
                name: {
                    "tokens": split.num_tokens,
                    "bytes": split.num_bytes,
                    "sha256": split.digest.hexdigest(),
                }
                for name, split in splits.items()
            },
            "settings": settings_kept(cfg),
        }
        meta_file.write(json_files.json_bytes(meta))
    return meta


def origin_of(source: Source, scan: Scan) -> dict[str, Any]:
    return {
        "name": source.name,
        "documents": len(source.documents),
        "characters": scan.num_chars,
        "sha256": scan.sha256,
    }


class TokenWriter:
    """Encodes text piece by piece and appends the ids to a file."""

    def __init__(self, file: IO[bytes], codec: Tokenizer, dtype: "np.dtype[Any]") -> None:
        self._file = file
        self._codec = codec
        self._dtype = dtype
        self._pending = ""
        self.num_tokens = 0
        self.num_bytes = 0  # of the text in UTF-8; the end of a document has none
        self.digest = hashlib.sha256()

    def add(self, text: str) -> None:
        self.num_bytes += len(text) if text.isascii() else len(text.encode())
        if isinstance(self._codec, CharTokenizer):
            self._write(self._codec.encode(text))
            return
        text = self._pending + text
        # The last word may continue in the next piece.
        is_ours = not isinstance(self._codec, LibraryTokenizer)
        cut = tokenizer.last_safe_cut(text) if is_ours else last_word_end(text)
        if len(text) - cut > MAX_WORD_CHARS:
            cut = len(text)  # the text has no place to cut; encode it now to limit memory
        self._pending = text[cut:]
        self._write(self._codec.encode(text[:cut]))

    def end_document(self) -> None:
        self.finish()
        if self._codec.end_of_text is not None:
            self._write(np.array([self._codec.end_of_text]))

    def finish(self) -> None:
        text, self._pending = self._pending, ""
        if text:
            self._write(self._codec.encode(text))

    def _write(self, ids: "np.ndarray[Any, Any]") -> None:
        data = ids.astype(self._dtype).tobytes()
        self.digest.update(data)
        self._file.write(data)
        self.num_tokens += ids.size
