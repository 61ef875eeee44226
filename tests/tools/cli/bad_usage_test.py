"""Invalid command lines and files: a clear error, the documented exit code, no partial output."""

import json
import os
import resource
import signal
import subprocess

from sluice_cli import BUILD, SMALL_MODEL, CliTest, main

USAGE, INVALID, UNSUPPORTED = 2, 3, 4

# Arguments, exit code, part of the message.
TABLE = [
    ([], USAGE, "a command is required: compile, import, verify, place"),
    (["complie", "small.mlir"], USAGE, "unknown command 'complie'; did you mean 'compile'?"),
    (["frobnicate"], USAGE, "unknown command 'frobnicate'; the commands are compile, import, verify, place"),
    (["--verison"], USAGE, "unknown option '--verison'; did you mean '--version'?"),
    (["compile"], USAGE, "MODEL.mlir is required: model written by a model program, or a dump of a phase; see `sluice compile --help`"),
    (["compile", "small.mlir", "--emitt=so"], USAGE, "unknown option '--emitt'; did you mean '--emit'?"),
    (["compile", "small.mlir", "--taget-cpu", "native"], USAGE, "did you mean '--target-cpu'?"),
    (["compile", "small.mlir", "--frobnicate"], USAGE, "unknown option '--frobnicate'; see `sluice compile --help`"),
    (["compile", "small.mlir", "-x"], USAGE, "unknown option '-x'"),
    (["compile", "small.mlir", "--emit=elf"], USAGE, "'elf' is none of exe, so, obj, mlir"),
    (["compile", "small.mlir", "--emit"], USAGE, "--emit requires a value: exe|so|obj|mlir"),
    (["compile", "small.mlir", "extra.mlir"], USAGE, "unexpected argument 'extra.mlir'"),
    (["compile", "small.mlir", "--", "extra.mlir"], USAGE, "unexpected argument 'extra.mlir'"),
    (["compile", "small.mlir", "-o"], USAGE, "--output requires a value: FILE"),
    (["compile", "small.mlir", "-o", "a", "-o", "b"], USAGE, "--output is given 2 times; give it once"),
    (["compile", "small.mlir", "-q", "-v"], USAGE, "; give one of them"),
    (["compile", "small.mlir", "--batch", "0"], USAGE, "--batch: '0' is not a whole number from 1 to 2147483647"),
    (["compile", "small.mlir", "--batch=-3"], USAGE, "--batch"),
    (["compile", "small.mlir", "--batch", "many"], USAGE, "--batch: 'many' is not a whole number from 1 to"),
    (["compile", "small.mlir", "--batch", "99999999999999999999"], USAGE, "--batch"),
    (["compile", "small.mlir", "--dtype", "f16"], USAGE, "--dtype: 'f16' is none of f32, f64"),
    (["compile", "small.mlir", "--precision", "fp16"], USAGE, "--precision: 'fp16' is none of f32, bf16, f16; did you mean 'f16'?"),
    (["verify", "small.mlir", "--precision", "b16"], USAGE, "'b16' is none of f32, bf16, f16; did you mean 'bf16'?"),
    (["place", "small.mlir", "--precision", "f8"], USAGE, "--precision: 'f8' is none of f32, bf16, f16"),
    (["compile", "small.mlir", "--math", "tf23"], USAGE, "--math: 'tf23' is none of strict, tf32-convolutions, tf32, fast; did you mean 'tf32'?"),
    (["compile", "small.mlir", "--devices", ""], USAGE, "--devices: expected LIST"),
    (["compile", "small.mlir", "--devices", "--quiet"], USAGE, "--devices: requires a value: LIST"),
    (["verify", "small.mlir", "--math", ""], USAGE, "--math: expected strict|tf32-convolutions|tf32|fast"),
    (["compile", "small.mlir", "--precision", "bf16", "--dtype", "f64"], USAGE, "cannot combine --dtype f64 with precision bf16"),
    (["compile", "small.mlir", "--precision", "f16", "--dtype", "f64"], USAGE, "cannot combine --dtype f64 with precision f16"),
    (["compile", "small.mlir", "--weights-type", "f16", "--dtype", "f64"], USAGE, "cannot combine --dtype f64 with --weights-type"),
    (["compile", "small.mlir", "--weights-type", "q8_0", "--dtype", "f64"], USAGE, "cannot combine --dtype f64 with --weights-type"),
    (["compile", "small.mlir", "--weights-type", "q8"], USAGE, "--weights-type: 'q8' is none of f16, bf16, q8_0"),
    (["compile", "trained.mlir", "--weights-type", "bf16"], USAGE, "cannot apply --weights-type to a dump of phase 'train', which already has passed phase 'train'"),
    (["compile", "trained.mlir", "--precision", "f16"], USAGE, "cannot apply --precision to a dump of phase 'train', which already has the precision f32"),
    (["compile", "trained.mlir", "--precision", "bf16"], USAGE, "cannot apply --precision to a dump of phase 'train', which already has the precision f32"),
    (["compile", "small.mlir", "--target-cpu", "znver9"], USAGE, "there is no CPU 'znver9'; did you mean 'znver"),
    (["compile", "small.mlir", "--target-cpu", "haswel:l1=32K"], USAGE, "there is no CPU 'haswel'; did you mean 'haswell'?"),
    (["compile", "small.mlir", "--target-cpu", "haswell:l3=8M"], USAGE, "'l3=8M' is not a cache size such as l1=32K or l2=1M"),
    (["compile", "small.mlir", "--target-cpu", "nehalem"], UNSUPPORTED, "'nehalem' is without avx2 and fma"),
    (["compile", "small.mlir", "--devices", "sim:0", "--target-cpu", "x86-64-v2"], UNSUPPORTED, "'x86-64-v2' is without avx2"),
    (["compile", "small.mlir", "--compile-to", "fuse"], USAGE, "there is no phase 'fuse'; did you mean 'fused'?"),
    (["compile", "small.mlir", "--compile-from", "lowered"], USAGE, "cannot be resumed from"),
    (["compile", "small.mlir", "--compile-from", "fused", "--compile-to", "train"], USAGE, "comes before"),
    (["compile", "small.mlir", "-o", "-"], USAGE, "only IR can be written to the standard output"),
    (["show", "small.mlir", "--phase", "fusd"], USAGE, "did you mean 'fused'?"),
    (["show", "small.mlir", "--phase", "kernels", "--kernel", "einsum_rel"], USAGE,
     "there is no kernel 'einsum_rel'; did you mean 'einsum_relu'?; the kernels are "),
    (["show", "small.mlir", "--kernel", "einsum_relu"], USAGE, "--kernel selects a kernel of --phase kernels; add --phase kernels"),
    (["show", "small.mlir", "--phase", "kernels", "--dot"], USAGE, "leave out --dot"),
    (["compile", "small.mlir", "--save-temps"], USAGE, "unknown option '--save-temps'"),
    (["verify", "small.mlir", "--rows", "0"], USAGE, "--rows"),
    (["verify", "small.mlir", "--seed", "x"], USAGE, "--seed: 'x' is not a number"),
    (["devices", "small.mlir"], USAGE, "unexpected argument 'small.mlir'"),
    (["compile", "absent.mlir"], INVALID, "absent.mlir: cannot open: No such file or directory"),
    (["compile", "."], INVALID, "cannot read: Is a directory"),
    (["compile", "empty_graph.mlir", "-o", "out/x"], INVALID, "empty_graph.mlir"),
    (["compile", "deep.mlir"], INVALID, "deep.mlir:1:"),
    (["compile", "self.mlir"], INVALID, "uses a value before it is defined"),
    (["compile", "dangling.mlir"], INVALID, "dangling.mlir:1:13: error: '%a' is used before it is defined"),
    (["compile", "huge.mlir"], INVALID, "too many elements"),
    (["compile", "bytecode.mlir"], INVALID, "bytecode"),
    (["compile", "cut.mlir"], INVALID, "cut.mlir:"),
    (["compile", "shapes.mlir"], INVALID, "shapes.mlir:7:"),
    (["compile", "planned.mlir"], INVALID, "a dump of phase 'planned' cannot be resumed from"),
    (["compile", "small.mlir", "-o", "no/such/folder/small"], INVALID, "No such file or directory"),
    (["compile", "small.mlir", "-o", "."], INVALID, "Is a directory"),
    (["compile", "small.mlir", "--dump-ir", "small.mlir"], INVALID, "small.mlir"),
    (["verify", "absent.mlir"], INVALID, "absent.mlir"),
    (["show", "absent.mlir"], INVALID, "absent.mlir"),
]


