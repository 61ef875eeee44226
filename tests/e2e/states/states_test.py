#!/usr/bin/env python3
"""Shared states, states in other file formats, and states with initial data, compared with PyTorch and numpy:
states_test.py SOURCE_ROOT BUILD_ROOT."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)

import numpy as np  # noqa: E402: of the environment entered above
import torch  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402

WORDS, WIDTH, LENGTH, ROWS = 11, 6, 5, 8
SLUICE = os.path.join(BUILD, "bin", "sluice")
MODELS = os.path.join(BUILD, "tests", "state_models")


class Case(unittest.TestCase):
    """A folder, programs in it, and random numbers."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.random = np.random.default_rng(5)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_program(self, *command, code=0):
        """The output of a program that must succeed."""
        result = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, timeout=200, check=False)
        self.assertEqual(result.returncode, code, f"{command}: {result.stderr}")
        return result.stderr if code else result.stdout

    def compile(self, kind, *arguments, output=None, options=()):
        self.run_program(MODELS, kind, f"{kind}.mlir", *arguments)
        self.run_program(SLUICE, "compile", f"{kind}.mlir", "-o", output or kind, *options)

    def predict(self, name, *options, **inputs):
        for key, value in inputs.items():
            np.save(self.path(f"{key}.npy"), value)
        self.run_program(self.path(name), "predict", *(f"--input={key}=@{key}.npy" for key in inputs), "--output=y=@y.npy",
                         *options)
        return np.load(self.path("y.npy"))

    def normal(self, *shape):
        return self.random.normal(0, 0.5, shape).astype(np.float32)


class TiedTest(Case):
    def setUp(self):
        super().setUp()
        self.compile("tied")
        self.tokens, self.label = (self.random.integers(0, WORDS, (ROWS, LENGTH)).astype(np.int32) for _ in range(2))
        np.savez(self.path("data.npz"), tokens=self.tokens, label=self.label)
        self.weight = self.normal(WORDS, WIDTH)

    def train(self, weights, *options, code=0):
        save_file(weights, self.path("before.safetensors"))
        return self.run_program(self.path("tied"), "train", "--data", "data.npz", "--epochs", "5", "--weights",
                                "before.safetensors", "--save", "after.safetensors", *options, code=code)

    def expected(self, tied=True):
        wte = torch.tensor(self.weight, dtype=torch.float64).requires_grad_()
        head = wte if tied else wte.detach().clone()
        optimizer = torch.optim.SGD([wte], lr=0.5, momentum=0.9)
        for _ in range(5):
            optimizer.zero_grad()
            logits = torch.tanh(torch.nn.functional.embedding(torch.tensor(self.tokens).long(), wte)) @ head.T
            torch.nn.functional.cross_entropy(logits.transpose(1, 2), torch.tensor(self.label).long()).backward()
            optimizer.step()
        return wte.detach().numpy()

    def test_it_trains_with_the_sum_of_both_gradients(self):
        self.train({"wte.weight": self.weight})
        after = load_file(self.path("after.safetensors"))
        self.assertEqual(list(after), ["wte.weight"])
        np.testing.assert_allclose(after["wte.weight"], self.expected(), rtol=0, atol=2e-6)
        self.assertGreater(np.abs(self.expected() - self.expected(tied=False)).max(), 1e-2)

    def test_a_file_may_have_both_names_where_they_are_equal(self):
        self.train({"wte.weight": self.weight})
        once = load_file(self.path("after.safetensors"))
        self.train({"wte.weight": self.weight, "lm_head.weight": self.weight.copy()})
        np.testing.assert_array_equal(load_file(self.path("after.safetensors"))["wte.weight"], once["wte.weight"])
        self.train({"lm_head.weight": self.weight})
        np.testing.assert_array_equal(load_file(self.path("after.safetensors"))["wte.weight"], once["wte.weight"])

    def test_a_file_whose_two_differ_is_refused_with_both_names(self):
        other = self.weight.copy()
        other[-1, -1] += 1
        for wrong in (other, self.weight[:-1].copy(), self.weight.astype(np.float16)):
            said = self.train({"wte.weight": self.weight, "lm_head.weight": wrong}, code=3)
            self.assertIn("before.safetensors: 'wte.weight' and 'lm_head.weight' differ", said)
        self.assertFalse(os.path.exists(self.path("after.safetensors")))

    def test_it_is_counted_once(self):
        about = json.loads(self.run_program(self.path("tied"), "info", "--json"))
        self.assertIn("wte.weight", json.dumps(about))
        said = self.run_program(SLUICE, "show", "tied.mlir", "--phase", "train")
        self.assertEqual(said.count("sluice.state parameter"), 1)
        self.assertIn('also ["lm_head.weight"]', said)

    def test_a_checkpoint_goes_on(self):
        self.train({"wte.weight": self.weight})
        whole = load_file(self.path("after.safetensors"))["wte.weight"]
        save_file({"wte.weight": self.weight}, self.path("before.safetensors"))
        common = ("train", "--data", "data.npz", "--checkpoint", "kept")
        self.run_program(self.path("tied"), *common, "--epochs", "2", "--weights", "before.safetensors")
        self.run_program(self.path("tied"), *common, "--epochs", "5", "--resume", "--save", "after.safetensors")
        np.testing.assert_array_equal(load_file(self.path("after.safetensors"))["wte.weight"], whole)

    def test_replicas_train_it_as_one(self):
        self.train({"wte.weight": self.weight})
        one = load_file(self.path("after.safetensors"))["wte.weight"]
        self.run_program(SLUICE, "compile", "tied.mlir", "-o", "tied", "--replicas", "2", "--devices", "cpu")
        self.train({"wte.weight": self.weight})
        np.testing.assert_allclose(load_file(self.path("after.safetensors"))["wte.weight"], one, rtol=0, atol=2e-6)


