"""The last printed time and MFU include an evaluation, but people quote the last line."""

from stepglass.explain.finding import Finding
from stepglass.explain.rules.citing import spike_lines
from stepglass.explain.study import Part


def find_last_line_is_eval(part: Part) -> list[Finding]:
    if not part.format.evaluates_inside_iteration or not part.is_last or not part.is_finished:
        return []
    spikes = [s for s in part.timing.spikes if s.line == part.segment.last_line]
    if not spikes or "eval" not in spikes[0].cause or part.segment.last_iter == 0:
        return []
    spike = spikes[0]
    return [
        Finding(
            "last-line-is-eval",
            "supported" if part.timing.has_inferred_evals else "established",
            "note",
            {
                "iter": spike.iter,
                "time_ms": spike.time_ms,
                "normal_ms": part.timing.normal_ms,
                "printed_mfu": part.mfu.printed_last,
                "clean_mfu": part.mfu.clean,
            },
            spike_lines(part, [spike]),
            [spike.iter],
            variant="mfu" if part.mfu.clean is not None and part.mfu.printed_last else "plain",
        )
    ]
