"""`generate`: text input and output, sampling, the end of the context, and the errors."""

import json
import os
import subprocess
import tempfile

from sluice_cli import BUILD, CliTest, main

USAGE, INVALID = 2, 3
FULL = os.environ.get("SLUICE_TEST_FULL") == "1"
LENGTH = 32
CYCLE = "abcdefgh"


def small_model(name, words, extra=()):
    """A GPT-2 of one layer, compiled into `name`."""
    program = os.path.join(BUILD, "bin", "models", "gpt2")
    sizes = ["--layers", "1", "--width", "64", "--length", str(LENGTH), "--batch", "8", "--words", str(words)]
    subprocess.run([program, *sizes, "-o", name + ".mlir"], check=True, capture_output=True)
    subprocess.run([os.path.join(BUILD, "bin", "sluice"), "compile", name + ".mlir", "-q", "-o", name, *extra], check=True)


class GenerateTest(CliTest):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.trained = os.path.join(scratch.name, "model")
        cls.weights = os.path.join(scratch.name, "w.safetensors")
        small_model(cls.trained, 256)
        with open(os.path.join(scratch.name, "text.txt"), "w", encoding="utf-8") as text:
            text.write(CYCLE * 1000)
        subprocess.run(
            [cls.trained, "train", "--data", os.path.join(scratch.name, "text.txt"), "--epochs", "4", "--set", "lr=0.003", "--save", cls.weights, "-q"],
            check=True, capture_output=True)

    def generate(self, *arguments, program=None, **options):
        return self.run_program(program or self.trained, "generate", "--weights", self.weights, *arguments, **options)

    def text(self, *arguments, **options):
        result = self.generate("-q", *arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def refused(self, code, message, *arguments, **options):
        result = self.generate(*arguments, **options)
        self.assert_refused(result, code, message)
        self.assertEqual(result.stdout, "")

    def test_it_goes_on_as_it_was_taught(self):
        self.assertEqual(self.text("--prompt", "abcde", "--tokens", "9", "--temperature", "0"), "fghabcdef\n")

    def test_a_prompt_comes_from_standard_input(self):
        result = self.run_program(
            self.trained, "generate", "--weights", self.weights, "--prompt", "-", "--tokens", "3", "--temperature", "0", input="cde")
        self.assertEqual((result.returncode, result.stdout), (0, "fgh\n"), result.stderr)
        self.assertRegex(result.stderr, r"^prompt of 3 tokens: .+ tokens/s; 3 more: .+ tokens/s\n$")

    def test_tokens_are_numbers_if_asked_for(self):
        self.assertEqual(self.text("--prompt-tokens", "97,98,99", "--tokens", "2", "--temperature", "0"), "100 101 \n")

    def test_json_says_all(self):
        answer = json.loads(self.text("--prompt", "abc", "--tokens", "2", "--temperature", "0", "--json"))
        self.assertEqual((answer["prompt_tokens"], answer["tokens"], answer["text"]), (3, [100, 101], "de"))
        self.assertGreater(answer["seconds"], 0)
        self.assertAlmostEqual(answer["tokens_per_s"], 2 / answer["seconds"])

    def test_a_seed_says_what_is_drawn(self):
        drawn = [self.text("--prompt", "abc", "--tokens", "20", "--temperature", "5", "--json", "--seed", seed) for seed in ("1", "1", "2")]
        tokens = [json.loads(answer)["tokens"] for answer in drawn]
        self.assertEqual(tokens[0], tokens[1])
        self.assertNotEqual(tokens[0], tokens[2])

    def test_top_k_and_top_p_leave_the_best(self):
        greedy = self.text("--prompt", "abc", "--tokens", "20", "--temperature", "0")
        for flag in (["--top-k", "1"], ["--top-p", "0"], ["--top-p", "0.01", "--top-k", "9"]):
            self.assertEqual(self.text("--prompt", "abc", "--tokens", "20", "--temperature", "5", *flag), greedy)
        drawn = ("--prompt-tokens", "97,98,99", "--tokens", "20", "--temperature", "5", "--seed", "3")
        self.assertEqual(self.text(*drawn, "--top-k", "0"), self.text(*drawn))  # all tokens

    def test_the_context_ends_or_slides(self):
        self.assertEqual(len(self.text("--prompt", "a" * 8, "--tokens", str(LENGTH - 8), "--temperature", "0")), LENGTH - 8 + 1)
        self.refused(INVALID, "the prompt's 8 tokens and 25 more are longer than the model's context of 32", "--prompt", "a" * 8, "--tokens", "25")
        self.refused(INVALID, "the prompt's 1 token and 32 more are longer", "--prompt", "a", "--tokens", "32")
        cycles = self.text("--prompt", CYCLE, "--tokens", "160", "--temperature", "0", "--slide")
        self.assertEqual(cycles, CYCLE * 20 + "\n")
        self.assertEqual(self.text("--prompt", CYCLE * 20, "--tokens", "4", "--temperature", "0", "--slide"), "abcd\n")

    def test_what_makes_no_sense_is_refused(self):
        self.refused(USAGE, "generate needs --prompt TEXT, or --prompt-tokens")
        self.refused(INVALID, "--prompt: the prompt is empty", "--prompt", "")
        self.refused(INVALID, "standard input: nothing is written to this pipe", "--prompt", "-", input="")
        self.write("empty", "")
        with open(self.path("empty"), encoding="utf-8") as empty:
            self.refused(INVALID, "standard input: the prompt is empty", "--prompt", "-", stdin=empty)
        self.refused(USAGE, "--temperature: '-1' is not a number from 0 to 1000", "--prompt", "a", "--temperature", "-1")
        self.refused(USAGE, "--top-p: '2' is not a number from 0 to 1", "--prompt", "a", "--top-p", "2")
        self.refused(USAGE, "--top-k: -1 is outside", "--prompt", "a", "--top-k", "-1")
        self.refused(USAGE, "--tokens: 0 is outside", "--prompt", "a", "--tokens", "0")
        self.refused(INVALID, "--prompt-tokens: 256 is outside the vocabulary, 0 to 255", "--prompt-tokens", "3,256")
        self.refused(INVALID, "--prompt-tokens: -1 is outside the vocabulary", "--prompt-tokens=-1")
        self.refused(USAGE, "--prompt-tokens: '3,,4' is not a list such as 5,17,3", "--prompt-tokens", "3,,4")
        self.refused(INVALID, "--prompt-tokens: the prompt is empty", "--prompt-tokens", "")
        self.assert_refused(self.run_program(self.trained, "generate", "--prompt", "a"), USAGE, "generate needs --weights FILE")

    def test_other_models_say_that_they_cannot(self):
        self.succeed(os.path.join(BUILD, "bin", "sluice"), "compile", "small.mlir", "-q", "-o", "small")
        self.assert_refused(
            self.run_program(self.path("small"), "generate", "--prompt", "a"), USAGE, "cannot generate text", "'decode'; it has: predict, init")

    def test_a_vocabulary_fits(self):
        characters = [chr(c) for c in range(256)]
        for name, tokens in (("fits", characters[97:105] + ["ab", "cd"]), ("large", characters + ["ab"])):
            os.mkdir(self.path(name))
            self.write(f"{name}/vocab.json", json.dumps({token: number for number, token in enumerate(tokens)}))
            self.write(f"{name}/merges.txt", "#version: 0.2\na b\n" + ("c d\n" if name == "fits" else ""))
        self.refused(INVALID, "has tokens up to number 256, and the vocabulary size is 256", "--tokenizer", "large", "--prompt", "a")
        answer = json.loads(self.text("--tokenizer", "fits", "--prompt", "abcde", "--tokens", "5", "--temperature", "9", "--json"))
        self.assertEqual(answer["prompt_tokens"], 3)
        words = ["a", "b", "c", "d", "e", "f", "g", "h", "ab", "cd"]
        self.assertEqual(answer["text"], "".join(words[token] for token in answer["tokens"]))
        self.refused(INVALID, "needs the byte 122", "--tokenizer", "fits", "--prompt", "z")
        self.refused(USAGE, "cannot combine --prompt-tokens with --tokenizer", "--tokenizer", "fits", "--prompt-tokens", "1")

    def test_few_words_are_no_bytes(self):
        small_model(self.path("few"), 20)
        self.assert_refused(
            self.run_program(self.path("few"), "generate", "--weights", "absent", "--prompt", "a"), INVALID,
            "cannot use bytes as tokens: the vocabulary size is 20; give --tokenizer or --prompt-tokens")

    def test_replicas_microbatches_and_accelerators_give_the_same(self):
        def tokens(**options):
            return json.loads(self.text("--prompt", CYCLE * 2, "--tokens", "12", "--temperature", "2", "--json", **options))["tokens"]

        expected = tokens()
        sample = [["--accumulate", "2"], ["--zero", "1", "--replicas", "2"], ["--devices", "cpu,sim:0", "--placement", "auto"]]
        others = [["--replicas", "2"], ["--deterministic", "2"], ["--devices", "sim:0"]]
        for extra in sample + others if FULL else sample:
            with self.subTest(extra):
                small_model(self.path("other"), 256, extra)
                self.assertEqual(tokens(program=self.path("other")), expected)


if __name__ == "__main__":
    main()
