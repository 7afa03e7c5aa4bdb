"""Settings: where they come from, what is refused, and how it is said."""

import resource
from pathlib import Path

import pytest

from stepglass.errors import ConfigError
from stepglass.run_dir.saved_settings import saved_settings
from stepglass.settings import command_line
from stepglass.settings.command_line import read_command_line
from stepglass.settings.lr_schedule import schedule_warnings
from stepglass.settings.nanogpt_defaults import NANOGPT, WHERE_OURS_DIFFER
from stepglass.settings.train import TRAIN_SETTINGS, TrainConfig


def resolve(*argv: str, recipe: str = "none") -> TrainConfig:
    return command_line.resolve(read_command_line(list(argv)), recipe, saved_settings)


# The settings in nanoGPT's train.py, at commit 3adf61e.
NANOGPT_TRAIN_PY = {
    "out_dir": "out", "eval_interval": 2000, "log_interval": 1, "eval_iters": 200,
    "eval_only": False, "always_save_checkpoint": True, "init_from": "scratch",
    "wandb_log": False, "wandb_project": "owt", "wandb_run_name": "gpt2",
    "dataset": "openwebtext", "gradient_accumulation_steps": 5 * 8, "batch_size": 12,
    "block_size": 1024, "n_layer": 12, "n_head": 12, "n_embd": 768, "dropout": 0.0, "bias": False,
    "learning_rate": 6e-4, "max_iters": 600000, "weight_decay": 1e-1, "beta1": 0.9, "beta2": 0.95,
    "grad_clip": 1.0, "decay_lr": True, "warmup_iters": 2000, "lr_decay_iters": 600000,
    "min_lr": 6e-5, "backend": "nccl", "device": "cuda", "dtype": "bfloat16", "compile": True,
}  # fmt: skip


def test_nanogpts_defaults_are_those_of_its_train_py():
    assert {key: NANOGPT[key] for key in NANOGPT_TRAIN_PY} == NANOGPT_TRAIN_PY


def test_our_defaults_are_nanogpts_but_for_a_few():
    cfg = resolve()
    same = set(NANOGPT_TRAIN_PY) - set(WHERE_OURS_DIFFER)
    assert {key: getattr(cfg, key) for key in same} == {key: NANOGPT[key] for key in same}
    # Not nanoGPT's: the interval does that work.
    assert (cfg.always_save_checkpoint, cfg.checkpoint_interval) == (False, "auto")
    # Nor these: evaluation keeps to a budget, and the model is of this decade.
    assert (cfg.eval_interval, cfg.model) == ("auto", "modern")


