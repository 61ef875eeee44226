"""Models that parse but are invalid: an error and code 3, whichever command reads them."""

from sluice_cli import SMALL_MODEL, CliTest, main

INVALID, ABSENT = 3, 4

# The type of a state, its initializer, and the expected message.
STATES = [
    ("2x3xf32", '"uniform", 0.0 : f64, 0x7FF0000000000000 : f64', "needs finite numbers"),
    ("2x3xf32", '"uniform", 0xFFF8000000000000 : f64, 1.0 : f64', "needs finite numbers"),
    ("2x3xf32", '"uniform", 1.0 : f64, -1.0 : f64', "are reversed: 1 and -1"),
    ("2x3xf32", '"uniform", -3.0e38 : f64, 3.0e38 : f64', "out of the range of f32"),
    ("2x3xf64", '"uniform", -1.0e308 : f64, 1.0e308 : f64', "out of the range of f64"),
    ("2x3xf32", '"uniform", 1.0 : f64', "uniform takes two numbers"),
    ("2x3xf32", '"uniform", 0.0 : f32, 1.0 : f32', "numbers that are not f64"),
    ("2x3xi32", '"uniform", 0.0 : f64, 1.0 : f64', "random numbers are floats; got i32"),
    ("2147483647x3xf32", '"uniform", -1.0 : f64, 1.0 : f64', "at most 2^30 random numbers"),
    ("32768x65536xf32", '"normal", 0.0 : f64, 1.0 : f64', "at most 2^30 random numbers"),
    ("2x3xf32", '"normal", 0.0 : f64, -1.0 : f64', "a deviation cannot be negative: -1"),
    ("2x3xf32", '"normal", 0.0 : f64, 1.0e39 : f64', "out of the range of f32"),
    ("2x3xf32", '"normal", 0.0 : f64, 1.0 : f64 zero_row 2 : i64', "begins with a row of zeros that it has not: 2 of [2, 3]"),
    ("2x3xf32", '"constant", 1.0 : f64 zero_row 1 : i32', "a row of zeros whose number is no i64"),
    ("2x3xf32", '"foo", 7.0 : f64, 8.0 : f64', "'foo' is none of constant, uniform, normal, key and data"),
    ("2x3xf32", '"foo", 7.0 : f64', "'foo' is none of constant, uniform, normal, key and data"),
    ("2x3xf32", '"constant", 1.0e308 : f64', "1e+308 is not a value of f32"),
    ("2x3xf32", '"constant", 0x7FF0000000000000 : f64', "cannot begin with inf"),
    ("2x3xf32", '"constant", 1.0 : f64, 2.0 : f64', "constant takes one number"),
    ("2x3xui8", '"constant", 256.0 : f64', "256 is not a value of ui8"),
    ("2x3xui8", '"constant", -1.0 : f64', "-1 is not a value of ui8"),
    ("2x3xi32", '"constant", 2147483648.0 : f64', "is not a value of i32"),
    ("2x3xi64", '"constant", 0.5 : f64', "0.5 is not a value of i64"),
    ("2x3xi1", '"constant", 2.0 : f64', "2 is not a value of i1"),
    ("2x3xbf16", '"constant", 1.0e39 : f64', "1e+39 is not a value of bf16"),
    ("2x3xf16", '"constant", 65520.0 : f64', "65520 is not a value of f16"),
    ("2x3xf16", '"uniform", -65536.0 : f64, 1.0 : f64', "out of the range of f16"),
    ("2x3xf32", '"data", 0.0 : f64', "data needs its crc32"),
    ("2x3xf32", '"data", 1.0 : f64 crc32 1 : i64', "data has its numbers elsewhere; got 1"),
    ("2x3xf32", '"data", 0.0 : f64 crc32 4294967296 : i64', "begins with data whose crc32 is none"),
    ("2x3xf32", '"data", 0.0 : f64 crc32 1 : i32', "begins with data whose crc32 is none"),
    ("2x3xf32", '"data", 0.0 : f64 zero_row 0 : i64 crc32 1 : i64', "which has its own row of zeros"),
    ("2x3xf32", '"constant", 1.0 : f64 crc32 1 : i64', "crc32 is of data"),
    ("2x3xf8E5M2", '"constant", 1.0 : f64', "f8E5M2"),
    ("2x3xi8", '"constant", 1.0 : f64', "i8"),
    ("2x3xcomplex<f32>", '"constant", 1.0 : f64', "complex<f32>"),
    ("2x0xf32", '"constant", 1.0 : f64', "empty dimension"),
    ("1048576x1048577xf32", '"constant", 1.0 : f64', "more than 2^40 elements"),
]

