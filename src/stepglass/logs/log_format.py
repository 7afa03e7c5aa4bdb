"""What a log format means beyond its lines: each reader declares it, `explain` asks for it.

    class Nanochat:
        format = LogFormat("nanochat", limits=("format-nanochat",))

A fact is named for what the trainer does, never for the trainer, so that a new format needs no
change outside its reader.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class LogFormat:
    """Facts about a format. The defaults hold for most trainers."""

    name: str
    # What a log of this format cannot show: message ids of the catalogues, without `cannot-`.
    limits: tuple[str, ...] = ()

    # -- what the printed figures hold
    time_holds_eval: bool = False  # an iteration's time includes the evaluation before it
    is_run_log: bool = False  # our own run.jsonl, which records every phase of an iteration
    times_evals_apart: bool = False  # evaluations and checkpoints have times of their own
    prints_saves: bool = False  # every checkpoint has a line
    averages_mfu: bool = False  # the printed MFU is nanoGPT's moving average
    mfu_is_of_own_device: bool = False  # it divides by the peak of the device that ran
    assumed_peak_tflops: float | None = None  # it divides by this, whatever the device
    fallback_peak_tflops: float | None = None  # it divides by this if the device is unknown
    hides_nan_loss: bool = False  # a loss that is NaN is replaced by an average

    # -- what the trainer does
    has_nanogpt_settings: bool = False  # its settings have nanoGPT's names
    has_nanogpt_defaults: bool = False  # what the command line leaves out is as in nanoGPT
    max_iters_is_last_iter: bool = False  # it counts to max_iters, not to the iteration before
    evaluates_random_batches: bool = False  # `eval_iters` new ones each time
    evaluates_same_windows: bool = False  # so that most of the noise cancels
    has_one_checkpoint: bool = False  # written at evaluations, each over the one before
    saves_in_background: bool = False  # a checkpoint costs what training waits for it
    slows_down_by_plan: bool = False  # its windows and batches grow during the run
    is_float32_on_mps: bool = False  # whatever dtype says

    @property
    def evaluates_inside_iteration(self) -> bool:
        """A printed time includes the evaluation, and no other figure tells the two apart."""
        return self.time_holds_eval and not self.is_run_log
