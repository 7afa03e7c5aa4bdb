"""Run logs of several processes of which the truth is known, for tests."""

import json
import random
from collections.abc import Callable

Pace = Callable[[int, int], float]  # how many times as long rank R takes in record K


def log_of_ranks(
    pace: Pace = lambda rank, record: 1.0,
    *,
    processes: int = 4,
    records: int = 12,
    updates: int = 50,
    compute_ms: float = 100.0,
    communication_ms: float = 10.0,
    noise: float = 0.02,
    seed: int = 1,
    is_ended: bool = True,
    **config: object,
) -> str:
    """A run log whose processes take `pace` times `compute_ms`, with noise, to compute."""
    around = random.Random(seed)
    settings = {"max_iters": records * updates, "gradient_accumulation_steps": 4, **config}
    lines: list[dict] = [
        {"kind": "start", "schema": 1, "time": 1_700_000_000.0, "config": settings,
         "model": {"parameters": 1000}, "tokens_per_iter": 32, "data": {},
         "device_type": "cpu", "processes": processes, "parallel": "ddp"}
    ]  # fmt: skip
    total = {"data": 0.0, "forward_backward": 0.0, "optimizer": 0.0, "eval": 0.0}
    for record in range(records):
        compute = [
            compute_ms * pace(rank, record) * around.gauss(1, noise) for rank in range(processes)
        ]
        took = max(compute) + communication_ms
        for i in range(record * updates, (record + 1) * updates):
            phases = {"data": 0.5, "forward_backward": took, "optimizer": 5.0}
            if record and i == record * updates:
                phases["eval"] = 80.0
            for name, ms in phases.items():
                total[name] += ms
            lines.append({"kind": "iter", "iter": i, "loss": 3 - 0.001 * i, "lr": 1e-3,
                          "grad_norm": 1.0, "tokens": 32, "wall_ms": sum(phases.values()),
                          "phases": phases, "mfu": None})  # fmt: skip
        done = (record + 1) * updates
        lines += [
            {"kind": "eval", "iter": done, "wall_ms": 80.0, "train_loss": 3 - 0.001 * done,
             "val_loss": 3.1 - 0.001 * done, "val_se": 0.01, "windows": 10},
            {"kind": "event", "name": "ranks", "iter": done,
             "detail": {"compute_ms": compute, "wait_ms": [took - ms for ms in compute],
                        "communication_ms": communication_ms, "updates": updates,
                        "eval_ms": [70.0 * pace(rank, record) for rank in range(processes)]}},
        ]  # fmt: skip
    if is_ended:
        lines.append({"kind": "end", "reason": "finished", "iter": records * updates,
                      "ledger": {"wall_ms": sum(total.values()), "phases": total}})  # fmt: skip
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def slow_rank(which: int, times: float) -> Pace:
    return lambda rank, record: times if rank == which else 1.0
