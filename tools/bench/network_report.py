"""The figures of tools/bench/networks as text: a line for each case, and one for each class of its kernels."""

import math
import re

# Classes of kernels, and the kinds of kernels in the plan that belong to each. The last class has all other reductions.
CLASSES = (
    ("products", r"einsum"),
    ("convolutions", r"conv2d"),
    ("input gradients", r"conv2d_input_grad"),
    ("weight gradients", r"conv2d_weight_grad"),
    ("attention", r"scaled_dot_product_attention|attention_\w+"),
    ("pools", r"\w+_pool2d(_grad)?"),
    ("elementwise", r"elementwise"),
    ("copies", r"movement|relayout"),
    ("sums and norms", r"\w*"),
)
GROUPED = "convolutions in groups"  # such as depthwise ones, which have the kinds of other convolutions
VARIANTS = re.compile(r"(_(narrow|bf16|f16|tf32))+$")  # suffixes of a kind


def class_of(kernel, grouped):
    kind = VARIANTS.sub("", kernel["kind"])
    return GROUPED if kernel["name"] in grouped else next(name for name, kinds in CLASSES if re.fullmatch(kinds, kind))


def bound_of(kernel, run, peak):
    """The minimum time of a kernel if the machine reaches `peak` GFLOP/s, instead of the peak measured in the run."""
    return kernel["bound"] * (run["machine"]["peak_gflops"] / peak if kernel["bound_by"] == "compute" else 1)


def kernels_of(runs, grouped, peak):
    """The kernels of a call with their classes. Time and bound are the least of all runs of `bench --kernels`, because
    other programs can only slow down the kernel and the machine."""
    kernels = []
    for measured in zip(*(run["kernels"] for run in runs)):
        first, ms = measured[0], min(each["ms"] for each in measured)
        bound = min(bound_of(each, run, peak) for each, run in zip(measured, runs))
        kernels.append({"name": first["name"], "class": class_of(first, grouped), "launches": first["launches"], "source": first["source"],
                        "ms": ms, "bound_ms": bound, "share": bound / ms})
    return kernels


def classes_of(kernels):
    """The sums of each class, the longest time first."""
    classes = {}
    for kernel in kernels:
        its = classes.setdefault(kernel["class"], {"launches": 0, "ms": 0.0, "bound_ms": 0.0})
        for figure in its:
            its[figure] += kernel[figure]
    for its in classes.values():
        its["share"] = its["bound_ms"] / its["ms"]
    return dict(sorted(classes.items(), key=lambda item: -item[1]["ms"]))


def machine_text(machine):
    threads = [(1, machine["one_thread"])]
    if machine["threads"] > 1:
        threads.append((machine["threads"], machine["all_threads"]))
    limits = "; ".join(f"{count} thread{'s' if count > 1 else ''} {its['peak_gflops']:.0f} GFLOP/s, {its['read_gbps']:.1f} GB/s"
                       for count, its in threads)
    return f"{machine['cpu']}, {machine['vector']}: {limits}; load {machine['load']:.1f} before"


HEADING = (f"{'network and batch':<24}{'ms least':>10}{'median':>9}  {'fastest peer':<18}{'ms least':>10}{'median':>9}{'ratio':>7}"
           f"{'GFLOP/s':>9}{'peak':>6}{'MB':>7}{'peer':>7}{'first s':>9}{'peer':>7}")


def case_text(row):
    ours, best = row["sluice"], row["fastest_peer"]
    theirs = f"{'':<18}{'':>10}{'':>9}{'':>7}"
    memory = first = ""
    if best:
        peer = row["peers"][best]
        theirs = f"{best:<18}{peer['least_ms']:>10.2f}{peer['median_ms']:>9.2f}{row['ratio']:>7.2f}"
        memory, first = f"{peer['resident_mb']:.0f}", f"{peer['first_s']:.1f}"
    name = f"{row['net']} {row['mode']} ({row['batch']})"
    return (f"{name:<24}{ours['least_ms']:>10.2f}{ours['median_ms']:>9.2f}  {theirs}{ours['gflops']:>9.0f}{ours['peak_share']:>6.0%}"
            f"{ours['planned_mb']:>7.0f}{memory:>7}{ours['compile_s']:>9.1f}{first:>7}")


def classes_text(classes):
    total = sum(its["ms"] for its in classes.values())
    return "\n".join(f"    {name:<24}{its['ms']:>10.3f} ms{its['ms'] / total:>7.0%}  bound {its['bound_ms']:>9.3f} ms{its['share']:>7.0%}"
                     for name, its in classes.items())


def means_text(rows):
    """The geometric means of the ratios in each mode."""
    lines = []
    for mode in dict.fromkeys(row["mode"] for row in rows):
        ratios = [row["ratio"] for row in rows if row["mode"] == mode and row["fastest_peer"]]
        if len(ratios) > 1:
            lines.append(f"{mode}: geometric mean of {len(ratios)} ratios {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}")
    return "\n".join(lines)
