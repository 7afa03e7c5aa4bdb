"""A case to advise on: what is trained, on which device, by which trainer; and a reason."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from stepglass.advise.subject import Subject
from stepglass.advise.target import Target
from stepglass.settings.train import TrainConfig

Basis = Literal["measured", "calculated", "estimated"]
Trainer = Literal["stepglass", "nanogpt"]


class Reason:
    """Why a setting or figure is what it is. Its text is in the catalogues, `advise-why-SETTING`,
    with these values."""

    def __init__(self, setting: str, basis: Basis, **values: Any) -> None:
        self.setting, self.basis, self.values = setting, basis, values

    @property
    def is_unknown(self) -> bool:
        """Is this the reason of a time that is not known?"""
        return self.setting == "ms_per_iter" and self.values.get("variant") == "unknown"

    @property
    def key(self) -> str:
        return "advise-why-" + self.setting.replace("_", "-")


@dataclass(frozen=True)
class Case:
    """What to advise on."""

    subject: Subject
    target: Target
    trainer: Trainer = "stepglass"
    notes: tuple[Reason, ...] = ()  # what to say of the device and of the log
    has_length: bool = True  # False: how many updates fit into its minutes is not known
    ends_early: bool = False  # the data is too small for its minutes

    @property
    def devices(self) -> int:
        """The GPUs that share an update. The processes on a CPU share that CPU."""
        return self.devices_of(self.subject.cfg)

    def devices_of(self, cfg: TrainConfig) -> int:
        return cfg.nproc if self.target.kind == "cuda" else 1

    def lasting(self, updates: int) -> "Case":
        """The same with this number of updates."""
        cfg = replace(self.subject.cfg, max_iters=updates)
        return replace(self, subject=replace(self.subject, cfg=cfg))

    def with_settings(self, chosen: dict[str, Any]) -> TrainConfig:
        return replace(self.subject.cfg, **chosen)
