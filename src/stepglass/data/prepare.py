"""Converts text to `data/NAME/{train.bin,val.bin,meta.json}`. Conversations (.jsonl) also have
`train.mask` and `val.mask`, which say of each token whether an assistant says it.

The source is read twice, a few megabytes at a time, so its size does not matter. The first pass
counts the characters and collects the alphabet. The second pass encodes the text and writes the
files. The files get their final names only when all of them are complete. The last `val_fraction`
of the text is for validation, as in nanoGPT.
"""

import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from stepglass import json_files
from stepglass.data import sources, tokenizer
from stepglass.data.chat_template import with_chat_template
from stepglass.data.chats import ChatText, is_chat
from stepglass.data.source_text import Progress, Scan, SourceText
from stepglass.data.sources import Source
from stepglass.data.token_writer import TokenWriter
from stepglass.data.tokenizer import CharTokenizer, Tokenizer
from stepglass.errors import ConfigError, DataError, os_reason
from stepglass.files import Folder, remove_stale, replacing
from stepglass.settings.schema import Config, Settings, setting
from stepglass.units import shown

SCHEMA = 1
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
    stream: SourceText | ChatText = SourceText(source, cfg.tokenizer, progress)
    if is_chat(words):
        stream = ChatText(source, progress)
    scan = stream.scan()
    stream.check(scan, cfg.val_fraction)
    if (kept := already_made(folder, cfg, scan)) is not None:
        return Prepared(folder, kept, source.notes)
    codec = make_tokenizer(cfg, stream, scan)
    if stream.has_mask:
        codec = with_chat_template(codec)
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


def already_made(folder: Path, cfg: PrepareConfig, scan: Scan) -> dict[str, Any] | None:
    """What is known of the data set in this folder, if it is the same that would be made now. If it
    is another one, raise DataError unless it may be replaced: a run that was trained on it could
    not go on."""
    if cfg.overwrite or not (folder / "train.bin").exists():
        return None
    found = "a data set that `stepglass prepare` has not made"
    with suppress(OSError, ValueError, KeyError, TypeError):
        meta = json_files.read_json(folder / "meta.json")
        source, now = meta["source"], settings_kept(cfg, scan)
        # Earlier versions did not store the settings.
        before = meta.get("settings", now | {"tokenizer": meta["tokenizer"]["kind"]})
        keys = now.keys() | (before.keys() & {"chat"})
        changed = [
            f"{key} was {shown(before.get(key, False))}"
            for key in sorted(keys)
            if before.get(key, False) != now.get(key, False)
        ]
        if source["sha256"] != scan.sha256:
            found = f"another text, or another version of it ({shown(source['name'])})"
        elif changed:
            found = f"the same text, prepared in another way ({', '.join(changed)})"
        elif all((folder / f"{split}.bin").is_file() for split in ("train", "val")):
            return dict(meta)
    raise DataError(
        f"{folder}: holds {found}; --overwrite replaces it, and --name=NAME makes a second one"
    )


def settings_kept(cfg: PrepareConfig, scan: Scan) -> dict[str, Any]:
    """The settings that decide what a data set contains."""
    kept = {name: getattr(cfg, name) for name in ("tokenizer", *cfg.used())}
    return kept | ({"chat": True} if scan.num_conversations else {})


def make_tokenizer(cfg: PrepareConfig, stream: SourceText | ChatText, scan: Scan) -> Tokenizer:
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
    stream: SourceText | ChatText,
    cfg: PrepareConfig,
    source: Source,
    scan: Scan,
) -> dict[str, Any]:
    """The second pass: encode, write, and put the three files in place together."""
    folder.mkdir(parents=True, exist_ok=True)
    masks = ("train.mask", "val.mask")
    names = ("train.bin", "val.bin", "meta.json", *masks)
    for name in names:
        if (folder / name).is_dir():  # check this before the other files are replaced
            raise IsADirectoryError(21, "is a directory", str(folder / name))
    with Folder.open(folder) as opened:
        remove_stale(opened, names)
    dtype = np.dtype(np.uint16 if codec.vocab_size <= 1 << 16 else np.uint32).newbyteorder("<")
    with ExitStack() as files:
        # The files get their final names when the block ends, in reverse order of opening.
        # meta.json describes the others, so it must be renamed last and is opened first.
        meta_file = files.enter_context(replacing(folder / "meta.json"))

        def opened_file(name: str) -> IO[bytes]:
            return files.enter_context(replacing(folder / name))

        splits = {
            name: TokenWriter(
                opened_file(f"{name}.bin"),
                codec,
                dtype,
                opened_file(f"{name}.mask") if stream.has_mask else None,
            )
            for name in ("val", "train")
        }
        if stream.encode(splits, scan, cfg.val_fraction) != scan.sha256:
            raise DataError(
                f"{source.documents[0].name}: the text changed while it was read; prepare it again"
            )
        meta = {
            "schema": SCHEMA,
            "tokenizer": codec.to_json(),
            "vocab_size": codec.vocab_size,
            "dtype": dtype.name,
            "source": origin_of(source, scan),
            "splits": {name: split.described() for name, split in splits.items()},
            "settings": settings_kept(cfg, scan),
        }
        meta_file.write(json_files.json_bytes(meta))
    if not stream.has_mask:  # those of conversations that were here before mean nothing now
        for name in masks:
            (folder / name).unlink(missing_ok=True)
    return meta


def origin_of(source: Source, scan: Scan) -> dict[str, Any]:
    found = {
        "name": source.name,
        "documents": len(source.documents),
        "characters": scan.num_chars,
        "sha256": scan.sha256,
    }
    return found | ({"conversations": scan.num_conversations} if scan.num_conversations else {})
