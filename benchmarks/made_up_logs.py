"""What six trainers would have printed of a made-up run."""

import math

from made_up_runs import MadeUpRun

PEAK_MFU = 11.0


def text_of(run: MadeUpRun) -> str:
    return "\n".join(WRITERS[run.format](run)) + "\n"


def _stretches(run: MadeUpRun) -> list[range]:
    """The iterations of each process: one, or two if the run was killed and resumed."""
    if run.restart is None:
        return [range(run.num_iters)]
    killed, resumed = run.restart
    return [range(killed + 1), range(resumed, run.num_iters)]


def _is_printed(run: MadeUpRun, i: int) -> bool:
    return i % run.log_interval == 0


def nanogpt(run: MadeUpRun) -> list[str]:
    lines = [
        f"Overriding: max_iters = {run.num_iters - 1}",
        f"Overriding: lr_decay_iters = {run.num_iters - 1}",
        f"Overriding: learning_rate = {run.rate}",
        f"Overriding: min_lr = {run.rate / 10}",
        f"Overriding: warmup_iters = {max(1, run.num_iters // 100)}",
        f"Overriding: eval_interval = {run.eval_interval}",
        f"Overriding: eval_iters = {run.eval_batches}",
        f"Overriding: always_save_checkpoint = {run.saves_always}",
    ]
    best = math.inf
    for stretch in _stretches(run):
        lines.append("tokens per iteration will be: 16,384")
        mode = "Initializing a new model from scratch"
        lines.append(mode if stretch.start == 0 else "Resuming training from out")
        average = -1.0
        for n, i in enumerate(stretch):
            took = float(run.times[i]) + (run.warmup_ms if n == 0 else 0.0)
            if i in run.evals:
                train, val = run.evals[i]
                lines.append(f"step {i}: train loss {train:.4f}, val loss {val:.4f}")
                took += run.eval_ms
                if n and (val < best or run.saves_always):
                    lines.append("saving checkpoint to out")
                    took += run.save_ms
                best = min(best, val) if n or stretch.start else best
            if _is_printed(run, i):
                if n >= 5:
                    new = PEAK_MFU * run.truths["step_ms"] / took
                    average = new if average < 0 else 0.9 * average + 0.1 * new
                mfu = average if average >= 0 else -100.0
                lines.append(
                    f"iter {i}: loss {run.losses[i]:.4f}, time {took:.2f}ms, mfu {mfu:.2f}%"
                )
    return lines


