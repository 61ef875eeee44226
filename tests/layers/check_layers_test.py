"""Tests that the layer check finds each kind of crossing, and lets through what is allowed."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # nothing of a test lands among the sources
from check_layers import check


def problems(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text)
        return check(root)[0]


FORBIDDEN = [
    ("runtime/plan/Plan.cpp", '#include "llvm/ADT/StringRef.h"'),
    ("runtime/plan/Plan.cpp", '#include "ir/Dialect.h"'),
    ("runtime/files/OutputFile.cpp", '#include "runtime/base/Text.h"'),
    ("frontend/graph/Graph.cpp", '#include "runtime/instance/Weights.h"'),
    ("runtime/include/sluice/runtime/a.h", "#include <nlohmann/json.hpp>"),
    ("ir/ops/layer/Pool.cpp", '#include "passes/Passes.h"'),
    ("passes/kernel/FuseKernels.cpp", '#include "backends/cpu/compiler/llvm/Codegen.h"'),
    ("passes/kernel/FuseKernels.cpp", '#include "runtime/exec/Executor.h"'),
    ("runtime/plan/Plan.cpp", '#include "sluice/backend/run.h"'),
    ("backends/cpu/runtime/Pool.cpp", '#include "llvm/ADT/StringRef.h"'),
    ("backends/cpu/compiler/A.cpp", '#include "backends/sim/compiler/B.h"'),
    ("backends/loops/Fold.cpp", '#include "backends/cpu/compiler/machine/StageFunction.h"'),
    ("backends/loops/Fold.cpp", '#include "sluice/runtime/artifact.h"'),
    ("passes/kernel/FuseKernels.cpp", '#include "backends/loops/Formula.h"'),
    ("backends/exchange/Roster.cpp", '#include "backends/sim/runtime/Machine.h"'),
    ("backends/exchange/Roster.cpp", '#include "llvm/ADT/StringRef.h"'),
    ("backends/cpu/compiler/A.cpp", '#include "backends/exchange/Roster.h"'),
    ("backends/sim/runtime/A.cpp", '#include "backends/cuda/libraries/LibrarySearch.h"'),
    ("backends/cuda/libraries/LibrarySearch.cpp", '#include "llvm/ADT/StringRef.h"'),
    ("runtime/instance/Instance.h", '#pragma once\n#include "backends/exchange/Roster.h"'),
    ("frontend/include/sluice/tensor.h", '#include "mlir/IR/Value.h"'),
    ("frontend/graph/Graph.cpp", '#include "passes/Passes.h"'),
    ("models/lenet.cpp", '#include "ir/Dialect.h"'),
    ("models/lenet.cpp", '#include "runtime/files/OutputFile.h"'),
    ("runtime/help/HelpFormatter.h", '#pragma once\n#include "runtime/plan/Plan.h"'),
    ("models/lenet.cpp", '#  include "llvm/Support/raw_ostream.h"'),
    ("ir/A.cpp", "#include <boost/any.hpp>"),
    ("backends/loose.cpp", "#include <vector>"),
    ("models/lenet.cpp", '#include "sluice/backend/dtypes.h"'),
    ("passes/kernel/FuseKernels.cpp", "bool isSum = isa<AddOp>(op);"),
    ("passes/train/Simplify.cpp", "bool isSum = isa<CopyOp, ir::BatchNormOp>(op);"),
    ("passes/train/Simplify.cpp", 'bool isSum = op->getName().getStringRef() == "sluice.batch_norm";'),
]
ALLOWED = {
    "models/Options.cpp": '#include "runtime/help/HelpFormatter.h"\n',
    "runtime/help/HelpFormatter.h": "#pragma once\n#include <CLI/CLI.hpp>\n",
    "frontend/graph/Call.cpp": '#include "runtime/files/OutputFile.h"\\n',
    "runtime/plan/Plan.cpp": '#include "Plan.h"\n#include <nlohmann/json.hpp>\n#include <sluice/runtime/artifact.h>\n',
    "runtime/instance/Instance.h": "#pragma once\n#include <sys/mman.h>\n#include <tbb/task_arena.h>\n",
    "ir/ops/layer/Pool.cpp": '#include "ir/Dialect.h"\n#include "mlir/IR/Value.h"\n',
    "passes/kernel/FuseKernels.cpp": '#include "sluice/backend/compile.h"\n#include "ir/Dialect.h"\n#include "runtime/plan/Plan.h"\n',
    "backends/cpu/compiler/deep/A.cpp": '#include "backends/cpu/compiler/llvm/Codegen.h"\n#include "llvm/ADT/StringRef.h"\n',
    "backends/cpu/compiler/loops/A.cpp": '#include "backends/loops/Emitter.h"\n',
    "backends/cuda/compiler/nvrtc/Nvrtc.h": '#pragma once\n#include "backends/cuda/libraries/LibrarySearch.h"\n',
    "backends/cuda/runtime/Nccl.cpp": '#include "backends/cuda/libraries/LibrarySearch.h"\n',
    "backends/cuda/libraries/LibrarySearch.cpp": '#include "backends/cuda/libraries/LibrarySearch.h"\n#include <filesystem>\n',
    "backends/loops/Fold.cpp": '#include "backends/loops/Emitter.h"\n#include "ir/Layout.h"\n#include "mlir/IR/AffineExpr.h"\n',
    "backends/exchange/Transfer.cpp": '#include "backends/exchange/Roster.h"\n#include "sluice/backend/collectives.h"\n',
    "backends/sim/runtime/Ranks.cpp": '#include "backends/exchange/Roster.h"\n',
    "frontend/graph/Graph.cpp": '#include "ir/Dialect.h"\n#include <sluice/graph.h>\n#include "frontend/Graph.h"\n',
    "models/lenet.cpp": "#include <sluice/sluice.h>\n#include <string>\n",
    "passes/place/PlaceValues.cpp": '// An AddOp, say.\nif (isa<CopyOp, ElementwiseOp>(op))\n  return;\n',
    "ir/Types.h": '#pragma once\n#include "sluice/backend/dtypes.h"\n',
    "tools/sluice.cpp": '#include "runtime/instance/Instance.h"\n#include "llvm/ADT/StringRef.h"\n',
}


class LayerCheckTest(unittest.TestCase):
    def test_each_crossing_is_found_alone(self):
        for path, line in FORBIDDEN:
            with self.subTest(path=path, line=line):
                self.assertEqual(len(problems({path: f"// first\n#pragma once\n{line}\n"})), 1)

    def test_the_place_is_named(self):
        found = problems({"ir/A.cpp": '#include <vector>\n#include "tools/B.h"\n'})
        self.assertEqual(found, ["ir/A.cpp:2: ir may not include tools/B.h (tools)"])

    def test_a_header_is_read_once(self):
        found = problems({"ir/A.h": "#ifndef A_H\n#define A_H\n#endif\n", "ir/A.cpp": "int a;\n"})
        self.assertEqual(found, ["ir/A.h:1: a header without #pragma once"])

    def test_lines_of_tablegen_files_have_a_limit(self):
        found = problems({"ir/A.td": "x" * 120 + "\n" + "y" * 121 + "\n"})
        self.assertEqual(found, ["ir/A.td:2: longer than 120 columns"])

    def test_what_is_allowed_passes(self):
        self.assertEqual(problems(ALLOWED), [])


if __name__ == "__main__":
    unittest.main()