# Replacements in the small model, and the expected message.
INPUT = '["x"] (%x: tensor<?x3xf32>)'
WITH = '["x", "z"] (%x: tensor<?x3xf32>, %z: '
EDITS = [
    ('sluice.model "', 'sluice.model "\\FF', "has the text '\ufffd"),
    ('sluice.output "', 'sluice.output "\\FF', "a name is UTF-8"),
    ('sluice.graph ["', 'sluice.graph ["\\FF', "a name is UTF-8"),
    (" capacity 4", "", "has a value with rows, [?, 3], but the model has no capacity"),
    (" capacity 4", " capacity 0", "has a value with rows"),
    (" capacity 4", " capacity 4294967296", "must be a number of rows"),
    (" capacity 4", " capacity 2147483647", None),
    ("tensor<?x3xf32>", "tensor<?x3xbf16>", "bf16"),
    ("tensor<?x3xf32>", "tensor<?x3xf16>", "f16"),
    (INPUT, WITH + 'tensor<?xtf32>)', "element type tf32 is none of f32, f64, i32, i64, ui8, i1, f16 and bf16"),
    (INPUT, WITH + 'tensor<?xsi32>)', "element type si32 is none of"),
    ("tensor<?x3xf32>", "tensor<?x3xf8E5M2>", "f8E5M2"),
    ("(%x: tensor<?x3xf32>)", "(%x: tensor<?x3xf32>, %z: tensor<?xbf16>)", "names 1 inputs and has 2"),
    (INPUT, WITH + 'tensor<?xf8E4M3FN>)', "element type f8E4M3FN"),
    (INPUT, WITH + 'tensor<*xf32>)', "no ranked tensor"),
    (INPUT, WITH + 'f32)', "no ranked tensor"),
    (INPUT, WITH + 'tensor<?x?xf32>)', "more than one ?"),
    (INPUT, WITH + 'tensor<0xf32>)', "empty dimension"),
    (INPUT, WITH + "tensor<?x3xf32, 5>)", "whose encoding names neither a device nor a layout"),
    (INPUT, WITH + "tensor<?x3xf32, #sluice.at<>>)", "whose encoding names neither a device nor a layout"),
    (INPUT, WITH + "tensor<?x3xf32, #sluice.at>)", "whose encoding names neither a device nor a layout"),
    (INPUT, WITH + 'tensor<?x3xf32, #sluice.at<device = "acc0">>)', "no device of the target cpu"),
    (INPUT,
     WITH + "tensor<?x3xf32, #sluice.at<layout = affine_map<(d0, d1, d2) -> (d2, d0, d1)>>>)",
     "a layout of 3 dimensions for the shape [?, 3]"),
    (INPUT, WITH + "tensor<?x3xf32, #sluice.at<layout = affine_map<(d0, d1) -> (d0)>>>)", "whole or in tiles of at most 65536: d1"),
    (INPUT,
     WITH + "tensor<?x3xf32, #sluice.at<layout = affine_map<(d0, d1) -> (d0, d1 floordiv 2, d1 mod 4)>>>)", "whole or in tiles of at most 65536: d1"),
    (INPUT, WITH + "tensor<?x3xf32, #sluice.at<layout = affine_map<(d0, d1) -> (d0 + d1, d1)>>>)",
     "a layout whose results are not all dimensions, or floordiv or mod"),
    (INPUT,
     WITH + "tensor<?x3xf32, #sluice.at<layout = affine_map<(d0, d1) -> (d0, d1 floordiv 99999999, d1 mod 99999999)>>>)",
     "in tiles of at most 65536: d1"),
    ("= <\"constant\", 1.0 : f64>", "= <\"constant\", 1.0 : f64> of @v", "belongs to no parameter: @v"),
    ("= <\"constant\", 1.0 : f64>", "= <\"constant\", 1.0 : f64> of @w", "belongs to no parameter: @w"),
    ("= <\"constant\", 1.0 : f64>", '= <"constant", 1.0 : f64> also ["w"]', "has another name that is taken: w"),
    ("= <\"constant\", 1.0 : f64>", '= <"constant", 1.0 : f64> also ["v", "v"]', "has another name that is taken: v"),
    ("= <\"constant\", 1.0 : f64>", '= <"constant", 1.0 : f64> also ["v"]', None),
    ("sluice.state parameter", "sluice.state constant", "is a constant, and begins with no data"),
]