def huggingface(run: MadeUpRun) -> list[str]:
    lines, spent = [], run.warmup_ms
    total, per_epoch = run.num_iters - 1, max(1, run.num_iters // 3)
    for i in range(1, run.num_iters):
        spent += float(run.times[i])
        if _is_printed(run, i):
            lines.append(_bar(i, total, spent))
            loss, norm = run.losses[i], run.norms[i]
            if math.isnan(loss):
                loss = 0.0  # what the Trainer prints if every loss of the interval was NaN
            lines.append(
                f"{{'loss': {loss:.4f}, 'grad_norm': {norm:.4f}, "
                f"'learning_rate': {run.rates[i]:.6g}, 'epoch': {i / per_epoch:.2f}}}"
            )
        if i in run.evals:
            spent += run.eval_ms + run.save_ms
            val, took = run.evals[i][1], run.eval_ms / 1000
            lines.append(
                f"{{'eval_loss': {val:.4f}, 'eval_runtime': {took:.4f}, "
                f"'eval_samples_per_second': 12.5, 'epoch': {i / per_epoch:.2f}}}"
            )
    lines.append(
        f"{{'train_runtime': {spent / 1000:.4f}, 'train_samples_per_second': 3.5, "
        f"'train_steps_per_second': {total / (spent / 1000):.3f}, 'train_loss': 2.1, 'epoch': 3.0}}"
    )
    return lines


def _clock(ms: float) -> str:
    minutes, seconds = divmod(int(ms / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes:02d}:{seconds:02d}"


def _bar(i: int, total: int, spent_ms: float) -> str:
    each = spent_ms / 1000 / i
    rate = f"{each:.2f}s/it" if each > 1 else f"{1 / each:.2f}it/s"
    left = _clock(1000 * each * (total - i))
    return f"{100 * i // total:3d}%|███▌      | {i}/{total} [{_clock(spent_ms)}<{left}, {rate}]"


def lightning(run: MadeUpRun) -> list[str]:
    lines = ["epoch,step,train_loss,val_loss"]
    for i in range(run.num_iters):
        if _is_printed(run, i):
            lines.append(f"{3 * i // run.num_iters},{i},{run.losses[i]:.6f},")
        if i in run.evals and i:
            lines.append(f"{3 * i // run.num_iters},{i},,{run.evals[i][1]:.6f}")
    return lines


def megatron(run: MadeUpRun) -> list[str]:
    lines = []
    for stretch in _stretches(run):
        since: list[float] = [run.warmup_ms]
        for i in stretch:
            since.append(float(run.times[i]))
            if _is_printed(run, i) and i > stretch.start:
                mean = sum(since) / (len(since) - 1)
                since = [0.0]
                loss = "" if math.isnan(run.losses[i]) else f" lm loss: {run.losses[i]:.6E} |"
                lines.append(
                    f" iteration {i:8d}/{run.num_iters - 1:8d} | consumed samples: {64 * i:12d} | "
                    f"elapsed time per iteration (ms): {mean:.1f} | learning rate: "
                    f"{run.rates[i]:.3E} | global batch size:    64 |{loss} loss scale: 1.0 | "
                    f"grad norm: {run.norms[i]:.3f} | number of skipped iterations:   0 | "
                    f"number of nan iterations:   0 |"
                )
            if i in run.evals and i > stretch.start:
                val = run.evals[i][1]
                lines.append(
                    f" validation loss at iteration {i} | lm loss value: {val:.6E} | "
                    f"lm loss PPL: {math.exp(min(val, 50)):.6E} |"
                )
                lines.append(f"saving checkpoint at iteration {i:7d} to out")
    return lines


def llmc(run: MadeUpRun) -> list[str]:
    lines = []
    for stretch in _stretches(run):
        for i in stretch:
            if i in run.evals:
                lines.append(f"val loss {run.evals[i][1]:.6f}")
            took = float(run.times[i]) + (run.warmup_ms if i == stretch.start else 0.0)
            lines.append(
                f"step {i + 1:4d}/{run.num_iters} | loss {run.losses[i]:.6f} (+0.41z)| norm "
                f"{run.norms[i]:.4f} (-0.12z)| lr {run.rates[i]:.2e} | {took:.2f} ms | 41.2% bf16 "
                f"MFU | {16384000 / took:.0f} tok/s"
            )
    return lines


def litgpt(run: MadeUpRun) -> list[str]:
    lines, val = [], "n/a"
    for stretch in _stretches(run):
        for i in stretch:
            if i in run.evals and i > stretch.start:
                val = f"{run.evals[i][1]:.3f}"
                lines.append(
                    f"iter {i}: val loss {run.evals[i][1]:.4f}, val time: {run.eval_ms:.2f} ms"
                )
            took = float(run.times[i]) + (run.warmup_ms if i == stretch.start else 0.0)
            lines.append(
                f"Epoch 1 | iter {i + 1} step {i + 1} | loss train: {run.losses[i]:.4f}, val: {val}"
                f" | iter time: {took:.2f} ms (step) remaining time: 0:03:20"
            )
    return lines


WRITERS = {
    "nanogpt": nanogpt,
    "hf-trainer": huggingface,
    "lightning": lightning,
    "megatron": megatron,
    "llm.c": llmc,
    "litgpt": litgpt,
}
