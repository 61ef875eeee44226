"""Random models and convolutions, compiled and run by torch_cases, compared with PyTorch in double precision. Networks
in mixed precision are compared with its autocast, and training with its optimizers.

Usage: torch_test.py SOURCE_ROOT BUILD_ROOT
random|halves|convolutions|losses|functions|special|recurrent|attention|draws|programs|autocast|optimizers

With SLUICE_TEST_FULL=1, many more cases."""

import itertools
import json
import os
import subprocess
import sys
import tempfile

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)

import attention  # noqa: E402: of the environment entered above
import autocast  # noqa: E402
import draws  # noqa: E402
import functions  # noqa: E402
import losses  # noqa: E402
import optimizers  # noqa: E402
import programs  # noqa: E402
import recurrent  # noqa: E402
import special_points  # noqa: E402
import torch  # noqa: E402
from verdicts import HALVES, Verdicts  # noqa: E402

FULL = bool(os.environ.get("SLUICE_TEST_FULL"))
DTYPES = ("f32", "f64")

# Ops that no user graph contains, and one op that the frontend omits.
LATER = {"add_along", "attention_key_value_grad", "attention_query_grad", "avg_pool2d_grad", "batch_norm_grad",
         "bernoulli", "constant", "conv2d_weight_grad", "copy", "dequantize_blocks", "dynamic_slice",
         "dynamic_update_slice", "max_pool2d_grad", "normal", "normalize_grad", "power_sum", "random_bits", "relayout", "rows",
         "scatter_add", "uniform"}
UNSPOKEN = {"dropout", "identity"}
ELSEWHERE = {"scaled_dot_product_attention"}  # in separate cases


