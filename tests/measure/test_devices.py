"""The device table: names as drivers print them and as people type them, and figures that agree."""

import pytest

from stepglass.cli import main
from stepglass.errors import ConfigError
from stepglass.measure.devices import device_named, find_device, known_devices


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA GeForce RTX 4070", 58.3),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 88.2),
        ("NVIDIA GeForce RTX 4070 Laptop GPU", 31.2),
        ("NVIDIA GeForce RTX 4090", 165.2),
        ("NVIDIA GeForce RTX 4090 D", 159.0),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA L40S", 362),
        ("NVIDIA L4", 121),
        ("AMD Instinct MI300X", 1307.4),
        ("NVIDIA A10G", None),
        ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", None),
        ("NVIDIA GeForce RTX 5090 D", None),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None),
        ("NVIDIA RTX A1000", None),
        ("Some Future GPU", None),
    ],
)
def test_peak_is_the_devices_own_or_unknown_never_an_a100s(name, peak):
    known = find_device(name)
    assert (known.peak_flops("bf16") if known else None) == (peak and pytest.approx(peak * 1e12))


def test_every_row_is_found_by_its_own_name_so_no_general_row_hides_it():
    for known in known_devices():
        assert find_device(known.name).name == known.name
        assert find_device(f"NVIDIA {' '.join(known.tokens)} GPU".upper()).name == known.name


def test_every_row_has_a_grade_a_source_a_memory_and_a_bandwidth():
    assert len(known_devices()) > 60
    for known in known_devices():
        assert known.grade in tuple("ABCD"), known.name
        assert known.sources, known.name
        assert list(known.memory_gb[1:]) == sorted(known.memory_gb[1:]), known.name
        for figures in (known.bandwidth_gbs, *known.tflops_by_size.values()):
            assert len(figures) in (1, len(known.memory_gb)), known.name
        assert known.tflops, known.name


def test_half_precision_peaks_follow_from_the_shader_rate():
    """bf16 = k times fp32, k by class of card: the rule that tells right rows from wrong ones."""
    rows = [k for k in known_devices() if k.half_over_shader and k.tflops.get("fp32")]
    assert len(rows) > 30
    for known in rows:
        half = known.tflops.get("bf16", known.tflops["fp16"])
        shader = known.half_over_shader * known.tflops["fp32"]
        assert half == pytest.approx(shader, rel=0.02), known.name


def test_every_geforce_has_twice_its_shader_rate():
    cards = [known for known in known_devices() if known.name.startswith("GeForce")]
    assert len(cards) > 20
    assert {known.half_over_shader for known in cards} == {2.0}


# -- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "gigabytes", "bandwidth"),
    [
        ("NVIDIA A100-SXM4-80GB", 80, 2039),
        ("NVIDIA A100-SXM4-40GB", 40, 1555),
        ("NVIDIA A100", 40, 1555),
        ("GeForce RTX 4060 Ti", 8, 288),
        ("GeForce RTX 4060 Ti 16GB", 16, 288),
        ("Tesla V100-SXM2-32GB", 32, 900),
        ("NVIDIA GeForce RTX 3060", 12, 360),
        ("GeForce RTX 3060 8GB", 8, 240),
        ("Apple M3 Max 36GB", 36, 300),
        ("Apple M3 Max 48GB", 48, 400),
    ],
)
def test_the_size_in_a_name_is_the_memory_and_picks_the_bandwidth(name, gigabytes, bandwidth):
    known = find_device(name)
    assert (known.memory_bytes, known.bytes_per_s) == (gigabytes * 1e9, bandwidth * 1e9)


@pytest.mark.parametrize(
    ("name", "cores", "of"),
    [("m3 max 36gb", 30, 40), ("m3 max 96gb", 30, 40), ("m4 max 36gb", 32, 40),
     ("m4 max 48gb", 40, 40)],
)  # fmt: skip
def test_a_chip_that_is_sold_with_fewer_cores_has_a_lower_peak(name, cores, of):
    """A printed name says neither the cores nor the memory: it has the peak of the whole chip."""
    whole = find_device(device_named(name).name)
    assert whole.chosen_gb is None
    share = device_named(name).peak_flops("fp32") / whole.peak_flops("fp32")
    assert share == pytest.approx(cores / of)


def test_the_other_sizes_of_a_device_are_known_if_its_name_does_not_say_one():
    assert device_named("3060").other_sizes_gb == (8,)
    assert device_named("3060 12gb").other_sizes_gb == ()
    assert device_named("4090").other_sizes_gb == ()


def test_a_drivers_23_6_gb_are_a_card_with_24():
    assert find_device("RTX 3080").with_memory(11.6).memory_bytes == 12e9


# -- as people type them --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("4070", "GeForce RTX 4070"),
        ("RTX 4070", "GeForce RTX 4070"),
        ("NVIDIA GeForce RTX 4070", "GeForce RTX 4070"),
        ("rtx4070ti", "GeForce RTX 4070 Ti"),
        ("4070 super", "GeForce RTX 4070 SUPER"),
        ("4070 laptop", "GeForce RTX 4070 Laptop"),
        ("m3 max", "Apple M3 Max GPU"),
        ("M3Max", "Apple M3 Max GPU"),
        ("m1", "Apple M1 GPU"),
        ("a100 80gb", "A100"),
        ("h100 pcie", "H100 PCIe"),
        ("A6000", "RTX A6000"),
    ],
)
def test_a_device_is_found_as_people_type_it(typed, name):
    assert device_named(typed).name == name


def test_the_memory_that_a_person_types_is_taken():
    assert device_named("4060 ti 16gb").memory_bytes == 16e9
    assert device_named("a100 80gb").bytes_per_s == 2039e9


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("RTX 9999", "not in the table of known devices; for example: RTX "),
        ("3080 laptop", "for example: RTX "),
        ("rtx", "several fit: "),
        ("ultra", "several fit: Apple M3 Ultra, Apple M2 Ultra, Apple M1 Ultra; name one"),
        ("4090 48gb", "expected 24 GB for GeForce RTX 4090, found 48 GB"),
        ("", "for example"),
        ("\x1b[31m" * 40, "for example"),
    ],
)
def test_an_unknown_or_ambiguous_device_is_one_line_with_some_names(typed, said):
    with pytest.raises(ConfigError) as error:
        device_named(typed)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 220


def test_explain_takes_the_same_names(tmp_path, capsys):
    log = tmp_path / "train.log"
    lines = [f"iter {n}: loss 2.0000, time 100.00ms, mfu 10.00%" for n in range(0, 100, 10)]
    log.write_text("\n".join(lines))
    assert main(["explain", str(log), "--device=4070", "--json"]) == 0
    assert '"device": "GeForce RTX 4070"' in capsys.readouterr().out
    assert main(["explain", str(log), "--device=4700"]) == 2
    assert "RTX 4070\n" in capsys.readouterr().err
