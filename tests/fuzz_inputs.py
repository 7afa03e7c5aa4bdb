"""What tests/fuzz_files.py tries: good files changed a little, and files made to do harm."""

import pickle
import pickletools
import random
from collections.abc import Callable
from importlib import resources

Random = random.Random

LARGE = 31_900  # bytes: just below what a config file may have

# -- any file -----------------------------------------------------------------------------------


def changed(data: bytes, rng: Random) -> bytes:
    """The same file after some accidents."""
    text = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((1, 1, 2, 8, 60)))
        match rng.randrange(6):
            case 0 if text:
                text[at % len(text)] = rng.randrange(256)
            case 1:
                del text[at:end]
            case 2:
                text[at:at] = text[at:end] * rng.choice((1, 2, 30))
            case 3:
                text[at:at] = rng.randbytes(rng.choice((1, 2, 8)))
            case 4:
                text[at:end] = rng.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)).to_bytes(
                    8, rng.choice(("little", "big"))
                )
            case 5 if rng.random() < 0.2:
                del text[at:]
    return bytes(text[:1_000_000])


# -- meta.pkl -----------------------------------------------------------------------------------


def a_meta(rng: Random) -> dict[object, object]:
    """What people have in such files."""
    count = rng.choice((1, 5, 65, 65, 300))
    names: list[object] = [chr(rng.choice((32, 200, 0x4E00, 0x1F600)) + i) for i in range(count)]
    if rng.random() < 0.4:
        names = [f"word{i}" for i in range(count)]
    elif rng.random() < 0.2:
        names = [rng.choice((i, bytes([i % 256]), (i, "x"), None, i / 3)) for i in range(count)]
    meta: dict[object, object] = {
        "vocab_size": rng.choice((count, count, count + 7, 50304, -1, 1 << 70, 2.5, True, None)),
        "stoi": {name: index for index, name in enumerate(names)},
        "itos": dict(enumerate(names)),
    }
    if rng.random() < 0.3:
        meta["more"] = [[1, 2.5, None, True], {"a": (1, (2, ()))}, b"bytes", "x" * 300, {1, 2}]
    return meta


def some_instructions(rng: Random) -> bytes:
    """Instructions of pickles one after the other, with something behind each that may fit."""
    parts = []
    for _ in range(rng.choice((3, 10, 40, 200))):
        instruction = rng.choice(pickletools.opcodes)
        parts.append(instruction.code.encode("latin-1") + _argument(instruction.arg, rng))
    return b"".join(parts) + b"."


def _argument(kind: pickletools.ArgumentDescriptor | None, rng: Random) -> bytes:
    if kind is None:
        return b""
    if kind.n == pickletools.UP_TO_NEWLINE:
        texts = (
            b"1",
            b"0",
            b"'x'",
            b"01",
            b"-5L",
            b"os",
            b"1e999",
            b"nan",
            b"\\u0041",
            b"9" * 5000,
        )
        lines = 2 if "pair" in kind.name else 1
        return b"".join(rng.choice(texts) + b"\n" for _ in range(lines))
    if kind.n >= 0:
        return rng.choice((b"\0" * kind.n, rng.randbytes(kind.n), b"\1" + b"\0" * (kind.n - 1)))
    width = {pickletools.TAKEN_FROM_ARGUMENT1: 1, pickletools.TAKEN_FROM_ARGUMENT8U: 8}
    size = width.get(kind.n, 4)
    said = rng.choice((0, 1, 3, 200, (1 << (8 * size)) - 1, (1 << (8 * size - 1)) - 1, 6 << 30))
    there = rng.choice((said, said, 0, 1)) if said < 1000 else 2
    return (said % (1 << (8 * size))).to_bytes(size, "little") + rng.randbytes(there)


