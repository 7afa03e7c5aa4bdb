"""SentencePiece's tokenizer in a GGUF file, as older Llamas have it, for the `tokenizers` library.

The file has a score for each token and no merges. A merge is any pair of tokens that together are a
token; the one with the highest score comes first.
"""

from pathlib import Path
from typing import Any

from stepglass.errors import CheckpointError

SPACE = "\u2581"


def pieces_tokenizer(
    path: Path, facts: dict[str, Any], tokens: list[str], used: dict[str, int]
) -> dict[str, Any]:
    """The contents of a tokenizer.json."""
    scores = facts.get("tokenizer.ggml.scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise CheckpointError(f"{path}: expected a score for each token, found none")
    merges = []
    for token, index in used.items():
        pairs = [(token[:cut], token[cut:]) for cut in range(1, len(token))]
        pairs = [pair for pair in pairs if pair[0] in used and pair[1] in used]
        pairs.sort(key=lambda pair: (used[pair[0]], used[pair[1]]))
        merges += [(-(scores[index] or 0.0), index, pair) for pair in pairs]
    merges.sort(key=lambda merge: merge[0])  # stable: equal scores in the order of tokens
    has_prefix = facts.get("tokenizer.ggml.add_space_prefix", True) is not False
    prepend = [{"type": "Prepend", "prepend": SPACE}] if has_prefix else []
    to_spaces = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
    decoders: list[dict[str, Any]] = [to_spaces, {"type": "ByteFallback"}, {"type": "Fuse"}]
    if has_prefix:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    to_pieces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    unknown = facts.get("tokenizer.ggml.unknown_token_id", 0)
    is_token = type(unknown) is int and 0 <= unknown < len(tokens) and tokens[unknown] in used
    return {
        "version": "1.0",
        "normalizer": {"type": "Sequence", "normalizers": [*prepend, to_pieces]},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE",
            "vocab": used,
            "merges": [list(pair) for _, _, pair in merges],
            "unk_token": tokens[unknown] if is_token else None,
            "fuse_unk": True,
            "byte_fallback": True,
        },
    }
