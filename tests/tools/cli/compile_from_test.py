"""`--compile-from`: a dump of `model`, `train`, `chosen` or `fused` compiles to the same result as the model, and edits take
effect."""

import glob
import os
import re

from sluice_cli import BUILD, CliTest, main

RESUMABLE = {"model": "01-model.mlir", "train": "02-train.mlir", "fused": "07-fused.mlir"}


# A scan and a branch, with training.
LOOPS = """
module @loops {
  sluice.model "loops" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<3xf32> = <"uniform", -0.5 : f64, 0.5 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x", "flag"] (%x: tensor<?x2x3xf32>, %flag: tensor<i1>) {
    %w = sluice.get @w : tensor<3xf32>
    %e = sluice.expand %w {dims = array<i64: 1>, shape = array<i64: ?, 3>} : (tensor<3xf32>) -> tensor<?x3xf32>
    %s = sluice.scan 2 steps
        (%h = %e : tensor<?x3xf32>,
         %t = %x : tensor<?x2x3xf32> along 1) {
      %n = sluice.mul %h, %t : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
      sluice.step %n : tensor<?x3xf32>
    }
    %y = sluice.if %flag : tensor<i1> -> tensor<?x3xf32> {
      %n = sluice.tanh %s : (tensor<?x3xf32>) -> tensor<?x3xf32>
      sluice.yield %n : tensor<?x3xf32>
    } else {
      sluice.yield %s : tensor<?x3xf32>
    }
    sluice.output "y", %y : tensor<?x3xf32>
    %m = sluice.mean %y {axes = array<i64: 0, 1>} : (tensor<?x3xf32>) -> tensor<f32>
    sluice.minimize %m, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}
"""