class TransposedTest(Case):
    """Files of transformers' GPT-2 store some weights transposed."""

    def setUp(self):
        super().setUp()
        self.compile("gpt")
        self.x = self.normal(3, WIDTH)
        self.weights = {}
        for name, inside, outside in (("attn.c_attn", WIDTH, 3 * WIDTH), ("attn.c_proj", WIDTH, WIDTH),
                                      ("mlp.c_fc", WIDTH, 4 * WIDTH), ("mlp.c_proj", 4 * WIDTH, WIDTH)):
            self.weights[f"h.0.{name}.weight"] = self.normal(inside, outside)
            self.weights[f"h.0.{name}.bias"] = self.normal(outside)

    def expected(self):
        """x W + b, as in transformers."""
        def conv1d(x, name):
            weight, bias = (self.weights[f"h.0.{name}.{part}"].astype(np.float64) for part in ("weight", "bias"))
            return x @ weight + bias
        y = conv1d(np.tanh(conv1d(self.x.astype(np.float64), "attn.c_attn")[:, 2 : 2 + WIDTH]), "attn.c_proj")
        return conv1d(np.tanh(conv1d(y, "mlp.c_fc")), "mlp.c_proj")

    def predicted(self, weights):
        save_file({name: np.ascontiguousarray(value) for name, value in weights.items()}, self.path("w.safetensors"))
        return self.predict("gpt", "--weights", "w.safetensors", x=self.x)

    def linear(self):
        return {name: value.T if value.ndim == 2 else value for name, value in self.weights.items()}

    def test_a_file_of_transformers_is_known(self):
        np.testing.assert_allclose(self.predicted(self.weights), self.expected(), rtol=0, atol=1e-5)

    def test_so_is_one_of_linear_layers(self):
        np.testing.assert_allclose(self.predicted(self.linear()), self.expected(), rtol=0, atol=1e-5)

    def test_the_mask_of_attention_is_passed_over(self):
        mask = {"h.0.attn.bias": np.tril(np.ones((1, 1, 4, 4), np.float32)), "h.0.attn.masked_bias": np.float32(-1e4).reshape(())}
        np.testing.assert_allclose(self.predicted(self.weights | mask), self.expected(), rtol=0, atol=1e-5)

    def test_halves_are_widened_where_they_are_transposed(self):
        halves = {name: value.astype(np.float16) for name, value in self.weights.items()}
        self.weights = {name: value.astype(np.float32) for name, value in halves.items()}
        np.testing.assert_allclose(self.predicted(halves), self.expected(), rtol=0, atol=1e-5)

    def test_a_file_that_has_both_kinds_is_refused(self):
        mixed = self.linear() | {"h.0.attn.c_attn.weight": self.weights["h.0.attn.c_attn.weight"]}
        save_file({name: np.ascontiguousarray(value) for name, value in mixed.items()}, self.path("w.safetensors"))
        np.save(self.path("x.npy"), self.x)
        said = self.run_program(self.path("gpt"), "predict", "--input=x=@x.npy", "--output=y=@y.npy", "--weights", "w.safetensors",
                                code=3)
        self.assertRegex(said, "'h.0.attn.c_attn.weight' is transposed and 'h.0.mlp.c_(fc|proj).weight' is not")


