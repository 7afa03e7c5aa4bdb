"""Too few or too many tokens for the model, or too many passes over the data."""

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part


def find_data_budget(part: Part) -> list[Finding]:
    parameters, per_iter = part.fact("parameters"), part.tokens_per_iter
    length = part.max_iters or (part.segment.last_iter if part.has_ended else None)
    last = max([part.segment.last_iter or 0, *(e.iter for e in part.segment.evals[-1:])])
    has_stopped = any(event.name == "stopped-early" for event in part.segment.events)
    if (part.segment.end or has_stopped) and part.segment.last_iter:
        length = last  # it ended, sooner or later than planned
    if not parameters or not per_iter or not length or not part.starts_from_scratch:
        return []
    tokens = length * per_iter
    ratio = tokens / parameters
    epochs = tokens / part.train_tokens if part.train_tokens else None
    is_few, is_many = ratio < 5, ratio > 100
    is_repeated = epochs is not None and epochs > 4
    if not (is_few or is_many or is_repeated):
        return []
    return [
        Finding(
            "data-budget",
            "established",
            "note",
            {
                "tokens": tokens,
                "parameters": parameters,
                "ratio": ratio,
                "epochs": epochs,
                "max_iters": length,
                "is_planned": "yes" if not has_stopped and last < length - 1 else "no",
            },
            part.line_of_fact("parameters")
            + part.line_of_fact("tokens_per_iter")
            + part.line_of_setting("max_iters"),
            variant="epochs" if is_repeated else "few" if is_few else "many",
        )
    ]
