"""Other figures of an evaluation, such as accuracy: do they still improve?"""

import re
from typing import NamedTuple

from stepglass.logs.segment import Eval
from stepglass.logs.table import median

# Words in the names of figures. Perplexity is not among them: it is the loss in another form.
HIGHER_IS_BETTER = {
    *("acc", "accuracy", "f1", "bleu", "chrf", "meteor", "rouge", "rouge1", "rouge2", "rougel"),
    *("map", "ap", "iou", "miou", "auc", "auroc", "recall", "precision", "mcc", "matthews", "em"),
    *("exact", "top1", "top5", "pearson", "spearman", "r2", "psnr", "ssim", "ndcg", "mrr", "dice"),
}
LOWER_IS_BETTER = {"wer", "cer", "ter", "per", "error", "err", "mae", "rmse", "fid", "eer"}


class Improvement(NamedTuple):
    """A figure that got better after the best loss."""

    name: str
    before: float
    now: float


def improvement_since(best: Eval, after: list[Eval]) -> Improvement | None:
    """The first figure that is better in the last evaluations than in that with the best loss."""
    for name, before in (best.metrics or {}).items():
        sign = _direction(name)
        late = [e.metrics[name] for e in after[-3:] if e.metrics and name in e.metrics]
        if sign and late and sign * (median(late) - before) > 0:
            return Improvement(name, before, late[-1])
    return None


def _direction(name: str) -> int:
    """
    >>> _direction("eval_wer"), _direction("rouge-L"), _direction("runtime")
    (-1, 1, 0)
    """
    words = set(re.split(r"[^a-z0-9]+", name.lower())) | {re.sub(r"[^a-z0-9]", "", name.lower())}
    return 1 if words & HIGHER_IS_BETTER else -1 if words & LOWER_IS_BETTER else 0
