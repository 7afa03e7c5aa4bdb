"""`stepglass advise`, as a person types it."""

import json
import re
import shlex
import stat
import tomllib
from pathlib import Path

import pytest
from advising import GPT2_HEAD, advice_for, as_data, nanogpt_log, refused, told

from stepglass.advise import target
from stepglass.cli import main
from stepglass.explain.render.languages import LANGUAGES
from stepglass.measure.devices import known_devices
from stepglass.settings.command_line import read_command_line, resolve

SETTINGS = [
    "batch_size",
    "gradient_accumulation_steps",
    "dtype",
    "compile",
    "eval_interval",
    "eval_iters",
    "checkpoint_interval",
]


# -- the answer -----------------------------------------------------------------------------------


def test_the_answer_begins_with_what_to_type_and_that_can_be_typed(capsys):
    text = told(capsys, "--device=RTX 4070", "--recipe=gpt2")
    first, rest = text.split("\n\n", 1)
    assert first.startswith("Type:\n  stepglass train --recipe=gpt2 --batch_size=")
    words = shlex.split(first.removeprefix("Type:").replace("\\\n", " "))
    assert words[:2] == ["stepglass", "train"]
    cfg = resolve(read_command_line(words[2:]), "gpt2", lambda _: {})
    assert cfg.tokens_per_iter == 491_520
    assert (cfg.dtype, cfg.compile) == ("bfloat16", True)
    assert rest.startswith("RTX 4070 (12.0 GB, 58.3 TFLOP/s in bfloat16): gpt2 model")


def test_json_has_exactly_the_keys_of_the_contract(capsys):
    answer = as_data(capsys, "--device=4070", "--recipe=gpt2")
    assert list(answer) == [
        "device",
        "peak_tflops",
        "device_memory_gb",
        "settings",
        "expect",
        "reasons",
    ]
    assert list(answer["settings"]) == SETTINGS
    assert list(answer["expect"]) == ["ms_per_iter", "tokens_per_s", "mfu", "memory_gb", "hours"]
    assert (answer["device"], answer["peak_tflops"]) == ("RTX 4070", 58.3)
    assert answer["device_memory_gb"] == 12.0
    for reason in answer["reasons"]:
        assert list(reason) == ["setting", "basis", "text"]
        assert reason["basis"] in ("measured", "calculated", "estimated")
        assert len(reason["text"]) > 10 or reason["text"].startswith("As asked")
    assert {reason["setting"] for reason in answer["reasons"]} >= {
        *SETTINGS,
        "max_iters",
        "ms_per_iter",
        "memory_gb",
        "hours",
    }


def test_the_toml_file_is_what_train_takes(capsys):
    answer = as_data(capsys, "--device=4070", "--recipe=gpt2", "-o", "advised.toml")
    command = read_command_line(["advised.toml"])
    cfg = resolve(command, command.value("recipe"), lambda _: {})
    assert {key: getattr(cfg, key) for key in SETTINGS} == answer["settings"]
    assert (cfg.model, cfg.n_layer, cfg.learning_rate, cfg.max_iters) == ("gpt2", 12, 6e-4, 600_000)
    assert cfg.in_iterations().lr_decay_iters == 600_000
    assert tomllib.loads(Path("advised.toml").read_text())["recipe"] == "none"


@pytest.mark.finished_run
def test_a_run_trains_on_with_the_file_that_it_was_advised(capsys):
    told(capsys, "out", "-o", "advised.toml")
    assert main(["train", "advised.toml", "--out_dir=again", "--max_iters=2"]) == 0
    capsys.readouterr()


def test_nanogpts_flags_describe_the_same_run(capsys):
    text = told(capsys, "--device=4090", "--recipe=shakespeare_char_gpt2", "--for=nanogpt")
    first = text.split("\n\n", 1)[0].replace("\\\n", " ")
    words = shlex.split(first.removeprefix("Type:"))
    assert words[:2] == ["python", "train.py"]
    assert "--checkpoint_interval" not in first
    Path("empty.py").write_text("")
    cfg = resolve(read_command_line(["empty.py", *words[2:]]), "none", lambda _: {})
    assert (cfg.n_layer, cfg.n_embd, cfg.block_size, cfg.dropout) == (6, 384, 256, 0.2)
    assert (cfg.batch_size, cfg.gradient_accumulation_steps) == (64, 1)
    assert (cfg.device, cfg.lr_decay_iters, cfg.max_iters) == ("cuda", 5000, 5000)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("columns", [50, 80])
