"""The log of the run that docs/recipes.md tells of."""

import re
from pathlib import Path

from stepglass.cli import main
from stepglass.measure.shapes import shape_of
from stepglass.settings.command_line import read_command_line, resolve

LOG = Path(__file__).parents[2] / "docs" / "shakespeare_char.log"
OF_NANOGPT = 5.4e15  # floating-point operations of its recipe; it is 5.8e15 by the formula below
ITS_LOSS = 1.4697


def test_the_recipe_for_a_gpu_reaches_nanogpts_loss_with_a_tenth_of_its_work():
    cfg = resolve(read_command_line([]), "shakespeare_char", lambda folder: {})
    log = LOG.read_text()
    assert f"tokens per iteration will be: {cfg.tokens_per_iter:,}" in log
    per_update = shape_of(cfg, 65).flops_per_token() * cfg.tokens_per_iter
    whole_split = (111_540 - 1) // cfg.block_size
    losses = {
        int(step): float(loss)
        for step, loss, windows in re.findall(r"eval (\d+): .*val loss ([\d.]+) .*\((\d+) w", log)
        if int(windows) == whole_split
    }
    assert max(losses) == cfg.max_iters
    reached = min(step for step, loss in losses.items() if loss <= ITS_LOSS)
    assert reached * per_update < 0.1 * OF_NANOGPT
    assert cfg.max_iters * per_update < 0.1 * OF_NANOGPT
    assert losses[cfg.max_iters] <= ITS_LOSS - 0.02


def test_explain_reads_it_and_finds_nothing_wrong(capsys):
    assert main(["explain", str(LOG), "--lang=en"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("No problem found.")
    assert "best 1.4356 (step 1800, the last)" in said
