#!/usr/bin/env python3
"""Tests tools/bench/instructions on listings of kernels: instructions_test.py SOURCE_ROOT."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(sys.argv.pop(1)) / "tools/bench/instructions"

PRODUCT = """\
\t.section\t.text.k0_conv2d,"ax",@progbits
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @P0  LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
.L_x_1:
        /*0020*/                   IADD3 R2, R2, 0x1, RZ ;
.L_x_0:
        /*0030*/                   LDSM.16.M88.4 R32, [R88] ;
        /*0040*/                   HMMA.16816.F32.BF16 R60, R72.reuse, R32, R60 ;
        /*0050*/                   HMMA.16816.F32.BF16 R56, R72, R34, R56 ;
        /*0060*/              @!P1 BRA `(.L_x_0) ;
        /*0070*/               @P2 BRA `(.L_x_1) ;
        /*0080*/               @P2 BRA `(.L_x_2) ;
.L_x_2:
        /*0090*/                   STG.E desc[UR4][R2.64], R7 ;
        /*00a0*/                   EXIT ;
"""
ELEMENTWISE = """\
\t.section\t.text.k1_relu,"ax",@progbits
        /*0000*/                   LDG.E.64.CONSTANT R4, desc[UR4][R2.64] ;
        /*0010*/                   STG.E.U16 desc[UR4][R2.64], R4 ;
        /*0020*/                   STG.E.U16 desc[UR4][R2.64+0x2], R5 ;
        /*0030*/                   STG.E.64 desc[UR4][R2.64+0x8], R6 ;
"""


class InstructionsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.dump = pathlib.Path(self.folder.name)

    def write_listings(self):
        (self.dump / "conv2d.sass").write_text(PRODUCT)
        (self.dump / "relu.sass").write_text(ELEMENTWISE)
        (self.dump / "relu.ptx").write_text(PRODUCT)

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, "-B", TOOL, self.dump, *arguments], capture_output=True, text=True)

    def test_loops_and_accesses_are_counted(self):
        self.write_listings()
        ran = self.run_tool("--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(json.loads(ran.stdout), [
            {"function": "k0_conv2d", "instructions": 11, "loop": 4, "for_each_tensor_core": 2.0, "loads": "16x1", "stores": "4x1"},
            {"function": "k1_relu", "instructions": 4, "loads": "8x1", "stores": "8x1 2x2"}])

    def test_kernels_are_chosen(self):
        self.write_listings()
        ran = self.run_tool("--kernels", "conv")
        self.assertIn("k0_conv2d", ran.stdout)
        self.assertNotIn("k1_relu", ran.stdout)
        self.assertIn("2.00 instructions for each", ran.stdout)

    def test_what_is_missing_is_said(self):
        ran = self.run_tool()
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("there is no machine code", ran.stderr)
        self.assertIn("with nvdisasm on PATH", ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
