"""The tokenizer of a Hugging Face folder, as tokenizer.json of a run."""

from pathlib import Path
from typing import Any

from stepglass.data import tokenizer
from stepglass.errors import CheckpointError, DataError, os_reason
from stepglass.files import read_regular
from stepglass.foreign.json_object import MAX_JSON, read_object

Found = tuple[dict[str, Any], list[str]]  # the tokenizer, and notes


def tokenizer_in(folder: Path, vocab_size: int) -> Found:
    """The tokenizer of a folder. Without one, a token's text is its number."""
    if (folder / "tokenizer.json").exists():
        return _library(folder, vocab_size), []
    if (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
        return _vocab_and_merges(folder, vocab_size), []
    note = f"{folder} has no tokenizer.json: tokens are shown as numbers"
    return tokenizer.of_table({}, vocab_size), [note]


def _library(folder: Path, vocab_size: int) -> dict[str, Any]:
    path = folder / "tokenizer.json"
    stored = read_object(path)
    special = read_object(folder / "tokenizer_config.json", is_optional=True)
    template = special.get("chat_template")
    if isinstance(template, list):  # several, by name
        named = [t for t in template if isinstance(t, dict) and t.get("name") == "default"]
        template = named[0].get("template") if named else None
    if template is None and (folder / "chat_template.jinja").is_file():
        template = _text(folder / "chat_template.jinja")
    found = {
        "kind": "hf",
        "tokenizer": stored,
        "end_of_text": _content(special.get("eos_token")),
        "begin_of_text": _content(special.get("bos_token")),
        "chat_template": template if isinstance(template, str) else None,
    }
    return of_own_kind(fitting(found, vocab_size, path))


def of_own_kind(found: dict[str, Any]) -> dict[str, Any]:
    """Characters and BPE that we exported have the kind again that they had, so that data that was
    prepared with it fits."""
    stored = found["tokenizer"]
    model, template = stored.get("model", {}), found.get("chat_template")
    if model.get("type") != "BPE" or template is not None or stored.get("normalizer"):
        return found
    vocab, merges = model.get("vocab", {}), model.get("merges", [])
    if not merges and stored.get("pre_tokenizer") is None and not stored.get("added_tokens"):
        return {"kind": "char", "chars": vocab}
    added = [token.get("content") for token in stored.get("added_tokens", [])]
    is_bytes = stored.get("pre_tokenizer", {}).get("type") == "ByteLevel"
    if not is_bytes or added != [tokenizer.END_OF_TEXT] or tokenizer.END_OF_TEXT not in vocab:
        return found
    pairs = [pair.split(" ") if isinstance(pair, str) else list(pair) for pair in merges]
    return of_gpt2({"kind": "bpe", "vocab": vocab, "merges": pairs})


def of_gpt2(found: dict[str, Any]) -> dict[str, Any]:
    """GPT-2's own tokenizer by its name, if this is the one."""
    if len(found["vocab"]) == 50257:
        try:
            if tokenizer.gpt2().is_same(found["vocab"], found["merges"]):
                return {"kind": "gpt2"}
        except DataError:  # it could not be downloaded
            pass
    return found


def fitting(found: dict[str, Any], vocab_size: int, place: Path) -> dict[str, Any]:
    """The tokenizer, if it can be used with a model of this vocabulary."""
    try:
        codec = tokenizer.from_json(found, str(place))
    except DataError as error:
        raise CheckpointError(str(error)) from error
    if codec.vocab_size > vocab_size:
        raise CheckpointError(
            f"{place}: expected at most {vocab_size} tokens, the model's vocabulary, found "
            f"{codec.vocab_size}"
        )
    return found


def _vocab_and_merges(folder: Path, vocab_size: int) -> dict[str, Any]:
    """The two files of GPT-2's first tokenizers."""
    vocab = read_object(folder / "vocab.json")
    lines = _text(folder / "merges.txt").splitlines()
    pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    found = {"kind": "bpe", "vocab": vocab, "merges": pairs}
    return of_gpt2(fitting(found, vocab_size, folder / "vocab.json"))


def _text(path: Path) -> str:
    try:
        return read_regular(path, MAX_JSON).decode("utf-8")
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: expected text, found a problem: {error}") from error


def _content(token: object) -> str | None:
    """A special token, which is text or an object with it."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None
