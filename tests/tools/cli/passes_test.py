"""`sluice compile --timing`, `--print-after` and `--verify-each`: the passes of a compilation, as registered."""

import json
import os
import re

from sluice_cli import BUILD, CliTest, main

# With these options, every registered pass runs.
WAYS = (
    ("--dtype", "f64"),
    ("--entries", "predict", "--weights-type", "bf16"),
    ("--entries", "predict", "--weights-type", "q8_0"),
    ("--devices", "sim:0=1GB"),
    ("--devices", "cpu,sim:0", "--placement", "auto"),
    ("--devices", "sim:0-1", "--replicas", "2", "--zero", "1"),
    ("--devices", "sim:0-1", "--replicas", "2", "--zero", "1", "--buckets", "fewest"),
)


def registered():
    """The names of all passes, and the passes of each phase."""
    with os.popen(os.path.join(BUILD, "bin", "sluice-opt") + " --phases") as output:
        phases, passes, _ = output.read().split("\n\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in passes.splitlines()[2:]]
    return [row[0].strip("`") for row in rows], phases


class PassesTest(CliTest):
    def setUp(self):
        super().setUp()
        self.succeed(os.path.join(BUILD, "bin", "models", "mlp"), "--batch", "16", "-o", "mlp.mlir")

    def compile(self, *arguments, model="mlp.mlir"):
        result = self.sluice("compile", model, "-o", "mlp", *arguments, env=self.placement_environment())
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def phases_that_do_not_add_up(self):
        """Phases whose passes take less than 95 % of their time, or more than all of it."""
        summary, wrong = json.loads(self.compile("--timing", "--json").stdout), []
        for phase, seconds in summary["phases"].items():
            if phase == "executable":  # the link is no pass
                continue
            passes = [its["seconds"] for its in summary["passes"] if its["phase"] == phase]
            self.assertTrue(passes, phase)
            if not 0.95 * seconds - 1e-5 <= sum(passes) <= seconds:
                wrong.append((phase, seconds, passes))
        return wrong

    def test_the_times_of_passes_add_up_to_those_of_phases(self):
        """In one of three compilations, because another process may interrupt the compiler between two passes."""
        wrong = self.phases_that_do_not_add_up()
        for _ in range(2):
            wrong = wrong and self.phases_that_do_not_add_up()
        self.assertEqual(wrong, [])

    def test_the_table_of_times_lists_phases_with_their_passes(self):
        lines = self.compile("--timing").stderr.splitlines()
        names = [line.split()[0] for line in lines if line.endswith("%")]
        self.assertEqual(names[:3], ["model", "record-options", "verify"])
        self.assertIn("fuse-kernels", names[names.index("fused"):names.index("scheduled")])
        self.assertEqual(names[-1], "total")
        times = {line.split()[0]: float(line.split()[1]) for line in lines if line.endswith("%") and not line.startswith(" ")}
        total = times.pop("total")
        self.assertAlmostEqual(sum(times.values()), total, delta=0.05 * len(times) + 0.01 * total)

    def test_the_ir_is_printed_after_every_registered_pass(self):
        names, _ = registered()
        self.assertGreater(len(names), 30)
        printed = set()
        flags = [flag for name in names for flag in ("--print-after", name)]
        with open(self.path("mlp.mlir"), encoding="utf-8") as file:
            self.write("functional.mlir", file.read().replace(" capacity 16", " capacity 16 functional"))
        for way in (*WAYS, ()):
            text = self.compile(*way, *flags, model="mlp.mlir" if way else "functional.mlir").stderr
            found = re.findall(r"^// After pass ([\w-]+) of phase (\w+)\n(?:#.*\n)*module @", text, re.M)
            printed |= {name for name, _ in found}
        self.assertEqual(printed, set(names))

    def test_an_unknown_pass_is_an_error(self):
        result = self.sluice("compile", "mlp.mlir", "-o", "mlp", "--print-after", "fuse-kernel")
        self.assertEqual(result.returncode, 2)
        self.assertIn("there is no pass 'fuse-kernel'; did you mean 'fuse-kernels'?; the passes are promote-to-f64, ", result.stderr)
        self.assertFalse(os.path.exists(self.path("mlp")))

    def test_the_invariants_hold_after_each_pass(self):
        for way in WAYS:
            with self.subTest(way):
                self.compile("--verify-each", *way)

    def test_phase_chosen_requires_placement(self):
        result = self.sluice("show", "mlp.mlir", "--phase", "chosen")
        self.assertEqual(result.returncode, 2)
        self.assertIn("add --placement auto", result.stderr)


if __name__ == "__main__":
    main()