@pytest.mark.parametrize(
    ("argv", "key", "value"),
    [
        (["--compile=False"], "compile", False),
        (["--compile=false"], "compile", False),
        (["--compile=auto"], "compile", "auto"),
        (["--eval_only"], "eval_only", True),
        (["--eval_only", "False"], "eval_only", False),
        (["--learning_rate=1"], "learning_rate", 1.0),
        (["--batch-size", "7"], "batch_size", 7),
        (["--out_dir=a=b=c"], "out_dir", "a=b=c"),
        (["shakespeare"], "dataset", "shakespeare"),
        (["--eval_only", "shakespeare"], "dataset", "shakespeare"),
    ],
)
def test_a_flag_is_read_as_nanogpt_would_or_better(argv, key, value):
    assert getattr(resolve(*argv), key) == value


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--learning_rat=1"], "unknown setting --learning_rat; did you mean learning_rate?"),
        (["--zzz=1"], "unknown setting --zzz; --help lists all settings"),
        (["--batch_size=1e3"], "--batch_size: batch_size expects a whole number, found '1e3'"),
        (["--batch_size="], "--batch_size: batch_size expects a whole number, found ''"),
        (
            ["--batch_size"],
            "--batch_size expects a whole number, found nothing; write --batch_size=VALUE",
        ),
        (["--learning_rate=nan"], "--learning_rate: learning_rate expects a number, found 'nan'"),
        (["--learning_rate=inf"], "--learning_rate: learning_rate expects a number, found 'inf'"),
        (["--learning_rate=-1"], "--learning_rate: learning_rate must be above 0, found -1.0"),
        (["--compile=maybe"], "--compile: compile expects True or False or auto, found 'maybe'"),
        (["--n_layer=0"], "--n_layer: n_layer must be at least 1, found 0"),
        (["--batch_size=0"], "--batch_size: batch_size must be at least 1, found 0"),
        (["--block_size=0"], "--block_size: block_size must be at least 1, found 0"),
        (["--n_layer=99999"], "--n_layer: n_layer must be at most 10000, found 99999"),
        (["--n_head=5"], "n_head=5 must divide n_embd=768; change one of them"),
        (["--batch_size=1", "--batch_size=2"], "--batch_size is given twice: 1 and '2'; keep one"),
        (["a", "b"], "two data sets: 'a' and 'b'; keep one"),
        (
            ["--dtype=float8"],
            "dtype expects auto or float32 or bfloat16 or float16, found 'float8'",
        ),
        (
            ["--max_iters=1" + "0" * 400],
            "max_iters must be below 2^63, found a number of 1329 bits",
        ),
        (["--checkpoint_interval=" + "9" * 5000], "checkpoint_interval expects auto, iterations"),
        (["--init_from=gpt2-xl", "--n_layer=3"], "the model in gpt2-xl has its own n_layer"),
        (["--lr_schedule=trapezoid"], "lr_schedule=trapezoid expects cooldown_iters above 0"),
        (["--bias=True"], "bias=True: the modern model has none; leave it out, or --model=gpt2"),
        (["--model=gpt2", "--n_kv_head=2"], "n_kv_head is for --model=modern; leave it out"),
        (["--n_head=4", "--n_kv_head=3"], "n_kv_head=3 must divide n_head=4"),
        (["--n_embd=36", "--n_head=12"], "n_embd=36 over n_head=12 must be even"),
        (
            ["--recipe=slow"],
            "--recipe expects one of finetune, gpt2, gpt2_modern, quick, quick_gpt2, "
            "shakespeare_char, shakespeare_char_gpt2, speedrun_cpu, none, found 'slow'",
        ),
        (["--max_iters=__import__('os')"], "max_iters expects a whole number"),
        (["--learning_rate=1e308"], "learning_rate must be at most 1e+20, found 1e+308"),
        (["--embedding_lr=1e21"], "embedding_lr must be at most 1e+20, found 1e+21"),
        (["--muon_lr=1e308"], "--muon_lr: muon_lr must be at most 1e+20, found 1e+308"),
        (["--min_lr=1e308"], "min_lr must be at most 1e+20, found 1e+308"),
        (["--weight_decay=1e300"], "weight_decay must be at most 1e+06, found 1e+300"),
        (
            ["--learning_rate=5e-324"],
            "muon_lr=0.02 would rise as learning_rate=4.94066e-324 does to min_lr=6e-05, to above",
        ),
        (["--zz" + "z" * 9000], "unknown setting --zzz"),
        (["-x"], "unknown flag '-x': settings are written --key=value"),
        (["nothing.toml"], "nothing.toml: expected a config file, found nothing"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(argv, message):
    recipe = next((a.split("=")[1] for a in argv if a.startswith("--recipe=")), "none")
    with pytest.raises(ConfigError) as caught:
        resolve(*argv, recipe=recipe)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_what_the_run_uses_is_checked():
    """nanoGPT's finetune_shakespeare.py has min_lr above learning_rate, with decay_lr=False."""
    assert resolve("--learning_rate=3e-5", "--decay_lr=False").min_lr == 6e-5


def test_later_sources_win():
    Path("a.toml").write_text("n_layer = 3\nn_head = 3\nbatch_size = 5\n")
    Path("b.py").write_text("n_layer = 4\nmax_iters = 10 * n_layer\nlr_decay_iters = max_iters\n")
    cfg = resolve("--n_head=2", "a.toml", "b.py", "--warmup_iters=1", recipe="quick")
    assert (cfg.n_layer, cfg.n_head, cfg.batch_size, cfg.n_embd) == (4, 2, 5, 128)
    assert cfg.lr_decay_iters == cfg.max_iters == 40


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"n_layer = 1\nn_layer = 2\n", "c.toml: not valid TOML"),
        (b"n_layr = 1\n", "c.toml: unknown setting 'n_layr'; did you mean n_layer?"),
        (b'n_layer = "two"\n', "c.toml: n_layer expects a whole number, found 'two'"),
        (b"n_layer = 2.5\n", "c.toml: n_layer expects a whole number, found 2.5"),
        (b"bias = 1\n", "c.toml: bias expects True or False, found 1"),
        (b'n_layer = "2"\n', "c.toml: n_layer expects a whole number, found '2'"),
        (b"n_layer = " + b"9" * 5000, "c.toml: not valid TOML"),
        (b"x = " + b"[" * 30_000, "c.toml: not valid TOML"),
        (b"n_layer = 0x" + b"f" * 5000, "n_layer must be at most 10000, found a number of"),
        (b"\xff\xfe", "c.toml: expected UTF-8 text, found byte 0xff"),
        (b"#" * 32_001, "c.toml: expected a config file under 32 kB, found 32001 bytes"),
        (b"a." * 15_000 + b"a = 1\n", "c.toml: expected `setting = value`, found a key with many"),
        (b"[" + b"a." * 15_000 + b"a]\n", "found a key with many dots"),
        (b"x = {" + b"a." * 15_000 + b"a = 1}\n", "found a key with many dots"),
        (b"'a' . \"b\"." + b"c . " * 9 + b"d = 1\n", "found a key with many dots"),
        (b'x = ["""a"""", {' + b"a." * 15_000 + b"a = 1}]\n", "a key with many dots"),
        (b"x = ['''a'''', {" + b"a." * 15_000 + b"a = 1}]\n", "found a key with many dots"),
        (b"a.b = 1\n", "c.toml: unknown setting 'a'"),
        (b"x" * 30_000 + b" = 1\n", "c.toml: unknown setting 'xxx"),
    ],
)
def test_a_wrong_toml_file_is_refused_with_its_name(text, message):
    Path("c.toml").write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        resolve("c.toml")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "text",
    [
        'out_dir = "a.b.c.d.e"',
        "out_dir = 'a.b.c.d.e'  # f.g.h.i = 1",
        '# a.b.c.d.e = 1\nout_dir = """\\\na.b.c.d.e"""',
        "out_dir = '''a.b.c.d.e'''\nlearning_rate = 1.5e-3",
        'out_dir = "a.b.c.d.e" # \\" b.c.d.e',
    ],
)
def test_dots_in_texts_and_comments_of_a_toml_file_are_no_keys(text):
    Path("c.toml").write_text(text)
    assert resolve("c.toml").out_dir == "a.b.c.d.e"


