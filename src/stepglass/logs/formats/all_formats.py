"""The readers of all formats but ours and nanoGPT's. Each is imported only if it is needed."""

from importlib import import_module

from stepglass.logs.reader import Reader

# If two readers score the same, the first in this list wins. These modules are imported only when
# neither StepglassConsole (which reads nanoGPT's lines and ours) nor RunLogReader understands a
# line.
OTHERS = (
    "nanochat.Nanochat",
    "modded.Modded",
    "parameter_golf.ParameterGolf",
    "llmc.LlmC",
    "litgpt.LitGPT",
    "torchtitan.Torchtitan",
    "mmengine.MMEngine",
    "detectron2.Detectron2",
    "metric_logger.MetricLogger",
    "timm.Timm",
    "ultralytics.Ultralytics",
    "ultralytics.UltralyticsCsv",
    "keras.Keras",
    "keras.KerasCsv",
    "tensorflow_console.TensorFlowConsole",
    "pytorch_examples.PytorchExamples",
    "tinygrad.Tinygrad",
    "huggingface.HFTrainer",
    "lightning.LightningBar",
    "lightning.MetricsCsv",
    "composer.Composer",
    "lingua.Lingua",
    "mingpt.MinGPT",
    "charrnn.CharRNN",
    "gpt_neox.GPTNeoX",  # before Megatron, which reads its lines too
    "megatron.Megatron",
    "mlx.MlxLM",
    "gpt2_simple.Gpt2Fork",
    "nemo.NeMo",
    "olmo.OLMo",
    "nanotron.Nanotron",
    "maxtext.MaxText",
    "fairseq.Fairseq",
    "minimind.MiniMind",
    "espnet.ESPnet",
    "time_series.TimeSeries",
    "deepspeed.DeepSpeed",  # its lines also stand in the logs of other trainers
)


def other_reader(name: str) -> type[Reader]:
    """Import the reader class that an entry of `OTHERS` names."""
    module, reader = name.split(".")
    found: type[Reader] = getattr(import_module(f"stepglass.logs.formats.{module}"), reader)
    return found
