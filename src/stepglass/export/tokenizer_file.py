"""Our tokenizers as a tokenizer.json of the `tokenizers` library, which other programs read."""

from typing import Any

import tokenizers

from stepglass import json_files
from stepglass.data.library_tokenizer import LibraryTokenizer
from stepglass.data.tokenizer import END_OF_TEXT, BpeTokenizer, CharTokenizer, Tokenizer


def tokenizer_json(codec: Tokenizer) -> dict[str, Any] | None:
    """The contents of tokenizer.json, or None for a table of words, which the library cannot
    express: it has no greedy search for the longest word."""
    if isinstance(codec, LibraryTokenizer):
        return dict(codec.to_json()["tokenizer"])
    if isinstance(codec, BpeTokenizer):
        found = codec.library()
        found.add_special_tokens(
            [tokenizers.AddedToken(END_OF_TEXT, special=True, normalized=False)]
        )
    elif isinstance(codec, CharTokenizer):
        # BPE without merges: every character is a token. The library leaves out unknown characters.
        chars = codec.to_json()["chars"]
        found = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=chars, merges=[]))
        found.decoder = tokenizers.decoders.Fuse()
    else:
        return None
    return dict(json_files.parse_json(found.to_str().encode()))


def tokenizer_config(codec: Tokenizer, block_size: int) -> dict[str, Any]:
    """The contents of tokenizer_config.json."""
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": block_size,
        "clean_up_tokenization_spaces": False,
    }
    if isinstance(codec, LibraryTokenizer):
        stored = codec.to_json()
        named = {
            "eos_token": stored.get("end_of_text"),
            "bos_token": stored.get("begin_of_text"),
            "chat_template": stored.get("chat_template"),
        }
        return config | {key: value for key, value in named.items() if value is not None}
    if codec.end_of_text is not None:
        config |= {"eos_token": END_OF_TEXT, "bos_token": END_OF_TEXT}
    template = getattr(codec, "chat_template", None)
    return config | ({"chat_template": template} if template else {})