@pytest.mark.parametrize("name", command_line.recipe_names())
def test_every_recipe_is_valid(name):
    cfg = resolve(recipe=name)
    assert cfg.recipe == name


def test_every_setting_has_help_and_survives_a_round_trip():
    for name, _, default, text in TRAIN_SETTINGS.table():
        assert text, name
        assert TRAIN_SETTINGS.given(
            name, default, "x", is_text=True
        ).value == TRAIN_SETTINGS.default(name)


# The seven files nanoGPT ships, as to what they ask of a reader.
NANOGPT_FILES = {
    "eval": "# evaluate the base gpt2\nbatch_size = 8\neval_iters = 500 # more\neval_only = True\n"
    "wandb_log = False\ninit_from = 'gpt2-large'\n",
    "finetune": "import time\n\nout_dir = 'out-shakespeare'\n"
    "wandb_run_name = 'ft-' + str(time.time())\ndataset = 'shakespeare'\nlearning_rate = "
    "3e-5\ndecay_lr = False\nmax_iters = 20\n",
    "gpt2": "wandb_log = True\nwandb_run_name='gpt2-124M'\ngradient_accumulation_steps = 5 * 8\n"
    "weight_decay = 1e-1\n",
}


@pytest.mark.parametrize("name", NANOGPT_FILES)
def test_nanogpts_kinds_of_config_file_load(name):
    Path("c.py").write_text(NANOGPT_FILES[name])
    given = command_line.read_config_file(Path("c.py"), {})
    assert given
    if name == "gpt2":
        assert given["gradient_accumulation_steps"].value == 40
    if name == "finetune":
        assert given["wandb_run_name"].value.startswith("ft-")


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("max_iters = lr_decay_iters = 5000\n", "lr_decay_iters", 5000),
        ("batch_size *= 2\n", "batch_size", 24),
        ("batch_size = 3\nbatch_size += 1\nbatch_size -= 2\n", "batch_size", 2),
        ("learning_rate = +1e-3\n", "learning_rate", 1e-3),
        ("batch_size: int = 7\n", "batch_size", 7),
        ("device = 'cpu'\ncompile = device != 'cpu'\n", "compile", False),
        ("batch_size = 0 or 5\n", "batch_size", 5),
        ("eval_iters = eval_interval // 10\n", "eval_iters", 200),
        ("bias = device == 'cuda' and compile\n", "bias", True),
        ("n = 0\nwarmup_iters = n and 10 // n\n", "warmup_iters", 0),
        ("batch_size = 7 or nothing()\n", "batch_size", 7),
        ("bias = 1 < 2 and not 3 >= 4\n", "bias", True),
        ("bias = (batch_size > 99) and True\n", "bias", False),
    ],
)
def test_plain_python_means_in_a_config_file_what_it_means_in_python(text, key, value):
    Path("c.py").write_text(text)
    assert command_line.read_config_file(Path("c.py"), {})[key].value == value
    names = dict(NANOGPT)
    exec(text, names)  # as nanoGPT does
    assert names[key] == value