# The elements of a constant, its type, and the expected message.
CONSTANTS = [
    ("dense<[1.0, 2.0]> : tensor<2xf32>", "2xf32", None),
    ("sparse<0, 1> : tensor<2xf32>", "2xf32", "'sparse' elements are not supported; write all elements as dense<...>"),
    ("sparse<[[0]], [1.0]> : tensor<2xf32>", "2xf32", "'sparse' elements are not supported"),
    ("sparse // a comment\n <[[5]], 1.0> : tensor<2xf32>", "2xf32", "'sparse' elements are not supported"),
    ("dense_resource<r> : tensor<2xf32>", "2xf32", "'dense_resource' elements are not supported"),
    ("dense<[1, 2]> : tensor<2xf32>", "2xf32", "expected floating-point elements"),
    ("dense<1.0> : tensor<2xi32>", "2xi32", "expected integer elements"),
    ("dense<[1.0, 2.0]> : tensor<3xf32>", "3xf32", "does not match"),
    ('dense<"0x0000803F00"> : tensor<2xf32>', "2xf32", "hex data size is invalid"),
    ("dense<300> : tensor<2xui8>", "2xui8", "out of range"),
    ("dense<1.0> : tensor<?xf32>", "?xf32", "static shape"),
    ("dense<1.0> : tensor<1099511627777xf32>", "1099511627777xf32", "more than 2^40 elements"),
    ("dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>", "2xcomplex<f32>", "complex<f32>"),
    ("dense<1.0> : vector<2xf32>", "2xf32", "a constant needs dense elements of a tensor"),
    ("array<f32: 1.0, 2.0>", "2xf32", "constant vector/tensor attribute"),
]