def test_the_answer_fits_the_terminal_in_every_language(capsys, monkeypatch, language, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in (["--device=4070", "--recipe=gpt2"], ["--device=m3 max"], ["--device=cpu"]):
        text = told(capsys, *words, lang=language)
        assert max(map(len, text.splitlines())) <= columns, text
        assert "stepglass train" in text
        assert language == "en" or "estimated" not in text


def test_settings_are_not_translated_and_figures_are(capsys):
    text = told(capsys, "--device=4070", "--recipe=gpt2", lang="de")
    assert "gradient_accumulation_steps" in text
    assert "12,0 GB" in text
    assert "geschätzt" in text


# -- the settings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("known", known_devices(), ids=lambda known: known.name)
def test_every_device_gets_a_batch_that_fits_with_a_margin(known):
    advice = advice_for(known.name, "--recipe=gpt2")
    assert advice.expect.memory.total <= 0.8 * known.memory_bytes
    steps = advice.settings["gradient_accumulation_steps"]
    assert advice.settings["batch_size"] * steps == 480
    assert advice.expect.mfu is not None
    assert 0.05 < advice.expect.mfu < 0.95


def test_a_larger_card_takes_a_larger_batch():
    sizes = [advice_for(name, "--recipe=gpt2").settings["batch_size"]
             for name in ("RTX 3070", "RTX 4070", "RTX 4080", "RTX 4090", "RTX A6000")]  # fmt: skip
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_evaluations_stay_in_the_budget_and_keep_their_windows():
    for recipe in ("gpt2", "gpt2_modern", "shakespeare_char", "shakespeare_char_gpt2"):
        for name in ("3060 12gb", "4090", "h100", "m1"):
            advice = advice_for(name, f"--recipe={recipe}")
            reason = next(r for r in advice.reasons if r.setting == "eval_interval")
            assert reason.values["eval_share"] <= 0.05, (recipe, name)
    windows = advice_for("4070", "--recipe=gpt2").settings
    assert windows["eval_iters"] * windows["batch_size"] == pytest.approx(200 * 12, rel=0.05)


@pytest.mark.parametrize("trainer", ["nanogpt", "stepglass"])
def test_a_run_that_will_overfit_gets_enough_evaluations_to_see_it(capsys, trainer):
    """It had four evaluations of 82 batches, under a warning that the data is seen 82 times."""
    char = ["eval_interval = 250", "eval_iters = 200", "dataset = 'shakespeare_char'",
            "gradient_accumulation_steps = 1", "batch_size = 64", "block_size = 256",
            "n_layer = 6", "n_head = 6", "n_embd = 384", "max_iters = 5000",
            "lr_decay_iters = 5000"]  # fmt: skip
    Path("train_shakespeare_char.py").write_text("\n".join(char) + "\n")
    words = ["train_shakespeare_char.py", "--device=4090", f"--for={trainer}"]
    settings = as_data(capsys, *words)["settings"]
    assert 10 <= 5000 / settings["eval_interval"] <= 40
    assert 20 <= settings["eval_iters"] < 30
    kept = as_data(capsys, *words, "--eval_iters=200")["settings"]
    assert kept["eval_iters"] == 200


def test_a_slow_device_is_evaluated_more_often_in_updates():
    slow, fast = (advice_for(name, "--recipe=gpt2") for name in ("m1", "h100"))
    assert slow.settings["eval_interval"] <= fast.settings["eval_interval"]


def test_a_flag_is_kept_and_the_rest_follows(capsys):
    answer = as_data(capsys, "--device=4090", "--recipe=gpt2", "--batch_size=6",
                     "--eval_interval=77", "--compile=False", "--dtype=float16",
                     "--checkpoint_interval=500")  # fmt: skip
    settings = answer["settings"]
    assert (settings["batch_size"], settings["gradient_accumulation_steps"]) == (6, 80)
    assert (settings["eval_interval"], settings["compile"]) == (77, False)
    assert (settings["dtype"], settings["checkpoint_interval"]) == ("float16", 500)


def test_a_gpu_without_bfloat16_gets_float16():
    assert advice_for("T4", "--recipe=gpt2").settings["dtype"] == "float16"
    assert advice_for("4070", "--recipe=gpt2").settings["dtype"] == "bfloat16"
    assert advice_for("m2", "--recipe=gpt2").settings["dtype"] == "float32"


def test_a_short_run_is_not_compiled():
    assert advice_for("4090", "--recipe=gpt2").settings["compile"] is True
    assert advice_for("4090", "--recipe=gpt2", "--max_iters=20").settings["compile"] is False


def test_the_data_budget_names_the_passes_and_a_better_length(capsys):
    text = told(capsys, "--device=4070", "--recipe=gpt2")
    flat = " ".join(text.split())
    assert "294.91B tokens in 600000 updates: 2,371 per parameter, 32.6 passes over" in flat
    assert "about 20 per parameter, here max_iters=5061" in flat


def test_the_model_is_given_as_for_train(capsys):
    Path("small.py").write_text("n_layer = 6\nn_head = 6\nn_embd = 384\nblock_size = 256\n")
    Path("wide.toml").write_text("n_embd = 768\n")
    small = as_data(capsys, "small.py", "--device=4090")
    wide = as_data(capsys, "small.py", "wide.toml", "--device=4090")
    assert small["expect"]["ms_per_iter"] < wide["expect"]["ms_per_iter"]
    text = told(capsys, "small.py", "--device=4090")
    assert "stepglass train small.py --batch_size" in text


def test_a_data_set_that_is_here_is_looked_at(capsys):
    meta = {
        "tokenizer": {"kind": "bpe"},
        "vocab_size": 512,
        "splits": {"train": {"tokens": 1_000_000}, "val": {"tokens": 10_000}},
    }
    Path("data/mine").mkdir(parents=True)
    Path("data/mine/meta.json").write_text(json.dumps(meta))
    text = told(capsys, "--device=4090", "--dataset=mine", "--max_iters=1000")
    assert "8.2 passes over mine" in " ".join(text.split())
    assert "is not known" not in text
    unknown = told(capsys, "--device=4090", "--dataset=elsewhere", "--max_iters=1000")
    assert "The vocabulary of elsewhere is not known; 50304 was assumed." in " ".join(
        unknown.split()
    )


# -- a run or a log -------------------------------------------------------------------------------


@pytest.mark.finished_run
def test_a_run_shows_what_was_measured(capsys):
    answer = as_data(capsys, "out")
    text = " ".join(told(capsys, "out").split())
    assert answer["device"] == "CPU"
    assert answer["expect"]["ms_per_iter"] > 0
    measured = [r["setting"] for r in answer["reasons"] if r["basis"] == "measured"]
    assert {"ms_per_iter", "hours"} <= set(measured)
    assert "Keep the settings of out" in text or "Add to the command line of out" in text


@pytest.mark.finished_run
def test_a_run_can_be_asked_about_a_longer_one_and_about_another_device(capsys):
    short, long = as_data(capsys, "out"), as_data(capsys, "out", "--max_iters=100000")
    assert long["expect"]["hours"] > 100 * short["expect"]["hours"]
    assert as_data(capsys, "out", "--device=cpu") == short
    other = as_data(capsys, "out", "--device=4090")
    assert other["device"] == "RTX 4090"
    assert "measured" not in {r["basis"] for r in other["reasons"]}


def test_a_log_of_a_busy_card_keeps_its_batch(capsys):
    log = nanogpt_log(time_ms=4627, mfu=28.9, head=GPT2_HEAD)
    answer = as_data(capsys, log, "--device=4090")
    assert answer["settings"]["batch_size"] == 12
    assert answer["expect"]["ms_per_iter"] == pytest.approx(4627, rel=0.001)
    assert answer["expect"]["mfu"] == pytest.approx(0.548, abs=0.01)
    text = " ".join(told(capsys, log, "--device=4090").split())
    assert "the device is already busy" in text


def test_a_log_of_small_micro_batches_gets_larger_ones_and_a_new_time(capsys):
    small = ["batch_size = 4", "gradient_accumulation_steps = 16", "n_layer = 6", "n_head = 6",
             "n_embd = 384", "block_size = 256", "compile = False", "max_iters = 5000",
             "dataset = shakespeare_char"]  # fmt: skip
    log = nanogpt_log(*small, time_ms=110, mfu=3.4, head="found vocab_size = 65 (inside x)")
    answer = as_data(capsys, log, "--device=RTX 4090")
    settings = answer["settings"]
    assert (settings["batch_size"], settings["gradient_accumulation_steps"]) == (64, 1)
    assert answer["expect"]["ms_per_iter"] < 0.7 * 110
    text = " ".join(told(capsys, log, "--device=RTX 4090").split())
    assert "Add to the command line of train.log: --batch_size=64" in text
    assert re.search(r"with batch_size=4 \(MFU \d\.\d%\)\. With --batch_size=64 ", text)


@pytest.mark.parametrize("device", [["--device=A100 80GB"], []])
def test_a_run_that_ran_out_of_memory_gets_half_its_batch(capsys, device):
    log = nanogpt_log("batch_size = 16", "gradient_accumulation_steps = 30", time_ms=900, mfu=30,
                      head=GPT2_HEAD)  # fmt: skip
    died = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a"
    Path(log).write_text(Path(log).read_text() + f"Traceback (most recent call last):\n{died}\n")
    answer = as_data(capsys, log, *device)
    assert answer["settings"]["batch_size"] == 8
    assert answer["settings"]["gradient_accumulation_steps"] == 60
    reason = next(r for r in answer["reasons"] if r["setting"] == "batch_size")
    assert reason["text"].startswith("The run ran out of memory with 16.")
    assert reason["basis"] == "measured"


def test_a_log_without_a_device_is_answered_as_far_as_it_goes(capsys):
    log = nanogpt_log(time_ms=4627, mfu=28.9, head=GPT2_HEAD)
    answer = as_data(capsys, log)
    assert (answer["device"], answer["peak_tflops"], answer["expect"]["mfu"]) == (None, None, None)
    assert answer["expect"]["tokens_per_s"] == pytest.approx(106_200, rel=0.01)
    assert "Unknown device (name it with --device)" in told(capsys, log)


# -- this machine ---------------------------------------------------------------------------------


def test_without_a_gpu_it_is_the_cpu_and_says_how_to_measure(capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    answer = as_data(capsys)
    assert (answer["device"], answer["expect"]["ms_per_iter"]) == ("CPU", None)
    assert answer["expect"]["memory_gb"] > 0
    text = " ".join(told(capsys).split())
    assert "Add --measure to train for a few updates here and measure it." in text


@pytest.mark.parametrize(
    ("said", "name", "gigabytes"),
    [
        ("NVIDIA GeForce RTX 4060 Ti, 16380 MiB", "RTX 4060 Ti", 16.0),
        ("NVIDIA A100-SXM4-80GB, 81920 MiB", "A100", 80.0),
        ("Some Future GPU, 65536 MiB", "Some Future GPU", 68.719),
    ],
)
def test_the_card_that_nvidia_smi_names_is_the_device(
    capsys, monkeypatch, tmp_path, said, name, gigabytes
):
    script = tmp_path / "bin" / "nvidia-smi"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\necho '{said}'\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    answer = as_data(capsys, "--recipe=gpt2")
    assert (answer["device"], answer["device_memory_gb"]) == (name, gigabytes)


def test_a_driver_that_fails_leaves_the_cpu(monkeypatch, tmp_path):
    script = tmp_path / "nvidia-smi"
    script.write_text("#!/bin/sh\nexit 9\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert target.this_machine().kind == "cpu"


# -- bad input ------------------------------------------------------------------------------------

HUGE = ["--recipe=gpt2", "--n_layer=96", "--n_head=96", "--n_embd=12288"]
LARGE = ["--recipe=gpt2", "--n_layer=48", "--n_head=25", "--n_embd=1600"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device=RTX 9999"], "not in the table of known devices; for example: RTX"),
        (["--device=4070", *LARGE], "GB) would hold it; or lower --n_layer"),
        (["--device=4070", *HUGE], "cards of 288.0 GB that share it"),
        (["--device=4070", "--recipe=gpt2", "--batch_size=640"], "batch_size=640 needs"),
        (["--device=T4", "--recipe=gpt2", "--dtype=bfloat16"], "T4 has no bfloat16 units"),
        (["--device=4070", "--recipe=quick", "--for=nanogpt"], "nanoGPT has the gpt2 model only"),
        (["--device=4070", "--n_head=5"], "n_head=5 must divide n_embd=256"),
        (["--device=4070", "--recipe=nope"], "--recipe expects one of"),
        (["--device=4070", "--for=jax"], "--for: for expects auto or stepglass or nanogpt"),
        (["--device=4070", "-o", "x.txt"], "--out expects a name that ends in .toml"),
        (["--device=4070", "-o", "x.toml", "--for=nanogpt"], "do not go together"),
        (["--device=4070", "-o", "no/such/x.toml"], "cannot be written"),
        (["nowhere"], "expected a run directory or a log, found nothing"),
        (["a", "b"], "expected at most one run or log, found 2"),
        (["--batchsize=3"], "did you mean batch_size?"),
        (["--init_from=resume", "--recipe=gpt2"], "name its folder: stepglass advise RUN"),
    ],
)
def test_wrong_input_is_one_line_that_says_what_to_do(capsys, words, said):
    assert said in refused(capsys, *words)
    assert not list(Path().glob("*.toml"))


def test_a_file_that_is_no_log_is_refused(capsys):
    Path("notes.txt").write_text("nothing of a training\n" * 30)
    assert main(["advise", "notes.txt"]) == 2
    assert capsys.readouterr().err.startswith("error: notes.txt: no line of a format I know")


def test_a_log_that_hides_its_model_asks_for_it(capsys):
    log = nanogpt_log(time_ms=33.2, mfu=11.1)
    assert "the log does not say what the model is; describe it:" in refused(capsys, log)
    assert as_data(capsys, log, "--recipe=shakespeare_char_gpt2")["expect"]["ms_per_iter"] > 30


def test_a_log_that_contradicts_the_settings_is_refused(capsys):
    log = nanogpt_log(time_ms=33.2, mfu=11.1, head="number of parameters: 10.65M")
    assert "a model of 10.65M parameters as in the log, found settings for" in refused(capsys, log)
    log = nanogpt_log(time_ms=33.2, mfu=11.1, head="tokens per iteration will be: 16,384")
    said = refused(capsys, log, "--recipe=gpt2")
    assert "the log says 16,384 tokens per iteration" in said
