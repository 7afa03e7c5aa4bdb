"""Facts about a log format that `explain` needs. Each reader declares its own.

    class Nanochat:
        format = LogFormat("nanochat", limits=("format-nanochat",))

Each fact is named after what the trainer does, never after the trainer. So a new format needs no
change outside its reader.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class LogFormat:
    """Facts about a format. The defaults hold for most trainers."""

    name: str
    # What a log of this format cannot show: message ids of the catalogues without `cannot-`.
    limits: tuple[str, ...] = ()

    # -- what the printed values include
    time_holds_eval: bool = False  # an iteration's time includes the evaluation before it
    is_run_log: bool = False  # our own run.jsonl, which records every phase of an iteration
    times_evals_apart: bool = False  # evaluations and checkpoints print their own times
    prints_saves: bool = False  # every checkpoint prints a line
    averages_mfu: bool = False  # the printed MFU is nanoGPT's moving average
    mfu_is_of_own_device: bool = False  # MFU divides by the peak of the device that ran
    assumed_peak_tflops: float | None = None  # MFU divides by this on every device
    fallback_peak_tflops: float | None = None  # MFU divides by this if the device is unknown
    time_holds_data: bool = False  # an iteration's time includes the wait for its batch
    times_everything: bool = False  # an iteration's time includes all since the previous line
    loss_is_nats: bool = True  # the loss is a token's cross-entropy to the base e
    elapsed_name: str = ""  # what the log calls its own clock
    elapsed_excludes: tuple[str, ...] = ()  # phases during which that clock stands still
    smooths_loss: bool = False  # the printed loss is a moving average
    is_general: bool = False  # columns were guessed: nothing is more than `supported`
    hides_nan_loss: bool = False  # a NaN loss is replaced by an average
    counts: str = "steps"  # what an iteration is: steps, epochs or micro-batches

    # -- what the trainer does
    has_nanogpt_settings: bool = False  # settings have the same names as in nanoGPT
    has_nanogpt_defaults: bool = False  # settings that are not given have nanoGPT's defaults
    max_iters_is_last_iter: bool = False  # the last iteration is max_iters, not max_iters - 1
    evaluates_random_batches: bool = False  # draws `eval_iters` new batches each time
    evaluates_same_windows: bool = False  # most noise cancels between evaluations
    has_one_checkpoint: bool = False  # each evaluation overwrites the one checkpoint
    saves_in_background: bool = False  # a checkpoint costs only the time that training waits for it
    slows_down_by_plan: bool = False  # windows and batches grow during the run
    is_float32_on_mps: bool = False  # runs in float32 on MPS even if dtype differs

    @property
    def evaluates_inside_iteration(self) -> bool:
        """Does a printed time include the evaluation, with no other value to separate the two?"""
        return self.time_holds_eval and not self.is_run_log
