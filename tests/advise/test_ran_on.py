"""Logs that do not name their device, and what `advise` takes from them."""

import re

import pytest
from advising import GPT2_HEAD, as_data, nanogpt_log, reason_of, refused, told

from stepglass.explain.render.languages import LANGUAGES


def ddp_log() -> str:
    """nanoGPT on eight A100: the tokens of all, the MFU of one."""
    return nanogpt_log(time_ms=250, mfu=67.3, head=GPT2_HEAD)


def small_log(*settings: str, time_ms: float = 110, mfu: float = 2.3) -> str:
    small = ["batch_size = 4", "gradient_accumulation_steps = 16", "n_layer = 6", "n_head = 6",
             "n_embd = 384", "block_size = 256", "max_iters = 5000",
             "dataset = shakespeare_char", *settings]  # fmt: skip
    head = "found vocab_size = 65 (inside x)"
    return nanogpt_log(*small, time_ms=time_ms, mfu=mfu, head=head)


# -- another device -------------------------------------------------------------------------------


def test_a_speed_that_the_device_cannot_have_is_another_devices(capsys):
    """It said MFU 153.8 %, measured."""
    log = nanogpt_log(time_ms=2000, mfu=66.9, head=GPT2_HEAD)
    answer = as_data(capsys, log, "--device=RTX 4070")
    assert "at most 58.3, so the log is from another device" in reason_of(answer, "device")["text"]
    assert answer["expect"]["mfu"] < 0.9
    assert answer["expect"]["ms_per_iter"] > 5000
    assert "measured" not in {reason["basis"] for reason in answer["reasons"]}
    own = as_data(capsys, log, "--device=A100 40GB")
    assert own["expect"]["mfu"] == pytest.approx(0.67, abs=0.01)
    assert "device" not in {reason["setting"] for reason in own["reasons"]}


@pytest.mark.parametrize("device", ["T4", "V100 16GB", "2x"])
def test_no_answer_has_an_mfu_above_one(capsys, device):
    """T4 and V100 have no bfloat16, which the log may say all the same."""
    log = nanogpt_log(time_ms=4000, mfu=33.65, head=GPT2_HEAD)
    words = ["--device=V100 16GB", "--nproc=2"] if device == "2x" else [f"--device={device}"]
    for settings in ([], ["--compile=False"], ["--dtype=float32"]):
        answer = as_data(capsys, log, *words, *settings)
        assert answer["expect"]["mfu"] < 1.0


@pytest.mark.parametrize("device", ["cpu", "m2"])
def test_a_log_of_a_gpu_says_nothing_of_another_kind_of_device(capsys, device):
    """nanoGPT prints what is not its default, and its default device is a CUDA GPU."""
    for log in (small_log(), small_log("dtype = bfloat16")):
        answer = as_data(capsys, log, f"--device={device}")
        assert reason_of(answer, "device")["text"].startswith("The log is from a CUDA GPU.")
        assert answer["expect"]["ms_per_iter"] != pytest.approx(110, rel=0.01)
    log = small_log(
        f"device = {'mps' if device == 'm2' else 'cpu'}", "dtype = float32", time_ms=1100
    )
    named = {"m2": "m2 16gb"}.get(device, device)
    same = as_data(capsys, log, f"--device={named}", "--compile=False")
    assert "device" not in {reason["setting"] for reason in same["reasons"]}


def test_an_excerpt_without_a_head_is_judged_by_its_speed_alone(capsys):
    """It may be of any device, but no CPU computes as fast as a large GPU."""
    for time_ms, is_cpus in ((2000, False), (90_000, True)):
        log = nanogpt_log(time_ms=time_ms, mfu=67.3 * 2000 / time_ms)
        answer = as_data(capsys, log, "--recipe=gpt2", "--device=cpu", "--dtype=float32")
        settings = {reason["setting"] for reason in answer["reasons"]}
        assert ("device" in settings) != is_cpus
        assert (answer["expect"]["ms_per_iter"] is not None) == is_cpus


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("device", ["4070", "m2", "cpu"])
def test_another_device_is_explained_in_every_language(capsys, language, device):
    log = nanogpt_log(time_ms=2000, mfu=66.9, head=GPT2_HEAD)
    words = ["--device=" + device]
    text = told(capsys, log, *words, lang=language).split("\n\n")[-1]
    title = {"en": "device", "de": "Gerät", "es": "dispositivo", "fr": "matériel"}[language]
    assert re.search(rf"^  {title} \[", text, re.MULTILINE)


