"""Reads the settings that a run was started with, to resume it."""

from pathlib import Path

from stepglass import json_files
from stepglass.errors import CheckpointError
from stepglass.run_dir import checkpoints
from stepglass.settings.schema import Given
from stepglass.settings.train import TRAIN_SETTINGS


def saved_settings(out_dir: Path) -> dict[str, Given]:
    """The settings in a run directory's config.json. If that file is missing or damaged, the
    settings in the newest checkpoint."""
    path = out_dir / "config.json"
    try:
        saved = json_files.read_json(path)
        if not isinstance(saved, dict):
            raise ValueError(f"expected a JSON object of settings, found {type(saved).__name__}")
    except (OSError, ValueError) as error:
        kept = checkpoints.settings_of_newest(out_dir)
        if kept is not None:
            path, saved = kept
        elif isinstance(error, FileNotFoundError | NotADirectoryError):
            is_nanogpts = (out_dir / "ckpt.pt").exists()
            found = "nanoGPT's ckpt.pt, for `stepglass import`" if is_nanogpts else "none"
            if isinstance(error, NotADirectoryError):
                found = "a file"
            raise CheckpointError(
                f"{out_dir}: nothing to resume: expected a run directory with config.json, found "
                f"{found}; `stepglass runs` lists runs, and `stepglass train` starts one"
            ) from error
        else:
            raise CheckpointError(f"{path}: cannot be read: {error}") from error
    # These settings apply to one command, not to the run. The folder may have been moved or copied,
    # so out_dir is not taken from the file.
    once = ("init_from", "eval_only", "watch", "out_dir")
    saved = {key: value for key, value in saved.items() if key not in once}
    return {key: TRAIN_SETTINGS.given(key, value, str(path)) for key, value in saved.items()}