def harmful_pickle(rng: Random) -> bytes:
    """Few bytes that ask for much."""
    count = rng.choice((10, 100, 1000, 50_000)) if rng.random() < 0.98 else 1_500_000
    nested = b")" + b"q\x00h\x00\x86" * min(count, 1000)
    size = rng.choice((2**31 - 1, 6 << 30, 2**63 - 1, 2**64 - 1))
    return rng.choice(
        (
            lambda: b"}" + nested + b"K\x01s.",
            lambda: b"\x8f(" + nested + b"\x90.",
            lambda: b"(" + nested + b"\x91.",
            lambda: b"]" + b"q\x00h\x00h\x00\x86" * min(count, 1000) + b".",
            lambda: b"]" * count + b"a" * (count - 1) + b".",
            lambda: b")" + b"\x85" * count + b".",
            lambda: b"}" + b"K\x01}" * count + b"s" * count + b".",
            lambda: rng.choice((b"N", b"(", b"2", b"]", b"}", b")")) * count + b".",
            lambda: b"\x96" + (size % 2**64).to_bytes(8, "little") + b".",
            lambda: rng.choice((b"\x8d", b"\x8e", b"\x95")) + size.to_bytes(8, "little") + b"N.",
            lambda: rng.choice((b"X", b"B", b"T", b"\x8b", b"r", b"j")) + b"\xff\xff\xff\x7fN.",
            lambda: b"Nr" + rng.randbytes(4) * 1 + b".",
            lambda: b"".join(b"Nr" + rng.randbytes(4) for _ in range(min(count, 2000))) + b".",
            lambda: b"L" + b"9" * count + b"L\n.",
            lambda: b"\x8b" + count.to_bytes(4, "little") + b"\xff" * count + b".",
            lambda: b"X" + count.to_bytes(4, "little") + b"\xc3\xa9" * (count // 2) + b".",
            lambda: b"V" + b"\\U0001f600" * (count // 10) + b"\n.",
            lambda: (
                b"}(X\x0a\x00\x00\x00vocab_sizeK\x05X\x04\x00\x00\x00stoi}("
                + b"".join(
                    b"\x8a\x0a" + (n * (2**61 - 1)).to_bytes(10, "little") + b"K\x01"
                    for n in range(min(count, 50_000))
                )
                + b"uu."
            ),
        )
    )()


def meta_pickle(rng: Random) -> bytes:
    """A meta.pkl, or something of that name."""
    chance = rng.random()
    if chance < 0.25:
        return some_instructions(rng)
    if chance < 0.4:
        return harmful_pickle(rng)
    data = pickle.dumps(a_meta(rng), rng.randrange(6))
    if rng.random() < 0.1:
        data = pickletools.optimize(data)
    if chance < 0.5:
        return data
    if chance < 0.55:
        return data[: rng.randrange(len(data))] + harmful_pickle(rng)
    return changed(data, rng)


# -- config files -------------------------------------------------------------------------------


def some_of(words: tuple[str, ...], rng: Random) -> str:
    return "".join(rng.choice(words) for _ in range(rng.choice((5, 30, 200))))


def many_of(patterns: tuple[tuple[str, str, str], ...], rng: Random) -> str:
    """A beginning, a middle again and again, and an end."""
    start, middle, end = rng.choice(patterns)
    length = rng.choice((100, 3000, LARGE))
    return start + middle * ((length - len(start) - len(end)) // len(middle)) + end


# fmt: off
TOML_WORDS = (
    "n_layer", "out_dir", "learning_rate", "bias", "a", '"b"', "= ", "=", "1", "2.5", '"x"', "true",
    ".", ". ", "[", "]", "{", "}", ",", "\n", "\n", "#", "'", '"', '"""', "'''", "\\", "\\u", "0x",
    "1979-05-27", "1e5", "inf", "nan", "_", "-", "\r\n", "\t", " ", "é", "😀", "[[", "]]",
)
# fmt: on
TOML_MANY = (
    ("", "a.", "a = 1"),
    ("[", "a.", "a]"),
    ("[[", "a . ", "a]]"),
    ("x = {", "a.", "a = 1}"),
    ("x = [{", '"a".', "a = 1}]"),
    ('x = ["""a"""", {', "a.", "a = 1}]"),
    ("x = ", "[", ""),
    ("x = ", "{a = ", ""),
    ("x = [", "1,", "]"),
    ("x = [", "1.5,", "]"),
    ("x = {", "a=1,", "}"),
    ("", "[a]\n", ""),
    ("", "[[a]]\n", ""),
    ("", "[[a]]\n[[a.b]]\n", ""),
    ("", "[a.b.c]\n", ""),
    ('x = "', "\\u0041", '"'),
    ('x = "', "\\", ""),
    ('x = """', "\\\n ", '"""'),
    ("x = ", '"', ""),
    ("x = ", "'", ""),
    ("x = ", "1_", "1"),
    ("x = 0x", "f", ""),
    ("x = 1.", "1", ""),
    ("x = 1e", "9", ""),
    ("x = 1979-05-27T07:32:00.", "9", ""),
    ("", "x", " = 1"),
    ('"', "é", '" = 1'),
    ("", "#\n", ""),
    ("", "a='''", ""),
)
# fmt: off
PY_WORDS = (
    "n_layer", "out_dir", "learning_rate", "bias", "a", "b", " = ", "=", "1", "2.5", "'x'", "True",
    "None", ".", "(", ")", "[", "]", "{", "}", ",", "\n", "\n", "#", "+", "-", "*", "/", "//", "**",
    "%", "<", "==", " and ", " or ", " not ", " if ", " else ", "lambda:", "f'{a}'", "f'{", "}'",
    "str(", "int(", "float(", "max(", "round(", "time.time()", "import os\n", "'''", "\\", ";", ":",
    ":=", "*=", "@", "\t", " ", "é", "😀", "9**", "10**", "'a'*", "!r", ":>999", "yield ", "await ",
)
# fmt: on
PY_MANY = (
    ("x = ", "a.", "a"),
    ("x = ", "-", "1"),
    ("x = ", "not ", "1"),
    ("x = ", "(", ""),
    ("x = ", "~", "1"),
    ("x = ", "lambda:", "1"),
    ("x = ", "1+", "1"),
    ("x = ", "1**", "1"),
    ("x = ", "1<", "1"),
    ("x = ", "1 and ", "1"),
    ("x = ", "1 if 1 else ", "1"),
    ("x = ", "1 or ", "a"),
    ("", "a = ", "1"),
    ("x = a", "[0]", ""),
    ("x = a", "()", ""),
    ("", "a = 1\n", ""),
    ("", "a = 1;", ""),
    ("a = 1\n", "a = a + a\n", ""),
    ("a = 'xxxxxxxx'\n", "a = a + a\n", ""),
    ("a = '\U0001f600xxxxxxx'\n" + "a = a + a\n" * 10 + "b = f'", "{a}", "'"),
    ("a = '\U0001f600xxxxxxx'\n" + "a = a + a\n" * 10 + "b = max(", "a,", ")"),
    ("a = 1\nx = f'{a:", "{a}", "}'"),
    ("x = ", "'a'", ""),
    ("a = 1\nx = ", "f'{a}'", ""),
    ("x = f'{", "-", "1}'"),
    ("x = ", "9", ""),
    ("x = 0x", "f", ""),
    ("", "x", " = 1"),
    ("x = ", "y", ""),
    ("", "@a\n", ""),
    ("if a:\n pass\n", "elif a:\n pass\n", ""),
    ("x = ", "str(", ""),
    ("x = ", "{1:", ""),
    ("x = ", "[{(", ""),
    ("with ", "(", ""),
    ("x = 1", "\\\n", ""),
    ("", "\n", ""),
    ("import a", ".a", ""),
    ("from a import ", "a,", "a"),
    ("match a:\n case ", "[", ""),
    ("", "try:\n", ""),
    ("x = 2", "*9223372036854775807", ""),
)
PY_GOOD = (
    "import time\n\nout_dir = 'out-shakespeare'\nwandb_run_name = 'ft-' + str(time.time())\n"
    "learning_rate = 3e-5\ndecay_lr = False\nmax_iters = 20\n",
    "# gpt2\nbatch_size = 12\nblock_size = 1024\ngradient_accumulation_steps = 5 * 8\n\n"
    "max_iters = 600000\nlr_decay_iters = max_iters\nweight_decay = 1e-1\ncompile = False\n",
    "n_layer = 6\nlearning_rate = 1e-3\nout_dir = f'L{n_layer:03d}-lr{learning_rate:.0e}'\n"
    "bias = n_layer > 3 and not False\nbatch_size = 4 if bias else 8\nmin_lr = round(0.12, 1)\n",
)


def config_toml(rng: Random) -> bytes:
    """A config file in TOML, or something of that name."""
    folder = resources.files("stepglass") / "recipes"
    good = sorted(f.read_bytes() for f in folder.iterdir() if f.name.endswith(".toml"))
    return _config(good, TOML_WORDS, TOML_MANY, rng)


def config_py(rng: Random) -> bytes:
    """One of nanoGPT's config files, or something of that name."""
    return _config([text.encode() for text in PY_GOOD], PY_WORDS, PY_MANY, rng)


def _config(
    good: list[bytes],
    words: tuple[str, ...],
    patterns: tuple[tuple[str, str, str], ...],
    rng: Random,
) -> bytes:
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: changed(rng.choice(good), rng),
        lambda: rng.choice(good) + some_of(words, rng).encode(),
        lambda: some_of(words, rng).encode(),
        lambda: many_of(patterns, rng).encode(),
        lambda: changed(many_of(patterns, rng).encode(), rng),
    )
    return rng.choice(ways)()
