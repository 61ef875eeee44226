#!/usr/bin/env python3
"""Texts and tokens as data, compared with the tokenizers package and PyTorch: text_test.py SOURCE_ROOT BUILD_ROOT."""

import json
import math
import os
import random
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
from tokenizers import ByteLevelBPETokenizer  # noqa: E402

KJV = os.path.join(SOURCE, "models", "data", "kjv")
WORDS, WIDTH, LENGTH, IGNORED = 11, 6, 5, 3  # sizes in state_models
TEXTS = ["", " ", "\n", "  ", " \n ", "a", " a", "a ", "  a", "a  b", "a \n b", "a\n\n\nb", "\t\tx", "I'm he's we'll they'd I've you're don't",
         "'s 'S ' s' 'll'd", "'", "a'", "it's'", "12 345,678.90 a1b2", "x=y+z; // (ok?)", "...!?\n", "é ü ñ ß", "Ελληνικά κείμενο", "中文字 テスト",
         "a\u00a0b\u2003 c", "👍🏽 ok", "½ ² Ⅷ ٣", "a\u0301 b", "_a_ __", "\u200b\ufeff", "\x00\x01", "e" * 300, " " * 40 + "x", "x\r\ny"]


class TokenizerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = cls.scratch.name
        cls.tokenizer = ByteLevelBPETokenizer()
        cls.tokenizer.train([os.path.join(KJV, "train.txt")], vocab_size=700, show_progress=False)
        cls.tokenizer.save_model(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def dump(self, folder, *texts, code=0):
        for i, text in enumerate(texts):
            with open(os.path.join(self.folder, f"{i}.txt"), "wb") as file:
                file.write(text if isinstance(text, bytes) else text.encode())
        command = [os.path.join(BUILD, "tests", "token_dump"), folder, *(f"{i}.txt" for i in range(len(texts)))]
        result = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, timeout=100, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stderr if code else [list(map(int, line.split())) for line in result.stdout.splitlines()]

    def compare(self, texts):
        for text, tokens in zip(texts, self.dump(".", *texts)):
            self.assertEqual(tokens, self.tokenizer.encode(text).ids, repr(text))
            self.assertEqual(self.tokenizer.decode(tokens), text)

    def test_a_book_has_the_tokens_of_the_package(self):
        with open(os.path.join(KJV, "test.txt")) as file:
            self.compare([file.read()])

    def test_so_have_words_spaces_and_signs_of_all_kinds(self):
        self.compare(TEXTS)

    def test_so_have_random_texts(self):
        draw = random.Random(3)
        alphabet = "aeinst  \n\t.,;'-0123 ABéß中👍½\u00a0\u2003" + "the and of "
        self.compare(["".join(draw.choice(alphabet) for _ in range(draw.randrange(60))) for _ in range(200)])

    def test_a_long_word_takes_no_longer_than_many_short_ones(self):
        self.compare(["ababcthe" * 20000])

    def test_damaged_files_are_refused(self):
        with open(os.path.join(self.folder, "vocab.json")) as words, open(os.path.join(self.folder, "merges.txt")) as lines:
            vocabulary, merges = json.load(words), lines.read()
        cases = [("{", merges, "is not a vocabulary"), ("[1]", merges, "is not a vocabulary"), ('{"a": -1}', merges, "'a' is negative"),
                 ('{"a": {"b": 1}}', merges, "an object in it"), ('{"a": 1, "a": 2}', merges, "'a' appears twice"),
                 ('{"a": 4294967296}', merges, "'a' is 4294967296"), ("{" * 100000, merges, "is not a vocabulary"),
                 (json.dumps(vocabulary), "#version: 0.2\nt qqq\n", "merges.txt: line 2: 't qqq' are not two tokens"),
                 (json.dumps(vocabulary), "t\n", "merges.txt: line 1: 't' are not two tokens"),
                 (json.dumps({"a": 1}), "", "'x' needs the byte 120, for which broken/vocab.json has no token")]
        os.makedirs(os.path.join(self.folder, "broken"), exist_ok=True)
        for text, lines, said in cases:
            with self.subTest(said):
                for name, content in (("vocab.json", text), ("merges.txt", lines)):
                    with open(os.path.join(self.folder, "broken", name), "w") as file:
                        file.write(content)
                self.assertIn(said, self.dump("broken", "x", code=3))
        self.assertIn("none/vocab.json: cannot open", self.dump("none", "x", code=3))
        for wrong in (b"a\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"):
            self.assertRegex(self.dump(".", wrong, code=3), r"0.txt: byte \d is not valid UTF-8")


class TrainingTest(unittest.TestCase):
    """A language model of eleven words that reads token streams."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.run_program(os.path.join(BUILD, "tests", "state_models"), "averaged", "words.mlir")
        self.run_program(os.path.join(BUILD, "bin", "sluice"), "compile", "words.mlir", "-o", "words")
        draw = np.random.default_rng(2)
        self.tokens = draw.integers(0, WORDS, 104)
        self.weights = {"wte.weight": draw.normal(0, 1, (WORDS, WIDTH)).astype(np.float32),
                        "lm_head.weight": draw.normal(0, 1, (WORDS, WIDTH)).astype(np.float32)}
        save_file(self.weights, os.path.join(self.folder, "w.safetensors"))

    def run_program(self, *command, code=0):
        result = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, timeout=200, check=False)
        self.assertEqual(result.returncode, code, f"{command}: {result.stderr}")
        return result.stderr if code else result.stdout

    def eval(self, data, *options, code=0):
        said = self.run_program("./words", "eval", "--data", data, "--weights", "w.safetensors", "--json", *options, code=code)
        return said if code else json.loads(said)

    def expected(self, **options):
        rows = (len(self.tokens) - 1) // LENGTH
        x, label = (torch.tensor(self.tokens[i : i + rows * LENGTH].astype(np.int64)).reshape(rows, LENGTH) for i in (0, 1))
        wte, head = (torch.tensor(self.weights[f"{name}.weight"], dtype=torch.float64) for name in ("wte", "lm_head"))
        return torch.nn.functional.cross_entropy((torch.tanh(wte[x]) @ head.T).transpose(1, 2), label, **options).item()

    def write(self, name, content):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(content)

    def test_all_kinds_of_streams_are_read_alike(self):
        self.write("x.bin", self.tokens.astype("<u2").tobytes())
        self.write("x.i32.bin", self.tokens.astype("<i4").tobytes())
        self.write("x.txt", self.tokens.astype(np.uint8).tobytes())
        for dtype in (np.uint8, np.int32, np.int64):
            np.save(os.path.join(self.folder, f"{np.dtype(dtype).name}.npy"), self.tokens.astype(dtype))
        for name in ("x.bin", "x.i32.bin", "x.txt", "uint8.npy", "int32.npy", "int64.npy"):
            with self.subTest(name):
                self.assertAlmostEqual(self.eval(name)["loss"], self.expected(), delta=2e-6)

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def train(self, *options):
        """The output and the weights of a run."""
        self.write("x.bin", self.tokens.astype("<u2").tobytes())
        said = self.run_program("./words", "train", "--data", "x.bin", "--save", "a.safetensors", "--json", *options)
        return [json.loads(line) for line in said.splitlines()], self.read("a.safetensors")

    def test_windows_are_drawn_by_the_seed(self):
        first = self.train("--epochs", "2", "--seed", "4")[1]
        self.assertEqual(first, self.train("--epochs", "2", "--seed", "4", "--threads", "1")[1])
        self.assertNotEqual(first, self.train("--epochs", "2", "--seed", "5")[1])

    def test_perplexity_is_that_of_all_words(self):
        self.write("x.bin", self.tokens.astype("<u2").tobytes())
        found, expected = self.eval("x.bin")["perplexity"], math.exp(self.expected(ignore_index=IGNORED))
        self.assertAlmostEqual(found, expected, delta=1e-5 * expected)
        self.assertIn(f"  perplexity {found:.4f}  (20 rows)", self.run_program("./words", "eval", "--data", "x.bin", "--weights", "w.safetensors"))
        said = self.run_program("./words", "train", "--data", "x.bin", "--test-data", "x.bin", "--epochs", "1", "--set", "lr=0",
                                "--weights", "w.safetensors")
        self.assertIn(f"  test perplexity {found:.4f}  ", said)

    def test_steps_end_within_an_epoch(self):
        whole, weights = self.train("--steps", "7")  # of three steps per epoch
        self.assertEqual([(line["epoch"], line["step"]) for line in whole], [(1, 3), (2, 6), (3, 7)])
        self.assertNotEqual(weights, self.train("--steps", "6")[1])
        self.assertEqual(self.train("--steps", "6")[1], self.train("--epochs", "2")[1])
        self.assertEqual(self.train("--epochs", "1")[1], self.train("--epochs", "1", "--steps", "7")[1])
        self.train("--steps", "4", "--checkpoint", "run")
        rest, resumed = self.train("--steps", "7", "--checkpoint", "run", "--resume")
        self.assertEqual(resumed, weights)
        for line in whole + rest:
            del line["images_per_s"]
        self.assertEqual(rest, whole[1:])
        self.assertIn("--steps: 0 is outside", self.run_program("./words", "train", "--steps", "0", code=2))

    def test_averages_are_saved_as_weights(self):
        self.train("--epochs", "3", "--checkpoint", "run", "--save-averages", "averages.safetensors")
        averages, weights = (load_file(os.path.join(self.folder, name)) for name in ("averages.safetensors", "a.safetensors"))
        states = load_file(os.path.join(self.folder, "run", sorted(os.listdir(os.path.join(self.folder, "run")))[-1]))
        self.assertEqual(averages.keys(), weights.keys())
        for name, average in averages.items():
            np.testing.assert_array_equal(average, states[name + ".ema"])
            self.assertFalse(np.array_equal(average, weights[name]))
        self.weights = averages
        found = json.loads(self.run_program("./words", "eval", "--data", "x.bin", "--weights", "averages.safetensors", "--json"))
        self.assertAlmostEqual(found["loss"], self.expected(), delta=2e-6)

    def test_averages_that_no_optimizer_keeps_are_refused(self):
        self.run_program(os.path.join(BUILD, "tests", "state_models"), "untied", "words.mlir")
        self.run_program(os.path.join(BUILD, "bin", "sluice"), "compile", "words.mlir", "-o", "words")
        said = self.refused("--data", "x.bin", "--save-averages", "averages.safetensors", code=2)
        self.assertIn("--save-averages: the model keeps no averages of its weights", said)

    def refused(self, *options, code=3):
        """The output of a run that writes no files."""
        before = sorted(os.listdir(self.folder))
        said = self.run_program("./words", "train", *options, "--save", "out.safetensors", "--log", "out.jsonl", "--trace", "out.json", code=code)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        return said

    def test_what_is_no_word_is_refused(self):
        self.tokens[70] = WORDS
        self.write("x.bin", self.tokens.astype("<u2").tobytes())
        self.write("x.txt", self.tokens.astype(np.uint8).tobytes())
        np.save(os.path.join(self.folder, "x.npy"), self.tokens)
        for name in ("x.bin", "x.txt", "x.npy"):
            said = f"{name}: column 'tokens', row 14: 11 is none of the 11 classes 0 to 10 of input 'tokens'"
            self.assertIn(said, self.eval(name, code=3))
            self.assertIn(said, self.refused("--data", name))
        self.tokens[70] = -1
        self.write("x.i32.bin", self.tokens.astype("<i4").tobytes())
        self.assertIn("x.i32.bin: column 'tokens', row 14: -1 is none of the 11 classes", self.refused("--data", "x.i32.bin"))

    def test_what_is_too_short_is_refused(self):
        self.write("x.txt", b"\1\2\3\4\5")
        self.assertIn("x.txt: has 5 tokens, but a row has 5 and needs one more for its last label", self.refused("--data", "x.txt"))
        self.write("x.txt", b"")
        self.assertIn("x.txt: is empty", self.refused("--data", "x.txt"))
        self.write("x.bin", b"\1\0\2")
        self.assertIn("x.bin: has 3 bytes, which are no tokens of 2 bytes each", self.refused("--data", "x.bin"))

    def test_what_cannot_be_read_is_refused(self):
        os.symlink("nowhere", os.path.join(self.folder, "lost.txt"))
        self.assertIn("no data 'lost.txt': it is neither a file or folder here nor a data set in ", self.refused("--data", "lost.txt"))
        os.makedirs(os.path.join(self.folder, "texts", "train.txt"))
        self.assertIn("texts/train.txt: ", self.refused("--data", "texts"))
        os.makedirs(os.path.join(self.folder, "empty"))
        self.assertIn("empty: has no data; supported: ", self.refused("--data", "empty"))
        self.write("x.dat", b"abc")
        self.assertIn("x.dat: is neither an .npy, .npz, .bin nor .txt file", self.refused("--data", "x.dat"))

    def test_a_text_has_another_vocabulary_than_the_model(self):
        self.run_program(os.path.join(BUILD, "bin", "models", "lstm"), "--words", "300", "-o", "words.mlir")
        self.run_program(os.path.join(BUILD, "bin", "sluice"), "compile", "words.mlir", "-o", "words")
        self.write("x.txt", b"in the beginning " * 20)
        self.assertIn("x.txt: is read by its bytes, which are 256 tokens, but input 'tokens' takes 300; --tokenizer FOLDER reads it by words",
                      self.refused("--data", "x.txt"))
        self.write("merges.txt", b"")
        for words, code in ((300, 0), (301, 3)):
            self.write("vocab.json", json.dumps({letter: i for i, letter in enumerate("inthebgĠ")} | {"last": words - 1}).encode())
            command = ["./words", "train", "--data", "x.txt", "--tokenizer", ".", "--epochs", "1"]
            said = self.run_program(*command, code=code)
            if code:
                self.assertIn("./vocab.json: has 301 tokens, but input 'tokens' takes 300", said)

    def test_a_tokenizer_is_for_texts(self):
        self.write("x.bin", self.tokens.astype("<u2").tobytes())
        self.assertIn("--tokenizer is for texts, and x.bin is a .bin file of tokens", self.eval("x.bin", "--tokenizer", ".", code=2))

    def test_a_text_is_read_by_a_tokenizer(self):
        letters = "abcdefghij "
        tokenizer = {"abcdefghij"[i]: i for i in range(10)} | {"Ġ": 10}
        self.write("vocab.json", json.dumps(tokenizer).encode())
        self.write("merges.txt", b"#version: 0.2\n")
        self.write("x.txt", "".join(letters[token] for token in self.tokens).encode())
        self.assertAlmostEqual(self.eval("x.txt", "--tokenizer", ".")["loss"], self.expected(), delta=2e-6)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
