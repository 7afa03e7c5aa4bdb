"""Several GPUs that share an update: `--nproc`, or a log of nanoGPT's with torchrun."""

from stepglass.advise.case import Basis, Case, Reason
from stepglass.errors import ConfigError


def check_processes(case: Case) -> None:
    """Raise ConfigError for processes that cannot train together, or whose needs are not known."""
    cfg = case.subject.cfg
    if cfg.nproc == 1:
        return
    if case.target.kind == "mps":
        raise ConfigError(
            f"--nproc={cfg.nproc}: {case.target.name} is one device; leave --nproc out"
        )
    if cfg.parallel == "fsdp":
        raise ConfigError(
            "--parallel=fsdp: advise knows only the memory of processes that each have the whole "
            "model; leave --parallel out"
        )


def check_equal_shares(case: Case, sequences: int) -> None:
    """Raise ConfigError if the processes cannot share an update equally: `train` refuses it."""
    processes = case.subject.cfg.nproc
    if sequences % processes:
        raise ConfigError(
            f"{processes} processes cannot share the {sequences} sequences of an update equally; "
            f"expected a multiple of {processes} as batch_size x gradient_accumulation_steps"
        )


def process_reasons(case: Case) -> list[Reason]:
    if case.devices == 1:
        return []
    is_measured = case.subject.measured is not None and case.subject.measured.step_ms is not None
    basis: Basis = "measured" if is_measured else "estimated"
    variant = "asked"
    if is_measured:
        variant = "found" if case.subject.has_found_processes else "measured"
    return [Reason("nproc", basis, variant=variant, processes=case.devices)]