# A dump of `fused`, to be edited.
FUSED = """#cpu = #sluice.at<device = "cpu">
module {
  sluice.model "m" format 2 phase "fused" capacity 4
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x3xf32, #cpu>) {
    %k = sluice.kernel "relu" (%a = %x : tensor<?x3xf32, #cpu>) -> tensor<?x3xf32, #cpu> {
      %b = sluice.relu %a : (tensor<?x3xf32, #cpu>) -> tensor<?x3xf32, #cpu>
      sluice.yield %b : tensor<?x3xf32, #cpu>
    }
    sluice.return %k : tensor<?x3xf32, #cpu>
  }
}
"""
FUSED_EDITS = [
    ("", "", None),
    (', #cpu>', '>', "without a device"),
    ('"cpu">', '"acc0">', "no device of the target cpu"),
    ('#sluice.at<device = "cpu">', "#sluice.at<>", "whose encoding names neither a device nor a layout"),
    ('#sluice.at<device = "cpu">', "#sluice.at", "whose encoding names neither a device nor a layout"),
    ('device = "cpu">', 'device = "cpu", layout = affine_map<(d0) -> (d0)>>', "a layout of 1 dimensions"),
    ("    sluice.return %k", "    %n = sluice.neg %k : (tensor<?x3xf32, #cpu>) -> tensor<?x3xf32, #cpu>\n    sluice.return %n",
     "works outside of a kernel"),
    (" capacity 4", "", "has a value with rows"),
    ("(%x: tensor<?x3xf32, #cpu>) {", "(%x: tensor<?x3xf32, #cpu>) {\n    sluice.receive %x : tensor<?x3xf32, #cpu>",
     "is of a later phase than 'fused'"),
    ("(%x: tensor<?x3xf32, #cpu>) {", "(%x: tensor<?x3xf32, #cpu>, %e: !sluice.event) {", "takes 1 events and carries 0"),
    ("  sluice.entry", '  sluice.arena "cpu.state" on "cpu" : 0 bytes\n  sluice.entry', "is of a later phase than 'fused'"),
]


class BadModelTest(CliTest):
    def expect(self, text, message, *arguments):
        """Expects an error with the message, or success if there is none."""
        self.write("bad.mlir", text)
        before = self.files()
        result = self.sluice("compile", "bad.mlir", "-o", "bad.o", "--emit", "obj", *arguments)
        if message is None:
            self.assertEqual(result.returncode, 0, result.stderr)
            return
        self.assertEqual(result.returncode, ABSENT if "no device" in message else INVALID, result.stderr)
        self.assertRegex(result.stderr, r"bad\.mlir:\d+:\d+: error: ")
        self.assertIn(message, result.stderr)
        self.assertEqual(self.files(), before)

    def test_states_that_cannot_be(self):
        state = '  sluice.state statistic @s : tensor<%s> = <%s>\n  sluice.graph'
        self.expect(SMALL_MODEL.replace("  sluice.graph", state % ("2x3xf32", '"normal", 0.0 : f64, 1.0 : f64')), None)
        for kind, init, message in STATES:
            with self.subTest(f"{kind} {init}"):
                self.expect(SMALL_MODEL.replace("  sluice.graph", state % (kind, init)), message)

    def test_models_that_cannot_be(self):
        for old, new, message in EDITS:
            with self.subTest(new):
                self.assertIn(old, SMALL_MODEL)
                self.expect(SMALL_MODEL.replace(old, new), message)

    def test_constants_that_cannot_be(self):
        for elements, kind, message in CONSTANTS:
            with self.subTest(elements):
                constant = f"    %c = sluice.constant {{value = {elements}}} : () -> tensor<{kind}>\n    sluice.output"
                self.expect(SMALL_MODEL.replace("    sluice.output", constant), message)

    def test_one_number_for_more_elements_than_backends_can_be_given(self):
        constant = "    %c = sluice.constant {value = dense<1.0> : tensor<4294967296xf32>} : () -> tensor<4294967296xf32>\n"
        self.write("bad.mlir", SMALL_MODEL.replace("  }\n}", constant + '    sluice.output "c", %c : tensor<4294967296xf32>\n  }\n}'))
        result = self.sluice("compile", "bad.mlir", "-o", "bad")
        self.assertEqual(result.returncode, ABSENT, result.stderr)
        self.assertRegex(result.stderr, r"bad\.mlir:10:10: error: unsupported: .* one number for 4294967296 elements; write it as")

    def test_a_capacity_may_come_with_the_command(self):
        self.expect(SMALL_MODEL.replace(" capacity 4", ""), None, "--batch", "4")

    def test_dumps_that_cannot_be(self):
        for old, new, message in FUSED_EDITS:
            with self.subTest(new):
                self.assertIn(old, FUSED)
                self.expect(FUSED.replace(old, new), message)


if __name__ == "__main__":
    main()
