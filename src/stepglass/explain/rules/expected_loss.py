"""What loss to expect on Shakespeare's characters, where nanoGPT says what it reaches."""

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part

DATASET = "shakespeare_char"
VOCAB = 65
SMALL_WIDTH = 128  # n_embd of the configuration for a CPU
BEST_OF_SMALL = 1.88  # validation loss, after 2,000 iterations
BEST_OF_LARGE = 1.47  # of the configuration for a GPU, after 5,000 iterations
WORSE = 1.05


def find_expected_loss(part: Part) -> list[Finding]:
    best = part.best_eval
    if not part.format.has_nanogpt_defaults or part.setting("dataset") != DATASET:
        return []
    if best is None or best.val_loss is None:
        return []
    if not part.has_ended or not part.starts_from_scratch or not part.is_last:
        return []
    if part.fact("vocab_size") not in (None, float(VOCAB)):
        return []  # another text under this name
    width = part.number_setting("n_embd")
    usual = BEST_OF_SMALL if width is not None and width <= SMALL_WIDTH else BEST_OF_LARGE
    is_worse = best.val_loss > WORSE * usual
    return [
        Finding(
            "expected-loss",
            "supported",
            "note",
            {
                "best_iter": best.iter,
                "best_loss": best.val_loss,
            },
            [best.line, *part.line_of_setting("dataset")],
            [best.iter],
            variant="worse" if is_worse else "usual",
        )
    ]
