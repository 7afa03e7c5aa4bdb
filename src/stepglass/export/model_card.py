"""The model card of an exported model: how well it does, what it was trained on, and how."""

from pathlib import Path
from typing import Any

from stepglass import units
from stepglass.measure import run_log
from stepglass.measure.ledger import shown_phase
from stepglass.run_dir import listing
from stepglass.run_dir.imported_model import imported_model
from stepglass.run_dir.run_facts import RunFacts, run_facts
from stepglass.sample.load import Sampler
from stepglass.settings.train import TRAIN_SETTINGS

# Settings of the command and of the machine, which say nothing about the model.
LEFT_OUT = ("out_dir", "dataset", "init_from", "watch", "log_to", "device", "backend", "compile")


def model_card(loaded: Sampler, run_dir: Path) -> str:
    """The card as Markdown, with the front matter that model hubs read."""
    facts, shape = run_facts(run_dir), loaded.model.config
    name = units.one_line(facts.path.resolve().name)
    lines = [
        "---",
        "library_name: transformers",
        "pipeline_tag: text-generation",
        "tags: [stepglass]",
        "---",
        "",
        f"# {name}",
        "",
        f"A language model of {units.compact(shape.num_params())} parameters ({shape.n_layer} "
        f"layers, {shape.n_head} heads, width {shape.n_embd}, context {shape.block_size} tokens, "
        f"vocabulary {shape.vocab_size}), {_origin(run_dir)}.",
        "",
        *_table("How well it does", _results(facts)),
        *_table("How it was trained", _recipe(facts)),
        *_table("Where the time went", _ledger(run_dir)),
        "## Use it",
        "",
        "```python",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        'model = AutoModelForCausalLM.from_pretrained("PATH/OF/THIS/FOLDER")',
        'tokenizer = AutoTokenizer.from_pretrained("PATH/OF/THIS/FOLDER")',
        'ids = tokenizer("To be", return_tensors="pt").input_ids',
        "print(tokenizer.decode(model.generate(ids, max_new_tokens=100)[0]))",
        "```",
        "",
    ]
    return "\n".join(lines)


def _origin(run_dir: Path) -> str:
    imported = imported_model(run_dir)
    if imported is None:
        return "trained with Stepglass"
    return f"imported from {_cell(imported.source)}, and not trained further by Stepglass"


def _table(title: str, rows: list[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    cells = [f"| {_cell(name)} | {_cell(value)} |" for name, value in rows]
    return [f"## {title}", "", "| | |", "|---|---|", *cells, ""]


def _cell(text: str) -> str:
    return units.one_line(text).replace("|", "\\|").replace("<", "&lt;")


def _results(facts: RunFacts) -> list[tuple[str, str]]:
    per_byte = facts.bits_per_byte
    return [
        ("validation loss (nats per token)", units.loss(facts.best_val_loss)),
        ("bits per byte", "n/a" if per_byte is None else f"{per_byte:.3f}"),
        ("data", facts.dataset or "n/a"),
        ("updates", "n/a" if facts.iterations is None else str(facts.iterations)),
    ]


def _recipe(facts: RunFacts) -> list[tuple[str, str]]:
    """The settings that differ from the defaults."""
    return [
        (key, str(value))
        for key, value in facts.settings.items()
        if key not in LEFT_OUT and value != TRAIN_SETTINGS.default(key)
    ]


def _ledger(run_dir: Path) -> list[tuple[str, str]]:
    end: Any = listing.last_records(run_dir / run_log.NAME).get("end", {})
    ledger = end.get("ledger", {})
    phases, wall = ledger.get("phases"), units.finite(ledger.get("wall_ms"))
    if not isinstance(phases, dict) or not wall:
        return []
    spent = {str(name): units.finite(ms) for name, ms in phases.items()}
    rows = [
        (shown_phase(name), f"{units.seconds(ms)} ({units.percent(ms / wall, 1)})")
        for name, ms in spent.items()
        if ms
    ]
    return [*rows, ("wall clock", units.seconds(wall))]