class CompileFromTest(CliTest):
    def compile(self, *arguments):
        return self.succeed(os.path.join(BUILD, "bin", "sluice"), "compile", *arguments, "-q")

    def read(self, name, mode="r"):
        with open(self.path(name), mode) as content:
            return content.read()

    def edit(self, name, old, new, count):
        text = self.read(name)
        self.assertEqual(text.count(old), count, text)
        self.write(name, text.replace(old, new))

    def test_a_dump_compiles_to_the_same_executable(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "-o", "lenet.mlir")
        self.compile("lenet.mlir", "-o", "lenet", "--dump-ir", "dump")
        for phase, name in RESUMABLE.items():
            with self.subTest(phase):
                self.compile(f"dump/{name}", "--compile-from", phase, "-o", phase)
                self.assertTrue(self.read(phase, "rb") == self.read("lenet", "rb"))

    def test_a_dump_of_chosen_keeps_the_devices(self):
        """A dump of `chosen` yields the kernels of the search. An edited device moves its op."""
        self.succeed(os.path.join(BUILD, "bin", "models", "mlp"), "--batch", "16", "-o", "mlp.mlir")
        flags, known = ("--devices", "cpu,sim:0"), {"env": self.placement_environment()}
        link = ("--link", "sim:0=1000GB/s,1us")
        for arguments in (("mlp.mlir", "-o", "mlp", "--placement", "auto", *link, "--dump-ir", "dump"),
                          ("dump/03-chosen.mlir", "-o", "resumed")):
            result = self.sluice("compile", *arguments, *flags, "-q", **known)
            self.assertEqual(result.returncode, 0, result.stderr)
        text = self.read("dump/03-chosen.mlir")
        self.assertIn('sluice.chosen = "', text)
        self.assertNotIn("sluice.chosen", self.read("dump/05-placed.mlir"))
        fused = self.sluice("show", "dump/03-chosen.mlir", "--phase", "fused", **known)
        self.assertEqual(self.sluice("show", "mlp.mlir", *flags, "--placement", "auto", *link, "--phase", "fused", **known).stdout, fused.stdout)
        other = "cpu" if 'sluice.chosen = "acc0"' in text else "acc0"
        self.write("moved.mlir", re.sub(r'(sluice.relu .*sluice.chosen = )"\w+"', rf'\1"{other}"', text))
        moved = self.sluice("show", "moved.mlir", "--phase", "fused", **known)
        self.assertEqual(moved.returncode, 0, moved.stderr)
        self.assertNotEqual(moved.stdout, fused.stdout)
        self.write("absent.mlir", re.sub(r'(sluice.relu .*sluice.chosen = )"\w+"', r'\1"acc7"', text))
        absent = self.sluice("compile", "absent.mlir", "-o", "absent")
        self.assertEqual(absent.returncode, 3)
        self.assertIn("'sluice.chosen' that names no device of the target cpu,sim:0", absent.stderr)
        again = self.sluice("compile", "dump/03-chosen.mlir", "--placement", "auto", "-o", "again")
        self.assertEqual(again.returncode, 2)
        self.assertIn("cannot place a dump of phase 'chosen'", again.stderr)

    def test_a_dump_with_loops_compiles_to_the_same_executable(self):
        self.write("loops.mlir", LOOPS)
        self.compile("loops.mlir", "-o", "loops", "--dump-ir", "dump")
        self.assertIn("sluice.loop", self.read("dump/02-train.mlir"))
        for phase, name in RESUMABLE.items():
            with self.subTest(phase):
                self.compile(f"dump/{name}", "--compile-from", phase, "-o", phase)
                self.assertTrue(self.read(phase, "rb") == self.read("loops", "rb"))

    def test_a_dump_of_a_later_phase_is_not_taken_for_an_earlier_one(self):
        self.write("loops.mlir", LOOPS)
        self.compile("loops.mlir", "-o", "loops", "--dump-ir", "dump")
        self.write("edited.mlir", self.read("dump/08-scheduled.mlir").replace('phase "scheduled"', 'phase "train"'))
        result = self.sluice("compile", "edited.mlir", "-o", "edited")
        self.assertEqual(result.returncode, 3)
        self.assertRegex(result.stderr, r"loops\.mlir:\d+:\d+: error: .* is of a later phase than 'train'")

    def test_a_dump_names_no_folder_of_this_machine(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "-o", "lenet.mlir")
        self.compile("lenet.mlir", "-o", "lenet", "--dump-ir", "dump")
        files = [name for name in glob.glob("**", root_dir=self.path("dump"), recursive=True) if os.path.isfile(self.path(f"dump/{name}"))]
        self.assertIn("kernels/avg_pool2d.s", files)
        for name in files:
            self.assertNotRegex(self.read(f"dump/{name}"), r'"/|\.\./')

    def test_a_dump_says_what_phase_it_is_of(self):
        self.compile("small.mlir", "-o", "small", "--dump-ir", "dump")
        for name in RESUMABLE.values():
            with self.subTest(name):
                self.compile(f"dump/{name}", "-o", "resumed")
                self.assertEqual(self.predictions("resumed", [(1, 2, 3), (-1, 0, 0)]), [6, 6, 0, 0])

    def test_options_without_an_effect_are_refused(self):
        self.compile("small.mlir", "-o", "small", "--dump-ir", "dump")
        for phase, flags, why in (
            ("train", ("--dtype", "f64"), "passed phase 'model'"),
            ("train", ("--batch", "999"), " rows"),
            ("fused", ("--batch", "999"), " rows"),
            ("fused", ("--no-fuse",), "passed phase 'fused'"),
            ("fused", ("--copies", "insert"), "its copies"),
            ("fused", ("--devices", "sim:0"), "the devices cpu"),
        ):
            result = self.sluice("compile", f"dump/{RESUMABLE[phase]}", "-o", "resumed", *flags)
            self.assertEqual(result.returncode, 2, (phase, flags))
            self.assertRegex(result.stderr, f"cannot apply {flags[0]} to a dump of phase '{phase}', which already has .*{why}; leave out {flags[0]}")
        for phase, flags in (("train", ("--no-fuse",)), ("train", ("--copies", "insert")), ("fused", ("--target-cpu", "haswell"))):
            self.compile(f"dump/{RESUMABLE[phase]}", "-o", "resumed", *flags)
            self.assertEqual(self.predictions("resumed", [(1, 2, 3), (-1, 0, 0)]), [6, 6, 0, 0])

    def test_a_model_of_an_unknown_phase_is_invalid(self):
        self.write("odd.mlir", self.read("small.mlir").replace('phase "model"', 'phase "zz"'))
        result = self.sluice("compile", "odd.mlir", "-o", "odd")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("there is no phase 'zz'", result.stderr)

    def test_an_edited_dump_takes_effect(self):
        self.compile("small.mlir", "-o", "small", "--dump-ir", "dump")
        self.assertEqual(self.predictions("small", [(1, 2, 3), (-1, 0, 0)]), [6, 6, 0, 0])
        for phase, name in RESUMABLE.items():
            with self.subTest(phase):
                self.edit(f"dump/{name}", "sluice.relu", "sluice.neg", 1)
                self.compile(f"dump/{name}", "--compile-from", phase, "-o", phase)
                self.assertEqual(self.predictions(phase, [(1, 2, 3), (-1, 0, 0)]), [-6, -6, 1, 1])

    def test_a_wrong_edit_is_refused_at_its_line(self):
        self.compile("small.mlir", "-o", "small", "--dump-ir", "dump")
        self.edit("dump/02-train.mlir", "sluice.relu", "sluice.rleu", 1)
        result = self.sluice("compile", "dump/02-train.mlir", "--compile-from", "train", "-o", "edited")
        self.assertEqual(result.returncode, 3)
        self.assertRegex(result.stderr, r"02-train\.mlir:\d+:\d+: .*sluice\.rleu")
        self.assertFalse(os.path.exists(self.path("edited")))


if __name__ == "__main__":
    main()
