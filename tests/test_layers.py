"""Imports point down the layers, and the readers' side needs no torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import stepglass

ROOT = Path(stepglass.__file__).parent

# Lowest first. A module may import from lower layers and from its own line's left.
LAYERS: list[list[str]] = [
    ["errors", "units"],
    [
        "fileops",
        "clock",
        "settings",
        "stop",
        "devices",
        "interval",
        "eval_schedule",
        "hostmemory",
    ],
    ["lock"],
    ["run_folder"],
    ["atomic", "nanogpt_config", "runlog", "ledger"],
    ["loggers"],
    ["checkpoint_dir"],
    ["runs"],
    ["logs.record", "logs.source", "logs.table", "logs.notable"],
    ["logs.fast", "logs.stretch", "logs.segment"],
    ["logs.boundaries"],
    ["logs.common", "logs.nanogpt", "logs.log"],
    [
        "logs.stepglass_log",
        "logs.nanochat",
        "logs.modded",
        "logs.llmc",
        "logs.litgpt",
        "logs.torchtitan",
        "logs.huggingface",
        "logs.lightning",
        "logs.composer",
        "logs.lingua",
        "logs.mingpt",
        "logs.charrnn",
        "logs.megatron",
        "logs.mlx",
        "logs.gpt2_simple",
        "logs.nemo",
        "logs.lightly",
    ],
    ["logs.recognise"],
    ["explain.finding", "explain.words", "explain.sparkline", "explain.timing"],
    ["explain.mfu", "explain.spent"],
    ["explain.study"],
    ["explain.rules_time", "explain.rules_speed"],
    ["explain.rules_loss"],
    ["explain.rules_run"],
    ["explain.rules"],
    ["explain.output", "explain.walk"],
    ["explain.show"],
    ["explain.follow", "explain.ending"],
    ["explain.command"],
    ["report.rows", "report.pack", "report.page", "report.to_tensorboard"],
    ["report.stream"],
    ["report.story"],
    ["report.live", "report.command"],
    ["watch.address", "watch.listing"],
    ["watch.guard"],
    ["watch.limits"],
    ["watch.server"],
    ["watch.command"],
    ["watch.beside"],
    ["config", "sample_config", "console"],
    ["command_line"],
    ["data.packages"],
    ["data.identity"],
    ["data.tokenizer", "data.sources", "data.nanogpt_meta"],
    ["data.prepare"],
    ["data.dataset"],
    ["docs_config"],
    ["models.kvcache", "models.kernels"],
    ["models.gpt2"],
    ["models.modern"],
    ["models.choice"],
    ["hostcopy"],
    ["device", "optim"],
    ["evaluate", "checkpoint"],
    ["helper_process"],
    ["replicas"],
    ["rundir", "saver"],
    ["sample", "session"],
    ["warmup", "saving"],
    ["startup"],
    ["train"],
    ["bench.loops", "bench.time_to_loss"],
    ["bench.throughput"],
    ["bench.command"],
    ["cli"],
    ["__main__"],
]
NO_TORCH = ["errors", "units", "fileops", "lock", "run_folder", "interval", "eval_schedule",
            "checkpoint_dir", "runs", "atomic",
            "clock", "settings", "stop", "devices", "nanogpt_config",
            "runlog", "ledger", "config", "command_line",
            "sample_config", "console", "data.packages", "data.sources",
            "data.tokenizer", "data.identity", "data.prepare", "data.nanogpt_meta", "cli",
            "explain.command",
            "explain.ending", "logs.recognise", "loggers", "report.command", "report.live",
            "watch.command", "watch.server", "watch.beside"]  # fmt: skip


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if not name.endswith("__init__"):
            found[name] = path
    return found


def imported(path: Path, known: set[str]) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("stepglass"):
            base = node.module.removeprefix("stepglass").removeprefix(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".removeprefix(".")
                names.add(full if full in known else base)
    return {name for name in names if name in known}


def breaches(sources: dict[str, Path]) -> list[str]:
    level = {name: index for index, layer in enumerate(LAYERS) for name in layer}
    return [
        f"{name} imports {other}"
        for name, path in sources.items()
        for other in imported(path, set(sources))
        if level[other] >= level[name]
    ]


def test_every_module_has_a_layer():
    assert set(modules()) == {name for layer in LAYERS for name in layer}


def test_imports_point_down():
    assert breaches(modules()) == []


def test_an_import_that_points_up_is_found(tmp_path):
    wrong = tmp_path / "clock.py"
    wrong.write_text("from stepglass import train\n")
    assert breaches({**modules(), "clock": wrong}) == ["clock imports train"]


BLOCK_TORCH = "import sys; sys.modules['torch'] = None; "


def import_without_torch(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", BLOCK_TORCH + code], capture_output=True, text=True, check=False
    )


def test_the_readers_side_runs_without_torch():
    done = import_without_torch("; ".join(f"import stepglass.{name}" for name in NO_TORCH))
    assert done.returncode == 0, done.stderr


def test_the_check_above_can_fail():
    assert import_without_torch("import stepglass.device").returncode != 0


@pytest.mark.parametrize(
    "argv", ["['--help']", "['train', '--help']", "['--version']", "['train', '--x=1']"]
)
def test_help_and_usage_errors_import_nothing_heavy(argv):
    code = f"from stepglass.cli import main; main({argv}); "
    code += "heavy = {'torch', 'numpy', 'tokenizers', 'rich'} & set(sys.modules); print(heavy)"
    done = subprocess.run(
        [sys.executable, "-c", "import sys; " + code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"


def test_nothing_executes_code_from_a_file():
    """No eval, exec, pickle.load or torch.load anywhere: the one unpickler is barred by hand."""
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("eval", "exec", "compile", "__import__"), name
                assert called not in (
                    "pickle.load",
                    "pickle.loads",
                    "torch.load",
                    "marshal.loads",
                ), name
