# lit's settings: sluice-opt from the build tree, FileCheck from LLVM 19. tools/cmake/SluiceTargets.cmake runs it.
import os

import lit.formats

build = lit_config.params["build"]

config.name = "sluice"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = lit_config.params["source"]
config.test_exec_root = os.path.join(build, "tests", "lit", os.path.basename(config.test_source_root))
config.environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), lit_config.params["llvm"], os.environ["PATH"]])