def test_a_tilde_is_the_home_folder_in_paths_and_a_tilde_elsewhere(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    Path("c.toml").write_text("out_dir = '~/runs/1'\nwandb_project = '~/x'\n")
    cfg = resolve("c.toml", "--dataset=~/texts/mine")
    assert (cfg.out_dir, cfg.dataset) == ("/home/ann/runs/1", "/home/ann/texts/mine")
    assert cfg.wandb_project == "~/x"
    assert resolve("--out_dir=a~/b").out_dir == "a~/b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os\nos.system('touch pwned')\n", "c.py line 2: expected `setting = value`"),
        ("batch_size = __import__('os').getpid()\n", "c.py line 1: found"),
        ("batch_size = open('x').read()\n", "c.py line 1: found"),
        ("x = [1]\nbatch_size = 1\n", "c.py line 1: found '[1]'"),
        ("batch_size = unknown\n", "c.py line 1: 'unknown' is not assigned before it is used"),
        (
            "learning_rat = 1\n",
            "c.py line 1: unknown setting 'learning_rat'; did you mean learning_rate?",
        ),
        ("max_iters = 10 ** 10 ** 10\n", "c.py line 1: a power this large"),
        ("max_iters = 'a' * 10000000000\n", "c.py line 1: text can only be joined with +"),
        ("a = 'xxxxxxxx'\n" + "a = a + a\n" * 30, "a text this long"),
        ("a = 'xxxxxxxx'\n" + "a = f'{a}{a}'\n" * 30, "a text this long"),
        ("out_dir = f'{1:99999999}'\n", "a text this long"),
        ("max_iters = 1 / 0\n", "c.py line 1: max_iters cannot be computed: division by zero"),
        ("for i in range(3): pass\n", "c.py line 1: expected `setting = value`"),
        ("batch_size, block_size = 1, 2\n", "found another kind of assignment"),
        ("batch_size *= 2 ** 99\n", "c.py line 1: a power this large"),
        ("nothing += 1\n", "c.py line 1: 'nothing' is not assigned before it is used"),
        ("bias = 1 < 'x'\n", "c.py line 1: bias cannot be computed: '<' not supported"),
        ("batch_size: int\n", "c.py line 1: expected `setting = value`"),
        ("batch_size = (\n", "c.py line 1: not valid Python"),
        ("batch_size = 'x'\n", "c.py line 1: batch_size expects a whole number, found 'x'"),
        ("(" * 5000 + ")" * 5000, "c.py line 1: not valid Python"),
        ("x = " + "-" * 30_000 + "1\n", "c.py line 1: not valid Python: nested too deeply"),
        ("x = " + "a." * 15_000 + "a\n", "c.py line 1: not valid Python: nested too deeply"),
        ("x = " + "not " * 7_000 + "1\n", "c.py line 1: not valid Python: nested too deeply"),
        ("x" * 30_000 + " = 1\n", "c.py line 1: unknown setting 'xxx"),
        ("x = " + "y" * 30_000 + "\n", "c.py line 1: 'yyy"),
        ("batch_size\0 = 1\n", "c.py line 1: not valid Python"),
    ],
)
def test_python_beyond_plain_values_is_refused_with_its_line_and_never_run(text, message):
    Path("c.py").write_text(text)
    with pytest.raises(ConfigError) as caught:
        command_line.read_config_file(Path("c.py"), {})
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300
    assert not Path("pwned").exists()


def test_a_text_of_a_config_file_is_bounded_before_it_is_made():
    """Nine thousand times a text of ten thousand: 360 MB, from a file of 27 kB."""
    text = "a = '\U0001f600xxxxxxx'\n" + "a = a + a\n" * 10 + "b = f'" + "{a}" * 9_000 + "'\n"
    Path("c.py").write_text(text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ConfigError, match="line 12: a text this long"):
        command_line.read_config_file(Path("c.py"), {})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_a_config_file_formats_and_rounds_as_python_does():
    text = (
        "n_layer = 6\nlearning_rate = 1e-3\n"
        'out_dir = f"L{n_layer:03d}-lr{learning_rate:.0e}-{str(n_layer)!r:>5}-{n_layer:{2}}"\n'
        "max_iters = round(5, -10**8) + round(2.6)\nmin_lr = round(0.123456, 3)\n"
    )
    Path("c.py").write_text(text)
    given = command_line.read_config_file(Path("c.py"), {})
    assert given["out_dir"].value == "L006-lr1e-03-  '6'- 6"
    assert (given["max_iters"].value, given["min_lr"].value) == (3, 0.123)