class DataTest(Case):
    """States with initial data, and constants: small ones in the executable, large ones in a separate file."""

    def write(self, width, dtype=np.float32):
        self.weights = {"fc.weight": self.normal(width, width).astype(dtype), "fc.bias": self.normal(width).astype(dtype),
                        "other": self.normal(width).astype(dtype)}
        self.table = self.normal(width)
        save_file(self.weights, self.path("w.safetensors"))
        np.save(self.path("table.npy"), self.table)
        self.x = self.normal(ROWS, width)

    def graph(self, width, code=0):
        return self.run_program(MODELS, "data", "data.mlir", "w.safetensors", "table.npy", str(width), code=code)

    def begin(self, width, *options, dtype=np.float32):
        self.write(width, dtype)
        self.graph(width)
        for name in ("w.safetensors", "table.npy"):  # the graph's own file already contains them
            os.remove(self.path(name))
        self.run_program(SLUICE, "compile", "data.mlir", "-o", "data", *options)

    def expected(self, weights=None):
        w = {name: value.astype(np.float64) for name, value in (weights or self.weights).items()}
        return np.tanh(self.x @ w["fc.weight"].T + w["fc.bias"]) * w["other"] + self.table + 0.25

    def check(self, *options):
        np.testing.assert_allclose(self.predict("data", *options, x=self.x), self.expected(), rtol=0, atol=1e-5)

    def files(self):
        return sorted(os.listdir(self.folder))

    def test_small_data_is_in_the_executable(self):
        self.begin(4)
        os.remove(self.path("data.mlir.safetensors"))
        self.assertEqual(self.files(), ["data", "data.mlir"])
        self.check()

    def test_large_data_is_beside_it(self):
        self.begin(1100)  # 4.8 MB
        os.remove(self.path("data.mlir.safetensors"))
        self.assertEqual(self.files(), ["data", "data.mlir", "data.values.safetensors"])
        self.check()
        os.mkdir(self.path("other"))  # both files can be moved together
        for name in ("data", "data.values.safetensors"):
            os.rename(self.path(name), self.path(f"other/{name}"))
        np.testing.assert_allclose(self.predict("other/data", x=self.x), self.expected(), rtol=0, atol=1e-4)

    def test_large_data_that_is_not_there_is_named(self):
        self.begin(1100)
        values = self.path("data.values.safetensors")
        with open(values, "rb") as file:
            content = file.read()
        np.save(self.path("x.npy"), self.x)
        damaged = bytearray(content)
        damaged[-5] ^= 1
        other = load_file(values)
        for name, what, said in (("cut", content[:-4], "data.values.safetensors"), ("changed", bytes(damaged), "checksum differs"),
                                 ("gone", None, "cannot open: No such file or directory; the model needs the initial values in this file")):
            with self.subTest(name):
                os.remove(values)
                if what is not None:
                    with open(values, "wb") as file:
                        file.write(what)
                error = self.run_program(self.path("data"), "predict", "--input=x=@x.npy", "--output=y=@y.npy", code=3)
                self.assertIn(said, error)
                self.assertIn("data.values.safetensors", error)
                if what is None:
                    open(values, "wb").close()
        for name, wrong, said in (("shape", other["fc.bias"][:-1], r"'fc.bias' is f32\[1099\], but the model has f32\[1100\]"),
                                  ("type", other["fc.bias"].astype(np.float64), "'fc.bias' is f64"),
                                  ("missing", None, "has no tensor 'fc.bias'")):
            with self.subTest(name):
                others = {key: value for key, value in other.items() if key != "fc.bias"}
                save_file(others | ({} if wrong is None else {"fc.bias": np.ascontiguousarray(wrong)}), values)
                error = self.run_program(self.path("data"), "predict", "--input=x=@x.npy", "--output=y=@y.npy", code=3)
                self.assertRegex(error, f"data.values.safetensors: .*{said}")
        self.assertFalse(os.path.exists(self.path("y.npy")))

    def test_the_graphs_file_is_checked(self):
        self.write(4)
        self.graph(4)
        values = self.path("data.mlir.safetensors")
        right = load_file(values)
        self.assertEqual(sorted(right), ["constant 1", "fc.bias", "fc.weight", "scale"])
        bias = right["fc.bias"]
        for name, wrong, said in (("shape", bias[:-1], r"'fc.bias' is f32\[3\], but the model has f32\[4\]"),
                                  ("type", bias.astype(np.int32), r"'fc.bias' is i32\[4\], but the model has f32\[4\]"),
                                  ("values", bias + 1, "'fc.bias' is not what the graph was written with: its checksum differs"),
                                  ("missing", None, "has no tensor 'fc.bias'")):
            with self.subTest(name):
                others = {key: value for key, value in right.items() if key != "fc.bias"}
                save_file(others | ({} if wrong is None else {"fc.bias": np.ascontiguousarray(wrong)}), values)
                error = self.run_program(SLUICE, "compile", "data.mlir", "-o", "data", code=3)
                self.assertRegex(error, rf"data.mlir.safetensors: .*{said}.*; 'fc.bias' begins with it \(StateModels.cpp:\d+:\d+\)")
        os.remove(values)
        self.assertIn("data.mlir.safetensors: cannot open", self.run_program(SLUICE, "compile", "data.mlir", "-o", "data", code=3))
        self.assertFalse(os.path.exists(self.path("data")))

    def test_what_the_graph_takes_is_checked_where_it_is_written(self):
        self.write(4)
        for weights, said in (({"fc.bias": self.normal(3)}, r"'fc.bias' cannot begin so: w.safetensors: 'fc.bias' is f32\[3\], but the model has f32\[4\]"),
                              ({"fc.bias": self.normal(4).astype(np.float64)}, "'fc.bias' is f64"),
                              ({"fc.bias": np.zeros(4, np.int32)}, "'fc.bias' is i32"),
                              ({"fc.bias": None}, "w.safetensors: has no tensor 'fc.bias'")):
            with self.subTest(said):
                changed = {key: value for key, value in (self.weights | weights).items() if value is not None}
                save_file(changed, self.path("w.safetensors"))
                error = self.graph(4, code=3)
                self.assertRegex(error, r"StateModels.cpp:\d+:\d+: error: .*" + said)
        with open(self.path("w.safetensors"), "wb") as file:
            file.write(b"\x10")
        self.assertIn("w.safetensors: not a safetensors file", self.graph(4, code=3))
        self.assertEqual(self.files(), ["table.npy", "w.safetensors"])

    def test_narrow_floats_are_widened(self):
        self.begin(4, dtype=np.float16)
        self.check()

    def test_training_begins_with_it(self):
        self.begin(4)
        target = self.normal(ROWS, 4)
        np.savez(self.path("data.npz"), x=self.x, target=target)
        self.run_program(self.path("data"), "train", "--data", "data.npz", "--epochs", "3", "--save", "after.safetensors")
        weight, bias = (torch.tensor(self.weights[f"fc.{name}"], dtype=torch.float64).requires_grad_() for name in ("weight", "bias"))
        rest = [torch.tensor(each, dtype=torch.float64) for each in (self.x, self.weights["other"], self.table, target)]
        optimizer = torch.optim.SGD([weight, bias], lr=0.5)
        for _ in range(3):
            optimizer.zero_grad()
            (torch.tanh(rest[0] @ weight.T + bias) * rest[1] + rest[2] + 0.25 - rest[3]).square().mean().backward()
            optimizer.step()
        after = load_file(self.path("after.safetensors"))
        self.assertEqual(sorted(after), ["fc.bias", "fc.weight", "scale"])
        np.testing.assert_allclose(after["fc.weight"], weight.detach().numpy(), rtol=0, atol=2e-6)
        np.testing.assert_allclose(after["fc.bias"], bias.detach().numpy(), rtol=0, atol=2e-6)

    def test_weights_win_over_it_and_constants_stay(self):
        self.begin(4)
        self.weights = {"fc.weight": self.normal(4, 4), "fc.bias": self.normal(4), "other": self.normal(4)}
        save_file({"fc.weight": self.weights["fc.weight"], "fc.bias": self.weights["fc.bias"], "scale": self.weights["other"]},
                  self.path("w.safetensors"))
        self.check("--weights", "w.safetensors")

    def test_replicas_and_other_devices_have_it(self):
        self.begin(4, "--replicas", "2", "--devices", "cpu")
        self.check()
        self.run_program(SLUICE, "compile", "data.mlir", "-o", "data", "--devices", "sim:0")
        self.check()

    def test_a_dump_goes_on_with_it(self):
        self.begin(4, "--dump-ir", "dump")
        os.rename(self.path("dump/07-fused.mlir"), self.path("dump/fused.mlir"))
        self.run_program(SLUICE, "compile", "dump/fused.mlir", "--compile-from", "fused", "-o", "again")
        np.testing.assert_allclose(self.predict("again", x=self.x), self.expected(), rtol=0, atol=1e-5)

    def test_a_graph_with_data_needs_a_file(self):
        self.write(4)
        said = self.run_program(MODELS, "data", "-", "w.safetensors", "table.npy", "4", code=3)
        self.assertIn("the graph 'data' has data, which needs a second file; save to a file", said)

    def test_nothing_is_left_where_the_graph_cannot_be_written(self):
        self.write(4)
        os.mkdir(self.path("data.mlir"))
        self.graph(4, code=3)
        self.assertEqual(self.files(), ["data.mlir", "table.npy", "w.safetensors"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