# -- several GPUs ---------------------------------------------------------------------------------


def test_the_gpus_of_a_log_follow_from_its_mfu(capsys):
    """It said MFU 538.4 %, measured."""
    answer = as_data(capsys, ddp_log(), "--device=A100")
    assert answer["expect"]["mfu"] == pytest.approx(0.673, abs=0.005)
    assert answer["expect"]["ms_per_iter"] == pytest.approx(250, rel=0.01)
    assert "its total speed is that of 8 GPUs." in reason_of(answer, "nproc")["text"]
    assert answer["settings"]["gradient_accumulation_steps"] % 8 == 0
    alone = as_data(capsys, nanogpt_log(time_ms=2000, mfu=67.3, head=GPT2_HEAD), "--device=A100")
    assert "nproc" not in {reason["setting"] for reason in alone["reasons"]}


def test_a_log_of_several_gpus_says_nothing_of_one_slower_card(capsys):
    answer = as_data(capsys, ddp_log(), "--device=4070")
    assert "the log is from another device" in reason_of(answer, "device")["text"]
    assert "nproc" not in {reason["setting"] for reason in answer["reasons"]}


@pytest.mark.parametrize("mfu", [67.3 / 1.55, 67.3 * 2.2, 67.3])
def test_there_is_one_mfu_in_an_answer(capsys, mfu):
    """Two TITAN Xp with settings that do not quite fit had 4.0 % in one place, 1.8 % in another."""
    log = nanogpt_log(time_ms=4000, mfu=mfu, head=GPT2_HEAD)
    text = told(capsys, log, "--device=A100")
    assert len(set(re.findall(r"MFU +(\d+\.\d)%", text))) == 1


# -- what is said of the speed --------------------------------------------------------------------


def test_an_unknown_device_shows_its_speed_if_not_its_mfu(capsys):
    log = nanogpt_log(time_ms=4627, mfu=28.9, head=GPT2_HEAD)
    text = " ".join(told(capsys, log).split())
    assert re.search(r"MFU n/a, 90\.\d TFLOP/s measured", text)
    assert re.search(r"Measured with these settings, 90\.\d TFLOP/s\.", text)
    assert as_data(capsys, log)["expect"]["mfu"] is None


def test_what_makes_it_faster_is_named(capsys):
    """It said that batch_size=64 fits, though only compile changed."""
    log = small_log("compile = False")
    text = " ".join(told(capsys, log, "--device=4090").split())
    assert "With --batch_size=64 --gradient_accumulation_steps=1 --compile=True it should" in text
    whole = nanogpt_log("compile = False", time_ms=9000, mfu=14.9, head=GPT2_HEAD)
    text = " ".join(told(capsys, whole, "--device=4090").split())
    assert "With --compile=True it should be" in text


def test_what_compiling_saves_follows_from_the_measured_time(capsys):
    """A run of 245 days was said to take 29 without compiling."""
    for settings, share in ((("compile = True",), 1 / 0.65), (("compile = False",), 1.0)):
        log = nanogpt_log(*settings, "max_iters = 600", time_ms=60_000, mfu=2.2, head=GPT2_HEAD)
        reason = reason_of(as_data(capsys, log, "--device=4090"), "compile")["text"]
        hours, minutes = map(int, re.findall(r"(\d+)\s+h (\d+)\s+min", reason)[-1])
        assert hours + minutes / 60 == pytest.approx(10 * share, rel=0.02)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_card_that_is_sold_in_several_sizes_says_so(capsys, language):
    """It took a 3060 for the rare one with 8 GB, without a word."""
    text = " ".join(told(capsys, "--device=3060", "--recipe=gpt2", lang=language).split())
    assert "--device='RTX 3060 8GB'" in text
    assert as_data(capsys, "--device=3060", "--recipe=gpt2")["device_memory_gb"] == 12.0
    for name in ("RTX 3060 8GB", "4090"):
        text = told(capsys, f"--device={name}", "--recipe=gpt2", lang=language)
        assert "--device=" not in text


# -- this machine ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("device", "kind"), [("cuda", "CUDA"), ("cuda:1", "CUDA"),
                                              ("mps", "Apple")])  # fmt: skip
def test_a_kind_of_gpu_that_is_not_here_is_refused(capsys, monkeypatch, device, kind):
    """It answered for the CPU without a word."""
    monkeypatch.setenv("PATH", "")
    for words in ([], [ddp_log()]):
        said = refused(capsys, *words, f"--device={device}")
        assert f"no {kind} GPU was found on this machine; name the one that you mean" in said
