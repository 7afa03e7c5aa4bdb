"""Finished runs that tests begin with: trained once in a process, and copied for each test."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from helpers import prepare_tiny, train_tiny


class KeptRuns:
    """Folders by what was done in them. Nobody but `copy` looks into them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[str, Path] = {}

    def copy(self, out_dir: str = "out", threads: int | None = None, **settings: Any) -> None:
        """A finished run and its data, in the folder of the test."""

        def train() -> None:
            before = torch.get_num_threads()
            torch.set_num_threads(threads or before)
            assert train_tiny(**settings, out_dir=out_dir) == 0
            torch.set_num_threads(before)

        self.copy_of(f"{out_dir} {threads} {sorted(settings.items())}", train)

    def copy_of(self, name: str, make: Callable[[], Any]) -> None:
        """What `make` leaves in a folder with data, in the folder of the test."""
        if name not in self._kept:
            folder = self._folder / str(len(self._kept))
            folder.mkdir()
            here = Path.cwd()
            os.chdir(folder)
            prepare_tiny()
            make()
            os.chdir(here)
            self._kept[name] = folder
        shutil.copytree(self._kept[name], ".", dirs_exist_ok=True)