class BadUsageTest(CliTest):
    def setUp(self):
        super().setUp()
        self.write("deep.mlir", "module {" * 5000 + "}" * 5000)
        self.write("self.mlir", 'module { %0 = "sluice.neg"(%0) : (tensor<2xf32>) -> tensor<2xf32> }')
        relu = "sluice.relu %s : (tensor<3xf32>) -> tensor<3xf32>\n"
        self.write("dangling.mlir", relu % "%a" + 'sluice.graph ["x"] (%x: tensor<3xf32>) {\n%a = ' + relu % "%x")
        self.write("huge.mlir", SMALL_MODEL.replace("3x2x", "4611686018427387904x2x"))
        self.write("cut.mlir", SMALL_MODEL[: len(SMALL_MODEL) // 2])
        self.write("shapes.mlir", SMALL_MODEL.replace("(tensor<?x3xf32>, tensor<3x2", "(tensor<?x3xf32>, tensor<4x2"))
        self.write("planned.mlir", SMALL_MODEL.replace('phase "model"', 'phase "planned"'))
        self.write("trained.mlir", SMALL_MODEL.replace('phase "model"', 'phase "train"'))
        self.write("empty_graph.mlir", "module {")
        with open(self.path("bytecode.mlir"), "wb") as out:
            out.write(b"ML\xefR\x06")

    def test_each_is_refused(self):
        before = self.files()
        for arguments, code, message in TABLE:
            with self.subTest(" ".join(arguments)):
                result = self.sluice(*arguments)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(message, result.stderr)
                self.assertRegex(result.stderr, r"^(sluice: error: |\S+:\d+:\d+: error: )")
                self.assertEqual(result.stdout, "")
                self.assertEqual(self.files(), before)

    def test_an_error_is_json_too(self):
        for arguments, code, message in [
            (["compile", "absent.mlir", "--json"], INVALID, "absent.mlir"),
            (["compile", "small.mlir", "--emitt=so", "--json"], USAGE, "unknown option '--emitt'"),
            (["compile", "--json"], USAGE, "MODEL.mlir is required"),
            (["compile", b"no\xffne.mlir", "--json"], INVALID, "No such file"),
        ]:
            with self.subTest(arguments):
                result = self.sluice(*arguments, errors="replace")
                self.assertEqual(result.returncode, code, result.stderr)
                error = json.loads(result.stdout)
                self.assertEqual(error["code"], code)
                self.assertIn(message, error["error"])
                self.assertIn(message, result.stderr)

    def test_a_closed_standard_output_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run(
                [os.path.join(BUILD, "bin", "sluice"), "show", "small.mlir"],
                cwd=self.folder, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        self.assertEqual(result.returncode, INVALID, result.stderr)
        self.assertIn("No space left on device", result.stderr)

    def test_a_file_that_may_not_grow_leaves_nothing(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        before = self.files()
        result = self.sluice("compile", "small.mlir", "-o", "small", preexec_fn=limit)
        self.assertEqual(result.returncode, INVALID, result.stderr)
        self.assertEqual(self.files(), before)

    def test_a_full_disk_leaves_nothing(self):
        script = f"mount -t tmpfs -o size=200k none {self.folder}/disk && cp small.mlir disk && cd disk && "
        os.mkdir(self.path("disk"))
        probe = self.run_program("unshare", "-rm", "sh", "-c", script + "true")
        if probe.returncode != 0:
            self.skipTest("no mount here: " + probe.stderr.strip())
        result = self.run_program(
            "unshare", "-rm", "sh", "-c", script + f"{BUILD}/bin/sluice compile small.mlir -o small; echo code $?; ls")
        self.assertIn("No space left on device", result.stderr)
        self.assertEqual(result.stdout, "code 3\nsmall.mlir\n")


if __name__ == "__main__":
    main()
