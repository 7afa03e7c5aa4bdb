"""Text that may contain the marks of a tokenizer, such as the end of a document."""

from stepglass.data.library_tokenizer import LibraryTokenizer
from stepglass.data.tokenizer import END_OF_TEXT, Tokenizer


def encode_text(text: str, tokenizer: Tokenizer) -> list[int]:
    """The ids of a text. `<|endoftext|>` is the end of a text for tokenizers of ours that have one;
    a tokenizer of others knows its own marks, of which this may be none or one with another
    meaning."""
    if tokenizer.end_of_text is None or isinstance(tokenizer, LibraryTokenizer):
        return list(map(int, tokenizer.encode(text).tolist()))
    first, *others = (tokenizer.encode(part).tolist() for part in text.split(END_OF_TEXT))
    ids: list[int] = first
    for part in others:
        ids += [tokenizer.end_of_text, *part]
    return ids
