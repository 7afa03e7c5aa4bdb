"""The command line of a sweep: what is swept, what is refused."""

from pathlib import Path

import pytest

from stepglass.cli import main
from stepglass.sweep.grid import folder_name, read_sweep
from stepglass.sweep.planned_run import plan_runs


def test_settings_of_the_sweep_and_of_its_runs_are_told_apart():
    cfg, grid = read_sweep(
        ["notes.txt", "a.toml", "--n-layer", "2,3", "--jobs", "2", "--max_iters=5", "--seed=1"]
    )
    assert (cfg.jobs, cfg.out_dir, cfg.minutes) == (2, "out-sweep", 0.0)
    assert grid.swept == {"n_layer": ["2", "3"]}
    assert grid.fixed == {"max_iters": "5", "seed": "1"}
    assert (grid.config_files, grid.dataset) == (["a.toml"], "notes.txt")


def test_runs_are_named_by_what_differs_however_it_was_written():
    for text in ("1e-3,4e-3", "0.001,0.004", "1.0e-3,.004"):
        _, grid = read_sweep([f"--learning_rate={text}", "--n_layer=2,3"])
        assert [folder_name(settings) for settings in grid.combinations()] == [
            "learning_rate=0.001,n_layer=2",
            "learning_rate=0.001,n_layer=3",
            "learning_rate=0.004,n_layer=2",
            "learning_rate=0.004,n_layer=3",
        ]


@pytest.mark.parametrize("path", ["../../etc", "/tmp/x", "a/b", "..", "a\x1b\nb"])
def test_no_value_leads_out_of_the_folder_of_the_sweep(path):
    name = folder_name({"dataset": path})
    assert name == Path(name).name
    assert name.isprintable()


def test_values_that_would_share_a_folder_are_refused():
    _, grid = read_sweep(["--dataset=a/b,a_b"])
    with pytest.raises(Exception, match="two runs would be in"):
        plan_runs(grid, Path("out"))


def test_a_word_with_a_comma_is_a_data_set_and_not_a_list():
    _, grid = read_sweep(["one, two.txt", "--n_layer=1,2"])
    assert grid.dataset == "one, two.txt"


def test_a_hundred_runs_are_allowed_and_more_if_asked():
    hundred = ["--seed=" + ",".join(map(str, range(10))), "--n_layer=1,2,3,4,5,6,7,8,9,10"]
    assert len(read_sweep(hundred)[1]) == 100
    assert len(read_sweep([*hundred, "--dropout=0,0.1", "--max_runs=200"])[1]) == 200


def test_settings_that_suit_the_recipe_of_one_device_are_allowed():
    """Which recipe it will be, only torch can tell."""
    _, grid = read_sweep(["--n_embd=96,192"])
    assert len(plan_runs(grid, Path("out"))) == 2


MANY = ",".join(str(n) for n in range(1, 12))


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "expected a setting with several values, found none; try: stepglass sweep"),
        (["--n_layer=2"], "expected a setting with several values"),
        (["--n_layer=2,x"], "--n_layer: n_layer expects a whole number, found 'x'"),
        (["--n_layer=2,"], "--n_layer=2,: expected a value on both sides of every comma"),
        (["--n_layer=,"], "expected a value on both sides of every comma, found nothing"),
        (["--n_layer=2,0"], "n_layer=0: --n_layer: n_layer must be at least 1, found 0"),
        (["--learning_rate=1e-3,0.001"], "'0.001' is there twice; keep one"),
        (["--n_layer=2,3", "--n_layer=4"], "--n_layer is given twice: 2,3 and 4; keep one"),
        (["--n_layer=2,3", "--n_layer=4,5"], "--n_layer is given twice; put all its values"),
        (["--n_layr=2,3"], "unknown setting --n_layr; did you mean n_layer?"),
        (["--n_layer=2,3", "--job=2"], "unknown setting --job"),
        (["--n_layer=2,3", "--jobs=0"], "--jobs: jobs must be at least 1, found 0"),
        (["--n_layer=2,3", "--minutes=-1"], "minutes must be at least 0"),
        (["--n_layer=2,3", "--out_dir="], "out_dir expects a folder, found ''"),
        (["--n_layer=2,3", "-x"], "unknown flag '-x'"),
        (["--n_layer=2,3", "no.toml"], "no.toml: expected a config file, found nothing"),
        (["--n_layer=2,3", "a", "b"], "more than one data set is named"),
        (["--dataset=a,b", "c"], "more than one data set is named"),
        (["--n_layer=2,3", "nothing-there"], "data/nothing-there: no such data set"),
        (["--log_to=tensorboard,wandb"], "commas separate the values of a sweep; name one logger"),
        (["--n_layer=2,3", "--watch"], "watch=True: `stepglass watch` with the folder"),
        (["--n_layer=2,3", "--eval_only"], "eval_only=True: a sweep trains; leave it out"),
        (["--n_layer=2,3", "--init_from=resume"], "init_from='resume': a sweep starts and resumes"),
        (["--n_layer=2,3", "--recipe=x"], "--recipe expects one of"),
        (["--n_embd=64,65", "--n_head=4"], "n_embd=65: n_head=4 must divide n_embd=65"),
        ([f"--n_layer={MANY}", f"--seed={MANY}"],
         "11 values of n_layer x 11 values of seed are 121 runs, more than 100; sweep fewer"),
        (["--wandb_run_name=" + "a" * 250 + ",b"], "more than 200; sweep fewer settings at once"),
    ],
)  # fmt: skip
def test_what_cannot_be_swept_is_one_line_and_leaves_nothing(argv, said, capsys):
    assert main(["sweep", *argv]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert list(Path().iterdir()) == []
