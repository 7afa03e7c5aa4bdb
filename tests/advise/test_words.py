"""The words of `advise`: plurals, what is unknown, and hints for what people type."""

import stat
from pathlib import Path

import pytest
from advising import GPT2_HEAD, nanogpt_log, refused, told

from stepglass.explain.render.languages import LANGUAGES

BASIS = {"en": "calculated", "de": "berechnet", "es": "calculado", "fr": "calculé"}
UPDATES = {"en": "updates", "de": "Updates", "es": "actualizaciones", "fr": "mises à jour"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("words", [["--max_iters=1"], ["--epochs=0.0001"], ["--minutes=0.01"]])
def test_one_update_is_singular_in_every_language(capsys, language, words):
    text = told(capsys, "--device=m2", "--recipe=gpt2", *words, "--compile=False", lang=language)
    text = " ".join(text.split())
    assert f" 1 {UPDATES[language]}" not in text.replace(f"= 1 {UPDATES[language]}", "")
    several = told(capsys, "--device=m2", "--recipe=gpt2", "--max_iters=70", lang=language)
    assert f"70 {UPDATES[language]}" in " ".join(several.split())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_comments_of_a_file_are_in_its_language(capsys, language):
    """The French ones said (calculated)."""
    told(capsys, "--device=4090", "--recipe=gpt2", "-o", "x.toml", lang=language)
    comments = [line for line in Path("x.toml").read_text().splitlines() if line.startswith("# ")]
    assert any(f"({BASIS[language]}):" in line for line in comments)
    assert language == "en" or not any("(calculated)" in line for line in comments)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_compiling_saves_is_of_a_run_without_it(capsys, language):
    without = {"en": "without it", "de": "Lauf ohne", "es": "sin compilar", "fr": "sans compiler"}
    for iters in (30, 600_000):
        words = ["--device=4090", "--recipe=gpt2", f"--max_iters={iters}"]
        assert without[language] in " ".join(told(capsys, *words, lang=language).split())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_card_whose_memory_is_unknown_has_no_n_a_in_its_sentences(
    capsys, monkeypatch, tmp_path, language
):
    script = tmp_path / "bin" / "nvidia-smi"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho 'NVIDIA GeForce RTX 3080 Laptop GPU, [N/A]'\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    said = {"en": "memory unknown", "de": "Speicher unbekannt", "es": "memoria desconocida",
            "fr": "mémoire inconnue"}  # fmt: skip
    for words in ([], ["--batch_size=4"]):
        text = told(capsys, "--recipe=gpt2", *words, lang=language)
        parts = [part for part in text.split("\n\n") if "  MFU  " not in part]  # not the table
        assert f"RTX 3080 Laptop GPU ({said[language]})" in " ".join(parts[1].split())
        assert "n/a" not in "".join(parts)
        assert "n. v." not in "".join(parts)


def test_a_log_of_nanogpts_is_answered_for_our_trainer_if_it_writes_our_file(capsys):
    """The file had the batch that fits in nanoGPT's memory."""
    log = nanogpt_log("batch_size = 4", "gradient_accumulation_steps = 120", "compile = False",
                      time_ms=9000, mfu=14.9, head=GPT2_HEAD)  # fmt: skip
    told(capsys, log, "--device=4090")
    text = told(capsys, log, "--device=4090", "-o", "ours.toml")
    ours = told(capsys, log, "--device=4090", "--for=stepglass")
    assert text.split("\n\n")[1:-1] == ours.split("\n\n")[1:-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["4090"], "for the device, write --device=4090"),
        (["rtx 4070"], "for the device, write --device='rtx 4070'"),
        (["gpt2"], "for the recipe, write --recipe=gpt2"),
        (["mine"], "for a data set, write --dataset=mine"),
        (["--batch_size=auto"], "or write --measure to try batches on this machine"),
        (["--batch-size", "auto"], "or write --measure to try batches on this machine"),
        (["--device=9999"], "not in the table of known devices; for example: "),
    ],
)
def test_a_hint_names_what_to_type(capsys, words, said):
    assert said in refused(capsys, *words)


def test_no_recipe_is_part_of_what_to_type_if_it_was_asked_for(capsys):
    """Without it, train would take a recipe for the device."""
    text = told(capsys, "--device=4090", "--recipe=none", "--max_iters=9")
    assert "stepglass train --recipe=none --max_iters=9 --batch_size" in text
    Path("small.py").write_text("n_layer = 6\n")  # a config file of nanoGPT's needs none
    assert "train small.py --batch_size" in told(capsys, "small.py", "--device=4090")