def test_what_python_thinks_of_a_config_files_style_is_not_shown():
    Path("c.py").write_text("batch_size = 7if 1 else 2\n")  # Python warns of 7if
    assert command_line.read_config_file(Path("c.py"), {})["batch_size"].value == 7


def test_a_helper_name_is_allowed_when_the_file_uses_it():
    Path("c.py").write_text("steps = 500\nmax_iters = steps\n")
    assert set(command_line.read_config_file(Path("c.py"), {})) == {"max_iters"}


def test_a_config_file_of_nanogpts_means_gpt2_unless_a_run_is_resumed_or_the_model_named():
    Path("nano.py").write_text("n_layer = 2\n")
    assert read_command_line(["nano.py"]).value("model") == "gpt2"
    assert read_command_line(["nano.py", "--model=modern"]).value("model") == "modern"
    assert not read_command_line(["nano.py", "--init_from=resume"]).is_given("model")


def test_a_recipes_mlp_goes_with_its_own_width():
    def inner(*argv: str) -> int:
        return resolve(*argv, recipe="quick").n_inner

    assert (inner(), inner("--n_embd=256"), inner("--n_embd=256", "--n_inner=99")) == (256, 0, 99)


@pytest.mark.parametrize("name", command_line.recipe_names())
def test_every_recipe_is_a_whole_run(name):
    cfg = resolve(recipe=name).in_iterations()
    assert cfg.lr_decay_iters == cfg.max_iters
    assert cfg.min_lr < cfg.learning_rate
    assert cfg.eval_interval == "auto"


@pytest.mark.parametrize("name", command_line.recipe_names())
def test_a_recipes_schedule_fits_a_run_of_any_length(name):
    whole, longer = (resolve(*flags, recipe=name) for flags in ((), ("--max_iters=700000",)))
    assert schedule_warnings(longer) == []
    assert longer.in_iterations().lr_decay_iters == 700_000
    if whole.lr_schedule == "trapezoid":
        shares = [c.in_iterations().cooldown_iters / c.max_iters for c in (whole, longer)]
        assert shares[0] == pytest.approx(shares[1], rel=0.01)


def test_iterations_that_are_given_are_obeyed_with_a_warning():
    cfg = resolve("--max_iters=2000", "--lr_decay_iters=800", recipe="quick")
    assert cfg.lr_decay_iters == 800
    [warning] = schedule_warnings(cfg)
    assert warning == (
        "lr_decay_iters=800: the last 1200 of 2000 iterations train at the lowest rate, 0.0002; "
        "--lr_decay_iters=2000 fits the run"
    )


def test_a_run_that_ends_before_its_rate_has_fallen_is_warned_about():
    cfg = resolve("--max_iters=1000", "--learning_rate=6e-4", "--min_lr=6e-5", recipe="none")
    [warning] = schedule_warnings(cfg)
    assert "the run ends after 1000 iterations, at a rate of 0.0003 instead of 6e-05" in warning


@pytest.mark.parametrize("value", ["60", "60%", "0.5%", "100%", 0, 480])
def test_a_schedule_takes_iterations_or_a_share_of_the_run(value):
    assert resolve(f"--cooldown_iters={value}", recipe="none").cooldown_iters in (value, 60)


@pytest.mark.parametrize("value", ["half", "101%", "-5%", "%", "1e3%", "", "60 percent"])
def test_a_share_that_is_none_is_refused(value):
    with pytest.raises(ConfigError, match="cooldown_iters expects iterations") as refused:
        resolve(f"--cooldown_iters={value}", recipe="none")
    assert "a share of the run (60%)" in str(refused.value)


def test_a_config_file_of_ours_changes_the_devices_recipe_and_one_of_nanogpt_replaces_it():
    Path("mine.toml").write_text("n_layer = 4\n")
    Path("named.toml").write_text('recipe = "gpt2"\n')
    Path("nano.py").write_text("n_layer = 4\n")
    assert read_command_line(["mine.toml"]).wants_recipe_by_device()
    assert not read_command_line(["named.toml"]).wants_recipe_by_device()
    assert not read_command_line(["nano.py"]).wants_recipe_by_device()
    assert not read_command_line(["mine.toml", "nano.py"]).wants_recipe_by_device()
    assert resolve("mine.toml", recipe="quick").tokens_per_iter == 1536
