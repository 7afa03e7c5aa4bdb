"""Peak memory of `prepare` as the text grows, and how long `--help` takes beside Python itself.

python benchmarks/memory.py [--megabytes=10,100,1000] [--tokenizers=char,bpe,gpt2]
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SENTENCE = "The {} of {} was {} and {}, said the {} in {}.\n"
WORDS = [f"w{i:x}" for i in range(20_000)]


def write_text(path: Path, megabytes: int) -> None:
    """Text with a growing, repeating vocabulary."""
    state = 1
    with open(path, "w") as file:
        written = 0
        while written < megabytes * 1_000_000:
            words = []
            for _ in range(6):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                words.append(WORDS[(state >> 33) % len(WORDS)])
            written += file.write(SENTENCE.format(*words))


def peak_megabytes(command: list[str], folder: Path) -> float:
    """The largest resident size of a child process."""
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.execv(command[0], command)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, command
    return usage.ru_maxrss / (1e3 if sys.platform != "darwin" else 1e6)


def seconds(command: list[str]) -> float:
    times = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", default="10,100,1000")
    parser.add_argument("--tokenizers", default="char,bpe,gpt2")
    args = parser.parse_args()
    result: dict[str, object] = {
        "help_over_bare_python": seconds([sys.executable, "-m", "stepglass", "--help"])
        / seconds([sys.executable, "-c", "pass"]),
        "help_s": seconds([sys.executable, "-m", "stepglass", "--help"]),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for megabytes in map(int, args.megabytes.split(",")):
            write_text(folder / "text.txt", megabytes)
            for tokenizer in args.tokenizers.split(","):
                command = [sys.executable, "-m", "stepglass", "prepare", "text.txt"]
                command.append(f"--tokenizer={tokenizer}")
                result[f"peak_MB_{tokenizer}_{megabytes}MB"] = round(
                    peak_megabytes(command, folder)
                )
    result["this_process_MB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
