// The cache of kernels on disk: its contents, its bound, and files that are damaged or cannot be written.
#include "passes/kernel/CachedKernelFile.h"
#include "passes/kernel/KernelFolder.h"
#include "tests/TemporaryFolder.h"
#include <gmock/gmock.h>
#include <thread>

using namespace sluice::passes;
using sluice::test::contentOf;
using sluice::test::TemporaryFolder;
using testing::HasSubstr;
using testing::SizeIs;
namespace fs = std::filesystem;

namespace {

CachedKernel storedKernel(size_t bytes, char letter = 'x') {
  CachedKernel kernel{KernelLaunch(sluice_launch_info{}, "conv2d"), std::string(bytes, letter)};
  kernel.launch.cost = {1, 2, 3, 4, 0.5};
  kernel.launch.workspaceBytes = 64;
  kernel.launch.stages = {{"conv2d_0", 7, 0}, {"conv2d_1", 8, 2}};
  return kernel;
}

void expectEqual(const CachedKernel &a, const CachedKernel &b) {
  EXPECT_EQ(writeCachedKernel(a, "name"), writeCachedKernel(b, "name"));
}

/// Moves the time of last use of all files into the past.
void makeOlder(const TemporaryFolder &folder, std::chrono::minutes by) {
  for (const std::string &name : folder.names())
    fs::last_write_time(folder / name, fs::last_write_time(folder / name) - by);
}

} // namespace

TEST(KernelFolder, KeepsKernelsForOtherProcesses) {
  TemporaryFolder folder;
  std::string path = folder / "made/on first use";
  KernelFolder(path, "compiler").add("a", storedKernel(100));
  KernelFolder other(path, "compiler");
  std::shared_ptr<const CachedKernel> found = other.find("a");
  ASSERT_TRUE(found);
  expectEqual(*found, storedKernel(100));
  EXPECT_EQ(found->launch.stages[1].symbol, "conv2d_1");
  EXPECT_EQ(found->launch.stages[1].rowsPerTask, 2);
  EXPECT_EQ(found->launch.cost.lanes, 0.5);
  EXPECT_FALSE(other.find("b"));
  EXPECT_EQ(other.problem(), "");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
}

TEST(KernelFolder, HasNoKernelsOfOtherCompilers) {
  TemporaryFolder folder;
  KernelFolder(folder.path(), "compiler 1").add("a", storedKernel(100));
  EXPECT_FALSE(KernelFolder(folder.path(), "compiler 2").find("a"));
}

TEST(KernelFolder, IgnoresDamagedFiles) {
  const std::string content = writeCachedKernel(storedKernel(20), "name");
  ASSERT_TRUE(readCachedKernel(content, "name"));
  EXPECT_FALSE(readCachedKernel(content, "another name"));
  EXPECT_FALSE(readCachedKernel(content + " ", "name"));
  for (size_t at = 0; at < content.size(); ++at) {
    EXPECT_FALSE(readCachedKernel(content.substr(0, at), "name")) << "of " << at << " bytes";
    std::string changed = content;
    changed[at] ^= 1;
    EXPECT_FALSE(readCachedKernel(changed, "name")) << "changed at " << at;
  }
}

TEST(KernelFolder, ReplacesDamagedFiles) {
  TemporaryFolder folder;
  KernelFolder kernels(folder.path(), "compiler");
  kernels.add("a", storedKernel(100));
  std::string file = folder / folder.names().at(0);
  fs::resize_file(file, 50);
  EXPECT_FALSE(kernels.find("a"));
  kernels.add("a", storedKernel(100));
  EXPECT_TRUE(kernels.find("a"));
  EXPECT_THAT(folder.names(), SizeIs(1));
}

TEST(KernelFolder, RemovesTheLeastRecentlyUsed) {
  TemporaryFolder folder;
  size_t bytes = writeCachedKernel(storedKernel(1000), "name").size();
  KernelFolder(folder.path(), "compiler").add("a", storedKernel(1000));
  makeOlder(folder, std::chrono::minutes(10));
  KernelFolder(folder.path(), "compiler").add("b", storedKernel(1000));
  makeOlder(folder, std::chrono::minutes(10));
  folder.write("other.txt", std::string(10000, 'x'));
  KernelFolder kernels(folder.path(), "compiler", 2 * bytes);
  EXPECT_TRUE(kernels.find("a"));
  kernels.add("c", storedKernel(1000));
  EXPECT_TRUE(kernels.find("a"));
  EXPECT_FALSE(kernels.find("b"));
  EXPECT_TRUE(kernels.find("c"));
  EXPECT_TRUE(fs::exists(folder / "other.txt"));
}

TEST(KernelFolder, StaysNearItsBoundInOneProcess) {
  TemporaryFolder folder;
  size_t bytes = writeCachedKernel(storedKernel(1000), "name").size();
  KernelFolder kernels(folder.path(), "compiler", 32 * bytes);
  for (int number = 0; number < 100; ++number)
    kernels.add(std::to_string(number), storedKernel(1000));
  EXPECT_THAT(folder.names(), SizeIs(testing::AllOf(testing::Ge(32u), testing::Le(34u))));
}

TEST(KernelFolder, RemovesFilesOfKilledProcesses) {
  TemporaryFolder folder;
  KernelFolder(folder.path(), "compiler").add("a", storedKernel(10));
  folder.write("b.kernel.01234567.incomplete", "x");
  makeOlder(folder, std::chrono::minutes(70));
  folder.write("c.kernel.01234567.incomplete", "x");
  KernelFolder(folder.path(), "compiler").add("d", storedKernel(10));
  EXPECT_FALSE(fs::exists(folder / "b.kernel.01234567.incomplete"));
  EXPECT_TRUE(fs::exists(folder / "c.kernel.01234567.incomplete"));
  EXPECT_THAT(folder.names(), SizeIs(3));
}

TEST(KernelFolder, ReportsThatItCannotWrite) {
  TemporaryFolder folder;
  std::string file = folder.write("file", "");
  KernelFolder kernels(file, "compiler");
  kernels.add("a", storedKernel(10));
  EXPECT_FALSE(kernels.find("a"));
  EXPECT_THAT(kernels.problem(), HasSubstr("cannot write to the cache " + file + ": "));
  EXPECT_EQ(contentOf(file), "");
}

TEST(KernelFolder, IsSharedByThreads) {
  TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&] { // with a small bound, so that files are removed while others read them
      KernelFolder kernels(folder.path(), "compiler", 20000);
      for (int number = 0; number < 100; ++number) {
        std::string digest = std::to_string(number % 25);
        CachedKernel kernel = storedKernel(1000, char('a' + number % 25));
        if (std::shared_ptr<const CachedKernel> found = kernels.find(digest))
          expectEqual(*found, kernel);
        else
          kernels.add(digest, kernel);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &name : folder.names())
    EXPECT_THAT(name, testing::EndsWith(".kernel"));
}
