"""The cases that tools/bench/networks measures: networks of models/, for training or inference, with a batch size."""

from collections import namedtuple

Case = namedtuple("Case", "net mode batch")
MODES = {"train": "train_step", "infer": "predict"}  # entry points

IMAGES, WORDS = ("--input", "f32"), ("--length", "128")
# Flags of each network's program.
FLAGS = {
    "lenet": IMAGES, "mlp": IMAGES, "fcn_s": IMAGES, "fcn_r": IMAGES, "alexnet_s": IMAGES, "alexnet_r": IMAGES,
    "resnet18": IMAGES, "resnet50": IMAGES, "resnet56": IMAGES, "mobilenetv2": IMAGES, "unet": IMAGES, "lstm": (),
    "lstm_lm": (), "gpt2": WORDS, "bert_base": WORDS, "vit_s": IMAGES, "mlp_mixer": IMAGES,
}
CONVOLUTIONS = ("lenet", "alexnet_s", "alexnet_r", "resnet18", "resnet50", "resnet56", "mobilenetv2", "unet")

# Measured by default: nine of training, and nine of inference.
CASES = [Case(net, "train", batch) for net, batch in (
    ("lenet", 256), ("fcn_s", 64), ("alexnet_s", 16), ("resnet50", 16), ("fcn_r", 1024), ("alexnet_r", 1024), ("resnet56", 128),
    ("lstm", 128), ("gpt2", 1))]
CASES += [Case(net, "infer", batch) for net, batch in (
    ("lenet", 256), ("resnet50", 1), ("resnet50", 16), ("mobilenetv2", 1), ("vit_s", 1), ("gpt2", 1), ("lstm", 1), ("lstm", 128),
    ("bert_base", 1))]
# Measured if their network is named.
FURTHER = [Case(net, "train", batch) for net, batch in (
    ("mlp", 64), ("resnet18", 16), ("unet", 4), ("lstm_lm", 20), ("vit_s", 16), ("mlp_mixer", 16))]
FURTHER += [Case(net, "infer", 1) for net in ("resnet18", "unet", "mlp_mixer")]


def selected(nets, modes):
    """The cases of these networks, or the default ones, in these modes."""
    listed = [case for case in CASES + FURTHER if case.net in nets] if nets else CASES
    return [case for case in listed if case.mode in modes]
