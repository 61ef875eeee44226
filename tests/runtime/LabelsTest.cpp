// Labels in files: every verb rejects labels outside the classes.
#include "Process.h"
#include "runtime/io/Npy.h"
#include "tests/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace sluice;
using namespace sluice::runtime;
using test::ProcessResult;
using test::TemporaryFolder;

TEST(Labels, OfAnEvaluationNameClasses) {
  TemporaryFolder folder;
  setenv("SLUICE_DATA", SLUICE_MNIST, 1);
  ASSERT_EQ(test::run(LOGREG, {"train", "--epochs", "0", "--save", folder / "w.safetensors"}).code, 0);
  constexpr int64_t rows = 100; // more than one call
  int32_t wrong = 12;
  HostTensor label{DType::i32, {rows}, Bytes(rows * sizeof wrong)};
  std::memcpy(label.data.data() + 77 * sizeof wrong, &wrong, sizeof wrong);
  writeNpy(folder / "x.npy", {DType::u8, {rows, 1, 28, 28}, Bytes(rows * 784)});
  writeNpy(folder / "label.npy", label);

  ProcessResult result =
      test::run(LOGREG, {"predict", "--entry", "eval_step", "--weights", folder / "w.safetensors", "--input",
                         "image=@" + folder / "x.npy", "--input", "label=@" + folder / "label.npy"});

  EXPECT_EQ(result.code, 3);
  EXPECT_NE(result.err.find("input 'label', row 77: 12 is none of the 10 classes 0 to 9"), std::string::npos)
      << result.err;
}
