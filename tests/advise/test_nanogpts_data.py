"""`--for=nanogpt`: a name of a data set may mean other data there."""

from pathlib import Path

import pytest
from advising import nanogpt_log, told

CHAR = ["--device=4090", "--recipe=shakespeare_char_gpt2"]


def flat(capsys, *words: str) -> str:
    return " ".join(told(capsys, *words).replace("\\\n", " ").split())


@pytest.mark.parametrize("words", [[], ["--dataset=shakespeare"], ["--dataset=tinyshakespeare"]])
def test_characters_of_shakespeare_are_nanogpts_shakespeare_char(capsys, words):
    """It printed --dataset=shakespeare, which is GPT-2's tokens there."""
    text = flat(capsys, *CHAR, *words, "--for=nanogpt")
    assert "--dataset=shakespeare_char " in text
    assert "81.6 passes over shakespeare_char" in text
    assert "10.65M parameters" in text or "10.75M parameters" in text


def test_epochs_are_those_of_nanogpts_data(capsys):
    text = flat(capsys, *CHAR, "--epochs=10", "--for=nanogpt")
    assert "--max_iters=613 " in text  # of 1,003,854 tokens


def test_a_name_in_nanogpts_own_file_or_log_means_its_data(capsys):
    Path("finetune_shakespeare.py").write_text("dataset = 'shakespeare'\nmax_iters = 20\n")
    text = flat(capsys, "finetune_shakespeare.py", "--device=a100", "--for=nanogpt")
    assert "--dataset=shakespeare " in text
    assert "32.6 passes over shakespeare" in text
    assert "124.37M parameters" in text
    log = nanogpt_log("dataset = shakespeare", "max_iters = 20", time_ms=2000, mfu=67.3,
                      head="number of parameters: 123.59M")  # fmt: skip
    assert "32.6 passes over shakespeare" in flat(capsys, log, "--device=a100")


def test_our_own_trainer_keeps_our_names(capsys):
    assert "passes over shakespeare." in flat(capsys, *CHAR)
    assert "--dataset" not in told(capsys, *CHAR).split("\n\n")[0]