def torch_cases(*arguments):
    """Its output line by line; the last line is an error if the program failed."""
    command = [os.path.join(BUILD, "tests", "torch_cases"), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield from process.stdout
    if process.returncode:
        name = " ".join(map(str, arguments[:5]))
        yield json.dumps({"name": name, "error": f"torch_cases ended with {process.returncode}"})


def random_cases():
    """A hundred small graphs that alternate between the types, or many large graphs in both."""
    graphs, most, pinned = (2000, 12, 4) if FULL else (100, 5, 15)
    for first, dtype in enumerate(DTYPES):
        seeds = range(graphs) if FULL else range(first, graphs, 2)
        for start in range(0, len(seeds), 50):
            for line in torch_cases("random", dtype, most, pinned, *seeds[start:start + 50]):
                yield json.loads(line)


def check_random():
    verdicts, seen, graphs = Verdicts(), set(), 0
    for case in random_cases():
        verdicts.check(case)
        seen.update(op["op"] for op in case.get("model", {"ops": []})["ops"])
        graphs += "pinned" not in case["name"]
    missing = {line.strip() for line in torch_cases("ops")} - LATER - UNSPOKEN - ELSEWHERE - seen
    print("in no graph:", ", ".join(sorted(missing)) or "no op")
    return any([verdicts.failed(), missing, graphs != (2 * 2000 if FULL else 100)])


def check_halves():
    """Small graphs in f16 and bf16: large graphs depend on comparisons, which rounding changes too often."""
    verdicts, graphs = Verdicts(), 400 if FULL else 20
    for dtype in HALVES:
        for line in torch_cases("random", dtype, 4, 5, *range(graphs)):
            verdicts.check(json.loads(line))
    print(f"{graphs} graphs in each of {', '.join(HALVES)}")
    return any([verdicts.failed(), verdicts.checked < 2 * graphs])


def pairwise(levels):
    """A few combinations that cover all pairs of values for any two factors."""
    def pairs(combination):
        return {(i, combination[i], j, combination[j]) for i, j in itertools.combinations(range(len(levels)), 2)}

    everything = list(itertools.product(*levels))
    missing = set().union(*map(pairs, everything))
    while missing:
        best = max(everything, key=lambda combination: len(pairs(combination) & missing))
        missing -= pairs(best)
        yield best


def specs():
    """Each combination as a square window, and as an oblong window whose width uses another combination's numbers."""
    levels = [(1, 2, 3, 4), (1, 2, 3, 4), (0, 1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)]
    chosen = list(itertools.product(*levels) if FULL else pairwise(levels))
    turned = 997 % len(chosen)
    for (*axis, groups), (*other, _) in zip(chosen, chosen[turned:] + chosen[:turned]):
        for width in (axis, other):
            yield ",".join(map(str, [*axis, *width, groups]))


def check_convolutions(together=40):
    verdicts, everything = Verdicts(), list(dict.fromkeys(specs()))
    for start, dtype in itertools.product(range(0, len(everything), together), DTYPES):
        for line in torch_cases("convolutions", dtype, *everything[start:start + together]):
            verdicts.check(json.loads(line))
    models = 2 * -(-len(everything) // together)
    print(f"{len(everything)} convolutions in f32 and f64")
    # Per convolution: its result, and the gradients of its image and weight. Per model: its loss.
    return any([verdicts.failed(), verdicts.results != 2 * 3 * len(everything) + models])


def check_losses():
    cases = [json.loads(line) for dtype in DTYPES for line in torch_cases("losses", dtype, *losses.FORMS)]
    wrong = [line for case in cases for line in losses.problems(case)]
    count = sum(len(case.get("losses", [])) for case in cases)
    print("\n".join(wrong) or f"{count} losses as PyTorch's")
    return bool(wrong) or len(cases) != len(DTYPES) * len(losses.FORMS)


def check_functions():
    cases = [json.loads(line) for dtype in DTYPES for line in torch_cases("functions", dtype)]
    wrong = [line for case in cases for line in functions.problems(case)]
    print("\n".join(wrong) or f"{sum(len(case['functions']) for case in cases)} functions as PyTorch's")
    return bool(wrong) or len(cases) != len(DTYPES)


def check_special():
    """Checks all types if the table is written."""
    writes = "--write" in sys.argv[4:]
    dtypes = special_points.TYPES if FULL or writes else ("f64", "f16")
    cases = [json.loads(line) for dtype in dtypes for line in torch_cases("special", dtype)]
    path = special_points.table_of(SOURCE)
    if writes:
        special_points.write(cases, path)
    wrong = list(special_points.problems(cases, path))
    print("\n".join(wrong) or f"{len(cases[0]['points'])} special points in {', '.join(dtypes)}")
    return bool(wrong) or len(cases) != len(dtypes)


def check_autocast():
    cases = [json.loads(line) for dtype in HALVES for line in torch_cases("autocast", dtype, *autocast.NETWORKS)]
    wrong = [line for case in cases for line in autocast.problems(case)]
    print("\n".join(wrong) or f"{len(cases)} networks as in PyTorch's autocast")
    return bool(wrong) or len(cases) != len(HALVES) * len(autocast.NETWORKS)


def check_optimizers():
    verdicts = optimizers.Verdicts()
    for dtype in optimizers.TOLERANCE:
        recipes = [text for name, recipe in optimizers.recipes_for(dtype).items() for text in (name, json.dumps(recipe))]
        for line in torch_cases("optimizers", dtype, *recipes):
            verdicts.check(json.loads(line), dtype)
    return verdicts.failed()


def check_recurrent():
    cases = [json.loads(line) for dtype in DTYPES for line in torch_cases("recurrent", dtype)]
    wrong = [line for case in cases for line in recurrent.problems(case)]
    print("\n".join(wrong) or f"{len(cases)} recurrent layers as PyTorch's")
    return bool(wrong) or len(cases) != 2 * 13


def check_attention():
    cases = [json.loads(line) for dtype in DTYPES for line in torch_cases("attention", dtype)]
    wrong = [line for case in cases for line in attention.problems(case)]
    print("\n".join(wrong) or f"{len(cases)} times attention as PyTorch's")
    return bool(wrong) or len(cases) != 2 * (2 * 12 + 6)


def check_draws():
    cases = [json.loads(line) for devices in ("cpu", "sim:0") for line in torch_cases("draws", devices)]
    wrong = [line for case in cases for line in draws.problems(case)]
    print("\n".join(wrong) or f"{sum(len(case['draws']) for case in cases)} draws as JAX's")
    return bool(wrong) or len(cases) != 2 * 3


def check_programs():
    """Small, or also in full size."""
    sizes, wrong, checked = ("small", "full") if FULL else ("small",), [], 0
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            for line in torch_cases("programs", size, folder, *programs.NETWORKS):
                wrong += programs.problems(json.loads(line), size)
                checked += 1
    print("\n".join(wrong) or f"{checked} programs as PyTorch's")
    return bool(wrong) or checked != len(sizes) * len(programs.NETWORKS)


if __name__ == "__main__":
    torch.set_num_threads(1)
    version = environment.pinned(SOURCE, "torch")
    if torch.__version__ != version:
        sys.exit(f"this is PyTorch {torch.__version__}, and tests/requirements.txt asks for {version}")
    kinds = {"random": check_random, "halves": check_halves, "convolutions": check_convolutions, "losses": check_losses, "functions": check_functions, "special": check_special,
             "recurrent": check_recurrent, "attention": check_attention, "draws": check_draws, "programs": check_programs, "autocast": check_autocast, "optimizers": check_optimizers}
    sys.exit(kinds[sys.argv[3]]())
