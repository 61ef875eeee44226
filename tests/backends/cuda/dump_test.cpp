// Dumps of the compile half: the resources of functions, and comments that names cannot escape.
#include "backends/cuda/compiler/nvrtc/Dump.h"
#include "tests/TemporaryFolder.h"
#include "tests/backends/KernelCase.h"
#include "llvm/Support/JSON.h"
#include <gtest/gtest.h>

namespace sluice::cuda::test {

using sluice::test::contentOf;

namespace {

class DumpTest : public testing::Test {
protected:
  sluice::test::TemporaryFolder folder;
};

class NamedKernel : public sluice::test::KernelCase {
public:
  NamedKernel()
      : KernelCase({"tensor<4xf32>"}, "%a = sluice.relu %0 : (tensor<4xf32>) -> tensor<4xf32>", "%a : tensor<4xf32>",
                   1) {}

  std::string comment(const std::string &file, unsigned line = 11) {
    mlir::Operation &relu = op.getBody().front().front();
    relu.setLoc(mlir::FileLineColLoc::get(&context, file, line, 25));
    return sourceComment(op, /*hasLines=*/true);
  }
};

} // namespace

TEST_F(DumpTest, ListsWhatFunctionsNeed) {
  KernelResources first{"k0_conv2d", 96, 8, 4, 16, 18208}, second{"k1_relu", 20, 0, 0, 0, 0};
  std::vector<CompiledUnit> compiled = {
      {"sm_80", {first}, ""}, {"sm_80", {second}, "code"}, {"sm_90", {first}, ""}, {"compute_80", {}, "text"}};
  std::string dump = folder / "a/b";
  ASSERT_FALSE(bool(writeDump(dump, {"first text", "second text"}, compiled)));
  EXPECT_EQ(contentOf(dump + "/kernels-0.cu"), "first text");
  EXPECT_EQ(contentOf(dump + "/kernels-1.cu"), "second text");
  EXPECT_EQ(contentOf(dump + "/kernels-1.sm_80.cubin"), "code");
  EXPECT_EQ(contentOf(dump + "/kernels-1.compute_80.ptx"), "text");
  EXPECT_FALSE(std::filesystem::exists(dump + "/kernels-0.sm_80.cubin")) << "there is no code";
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(contentOf(dump + "/kernels.json"));
  ASSERT_TRUE(bool(json)) << llvm::toString(json.takeError());
  auto entry = [](const char *name, int unit, const char *architecture, int registers, int spilled, int stack,
                  int shared) {
    return llvm::json::Object{
        {"function", name},         {"unit", unit},         {"architecture", architecture}, {"registers", registers},
        {"spilled_bytes", spilled}, {"stack_bytes", stack}, {"shared_bytes", shared}};
  };
  llvm::json::Array expected{entry("k0_conv2d", 0, "sm_80", 96, 12, 16, 18208),
                             entry("k1_relu", 1, "sm_80", 20, 0, 0, 0),
                             entry("k0_conv2d", 0, "sm_90", 96, 12, 16, 18208)};
  EXPECT_EQ(*json->getAsObject()->getArray("functions"), expected);
}

TEST_F(DumpTest, SaysWhereItCannotWrite) {
  folder.write("file", "in the way");
  std::string inTheWay = folder / "file/dump: Not a directory";
  EXPECT_EQ(llvm::toString(checkDumpFolder(folder / "file/dump")), inTheWay);
  EXPECT_EQ(llvm::toString(checkDumpFolder(folder / "file")), folder / "file: Not a directory");
  EXPECT_EQ(llvm::toString(writeDump(folder / "file/dump", {"text"}, {})), inTheWay);
}

TEST_F(DumpTest, LeavesNothingWhereItCouldWrite) {
  EXPECT_FALSE(bool(checkDumpFolder(folder / "a/b")));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  std::filesystem::create_directory(folder / "a");
  EXPECT_FALSE(bool(checkDumpFolder(folder / "a/b")));
  EXPECT_TRUE(std::filesystem::exists(folder / "a")) << "it was there";
  EXPECT_FALSE(std::filesystem::exists(folder / "a/b"));
}

TEST_F(DumpTest, LeavesLinksThatLeadNowhere) {
  std::filesystem::create_directory_symlink(folder / "nowhere", folder / "link");
  EXPECT_EQ(llvm::toString(checkDumpFolder(folder / "link")), folder / "link: Not a directory");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
}

TEST(SourceComment, NamesTheLinesOfTheModel) {
  NamedKernel kernel;
  std::string comment = kernel.comment("absent/lenet.cpp");
  EXPECT_NE(comment.find("//   relu  absent/lenet.cpp:11:25\n"), std::string::npos) << comment;
}

// A model's names are untrusted: none ends its comment.
TEST(SourceComment, KeepsNamesInside) {
  NamedKernel kernel;
  std::string comment = kernel.comment("a\n#error\r\\");
  EXPECT_NE(comment.find("//   relu  a__error__:11:25\n"), std::string::npos) << comment;
}

// A line of the user's source is as untrusted as a name: none continues the comment.
TEST_F(DumpTest, ShowsTheLinesOfTheModel) {
  NamedKernel kernel;
  folder.write("net.cpp",
               "\treturn relu(x);  \nx = relu(x); \\\ny = a ?\?/\n\n\xff" + std::string(200, 'a') + "\nlast");
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  auto lineOf = [&](unsigned number, const std::string &file = "net.cpp") {
    std::string comment = kernel.comment(file, number);
    std::string place = "net.cpp:" + std::to_string(number) + ":25";
    return comment.substr(comment.find(place) + place.size());
  };
  EXPECT_EQ(lineOf(1), "  return relu(x);\n");
  EXPECT_EQ(lineOf(2), "  x = relu(x);\n") << "a backslash would splice lines";
  EXPECT_EQ(lineOf(3), "  y = a ??\n") << "a trigraph is one too";
  EXPECT_EQ(lineOf(4), "\n");
  EXPECT_EQ(lineOf(5), "  ?" + std::string(119, 'a') + "\n");
  EXPECT_EQ(lineOf(6), "  last\n");
  EXPECT_EQ(lineOf(7), "\n") << "there is no such line";
  EXPECT_EQ(lineOf(1, folder / "net.cpp"), "\n") << "a model may name any file of the machine";
  EXPECT_EQ(lineOf(1, "../" + std::filesystem::path(folder.path()).filename().string() + "/net.cpp"), "\n");
  std::filesystem::current_path(before);
}

} // namespace sluice::cuda::test
