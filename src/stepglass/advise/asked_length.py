"""The length that a command line asks for: `max_iters`, `epochs` or `minutes`."""

from dataclasses import replace

from stepglass.errors import ConfigError
from stepglass.settings import fit_to_data
from stepglass.settings.command_line import LENGTHS, CommandLine, resolve
from stepglass.settings.schema import Given
from stepglass.settings.train import SCHEDULE_ITERS, TrainConfig


def with_one_length(said: dict[str, Given], command: CommandLine) -> dict[str, Given]:
    """The settings of a log without its length, if the command line gives another. Raises
    ConfigError if that gives two. A log has its schedule in iterations; as shares of the run, it
    goes with every length."""
    lengths = {
        place: {key: item for key, item in given.items() if key in LENGTHS}
        for place, given in (("files", command.files), ("flags", command.flags))
    }
    resolve(CommandLine(lengths["files"], lengths["flags"]), "none", lambda _: {})
    asked = {key for given in lengths.values() for key, item in given.items() if item.value}
    by_log = {key for key in LENGTHS if key in said and said[key].value}
    if not asked and by_log <= {"max_iters"}:
        return said
    said = said | _as_shares(said)
    return {key: item for key, item in said.items() if key not in (LENGTHS if asked else ())}


def _as_shares(said: dict[str, Given]) -> dict[str, Given]:
    total = said["max_iters"].value if "max_iters" in said else 0
    return {
        key: replace(said[key], value=f"{min(100.0, 100 * said[key].value / total):.6g}%")
        for key in SCHEDULE_ITERS
        if total and key in said and isinstance(said[key].value, int)
    }


def epochs_in_updates(cfg: TrainConfig, train_tokens: int | None) -> TrainConfig:
    """The settings with the updates that `epochs` stands for. Raises ConfigError if the size of the
    data is not known."""
    if not cfg.epochs:
        return cfg
    if train_tokens is None:
        raise ConfigError(
            f"--epochs={cfg.epochs:g}: the number of tokens in {cfg.dataset} is not known; "
            "prepare it first, or give --max_iters"
        )
    return replace(cfg, max_iters=fit_to_data.iters_in(cfg.epochs, cfg, train_tokens))
