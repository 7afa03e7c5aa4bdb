"""How fast a long log is read, against the least that reading it can take.

python benchmarks/explain.py [--lines=1000000] [--rounds=9]

By turns, in one run: `grep -c iter`, Python's own `for line in file`, and `stepglass explain
--json`, each as a user would wait for it, start-up included, bytecode compiled as an installation
leaves it. Two logs: an evaluation every 250 lines (log_interval=1) and one every 25
(log_interval=10). Then the memory of explaining it, and one ten times as long; and of logs with
nothing but evaluations, or settings, or runs that begin anew, each of two lengths.
"""

import argparse
import compileall
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

import stepglass
from stepglass.bench.throughput import peak_now


def write_log(path: Path, num_lines: int, log_interval: int) -> None:
    """A nanoGPT run with an evaluation and a checkpoint every 250 iterations."""
    around, average, written, i = random.Random(1), -1.0, 0, 0
    with open(path, "w") as file:
        while written < num_lines:
            took = around.gauss(33.2, 0.3)
            if i % 250 == 0:
                took += 4400
                file.write(
                    f"step {i}: train loss 2.1034, val loss 2.2041\nsaving checkpoint to out\n"
                )
                written += 2
            new = 11.1 * 33.2 / took
            if i >= 5:
                average = new if average < 0 else 0.9 * average + 0.1 * new
            loss = around.gauss(2.1, 0.03)
            mfu = average if average >= 0 else -100
            file.write(f"iter {i}: loss {loss:.4f}, time {took:.2f}ms, mfu {mfu:.2f}%\n")
            written += 1
            i += log_interval


def write_evaluations(path: Path, num_lines: int) -> None:
    with open(path, "w") as file:
        file.writelines(f"iter {i}: loss 2.1034, time 33.2ms, mfu 11.10%\n" for i in range(50))
        numbers = range(50, num_lines)
        file.writelines(f"step {i}: train loss 2.1034, val loss 2.2041\n" for i in numbers)


def write_settings(path: Path, num_lines: int) -> None:
    with open(path, "w") as file:
        file.writelines(f"Overriding: key_{i} = {i}\n" for i in range(num_lines - 50))
        file.writelines(f"iter {i}: loss 2.1034, time 33.2ms, mfu 11.10%\n" for i in range(50))


def write_runs(path: Path, num_lines: int) -> None:
    with open(path, "w") as file:
        for i in range(num_lines):
            number = i % (num_lines // 150)
            file.write(f"iter {number}: loss 2.1034, time 33.20ms, mfu 11.10%\n")


def seconds(*command: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - start


def loop_seconds(path: Path) -> float:
    start = time.perf_counter()
    with open(path) as file:
        for _ in file:
            pass
    return time.perf_counter() - start


def peak_megabytes(path: Path) -> float:
    code = """
import sys
from stepglass.cli import main
main(sys.argv[1:])
peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(peak[0].split()[1], file=sys.stderr)
"""
    command = [sys.executable, "-c", code, "explain", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stderr) / 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    peak = peak_now()
    print(f"matmul peak: {peak / 1e9:.0f} GFLOP/s, {torch.get_num_threads()} threads")
    compileall.compile_dir(Path(stepglass.__file__).parent, quiet=1)
    explain = (sys.executable, "-m", "stepglass", "explain", "--json")
    with tempfile.TemporaryDirectory() as folder:
        for log_interval in (1, 10):
            path = Path(folder) / f"{log_interval}.log"
            write_log(path, args.lines, log_interval)
            ratios = []
            for _ in range(args.rounds):
                least = seconds("grep", "-c", "iter", str(path)) + loop_seconds(path)
                ratios.append(seconds(*explain, str(path)) / least)
            results = {
                "log_interval": log_interval,
                "explain_over_grep_and_loop": round(statistics.median(ratios), 2),
                "lowest": round(min(ratios), 2),
                "highest": round(max(ratios), 2),
                "memory_MB": round(peak_megabytes(path)),
            }
            print(json.dumps(results))
        long = Path(folder) / "long.log"
        write_log(long, 10 * args.lines, 1)
        print(json.dumps({"memory_MB_of_ten_times_as_long": round(peak_megabytes(long))}))
        for write in (write_evaluations, write_settings, write_runs):
            found = []
            for num_lines in (args.lines // 8, args.lines // 2):
                write(long, num_lines)
                found.append(round(peak_megabytes(long)))
            print(json.dumps({write.__name__.removeprefix("write_"): {"memory_MB": found}}))


if __name__ == "__main__":
    main()
