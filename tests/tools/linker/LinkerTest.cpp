// The in-process linker: its output loads and runs, depends only on permitted libraries, and is written atomically.
#include "tools/compiler/Linker.h"

#include "sluice/runtime/artifact.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <chrono>
#include <cmath>
#include <dlfcn.h>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

using namespace sluice::compiler;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

class LinkerTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> name;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("linker", name));
    folder = name.str().str();
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string at(const std::string &name) const { return folder + "/" + name; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      names.push_back(entry.path().filename());
    return names;
  }

  std::string folder;
};

std::string read(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// The sonames that a program depends on.
std::set<std::string> neededLibraries(const std::string &path) {
  auto binary = llvm::object::ObjectFile::createObjectFile(path);
  const auto &elf = llvm::cast<llvm::object::ELF64LEObjectFile>(*binary->getBinary()).getELFFile();
  auto entries = elf.dynamicEntries();
  uint64_t strings = 0;
  for (const auto &entry : *entries)
    if (entry.d_tag == llvm::ELF::DT_STRTAB)
      strings = entry.getVal();
  std::set<std::string> names;
  for (const auto &entry : *entries)
    if (entry.d_tag == llvm::ELF::DT_NEEDED)
      names.insert(reinterpret_cast<const char *>(*elf.toMappedAddr(strings + entry.getVal())));
  return names;
}

/// The names that a library or program exports.
std::vector<std::string> exportedSymbols(const std::string &path) {
  auto binary = llvm::object::ObjectFile::createObjectFile(path);
  std::vector<std::string> names;
  for (const auto &symbol :
       llvm::cast<llvm::object::ELFObjectFileBase>(binary->getBinary())->getDynamicSymbolIterators())
    if (!(*symbol.getFlags() & llvm::object::SymbolRef::SF_Undefined))
      names.push_back(symbol.getName()->str());
  return names;
}

Failure failureOf(llvm::Error error) { return takeFailure(std::move(error)); }

} // namespace

TEST_F(LinkerTest, ASharedLibraryAnswersTheQuery) {
  llvm::cantFail(linkArtifact({read(SLUICE_OBJECT_Artifact)}, at("m.so"), LinkOutput::SharedLibrary));

  void *library = dlopen(at("m.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto query = reinterpret_cast<decltype(&sluice_artifact_query)>(dlsym(library, "sluice_artifact_query"));
  ASSERT_NE(query, nullptr);
  double values[3];
  void *buffers[] = {values};
  query()->stages[0](buffers, 0, 0, 3);

  EXPECT_EQ(query()->abi_version, uint32_t(SLUICE_ARTIFACT_ABI));
  EXPECT_DOUBLE_EQ(values[2], std::exp(2.0));
  EXPECT_THAT(exportedSymbols(at("m.so")), ElementsAre("sluice_artifact_query"));
  dlclose(library);
}

TEST_F(LinkerTest, AnExecutableRuns) {
  llvm::cantFail(linkArtifact({read(SLUICE_OBJECT_Program)}, at("m"), LinkOutput::Executable));

  std::string out = at("out");
  std::optional<llvm::StringRef> redirects[] = {std::nullopt, llvm::StringRef(out), std::nullopt};
  int code = llvm::sys::ExecuteAndWait(at("m"), {at("m"), "it"}, std::nullopt, redirects);

  EXPECT_EQ(code, 7);
  EXPECT_EQ(read(out), "caught it\n");
}

TEST_F(LinkerTest, AnExecutableNeedsOnlyTheRuntimesItMay) {
  llvm::cantFail(linkArtifact({read(SLUICE_OBJECT_Program)}, at("m"), LinkOutput::Executable));

  std::set<std::string> allowed = {"libc.so.6",    "libm.so.6", "libstdc++.so.6",      "libgcc_s.so.1",
                                   "libtbb.so.12", "libz.so.1", "ld-linux-x86-64.so.2"};
  for (const std::string &name : neededLibraries(at("m")))
    EXPECT_TRUE(allowed.contains(name)) << name;
}

TEST_F(LinkerTest, TheQueryOfAnExecutableIsExported) {
  llvm::cantFail(linkArtifact({read(SLUICE_OBJECT_Program)}, at("m"), LinkOutput::Executable));

  EXPECT_THAT(exportedSymbols(at("m")), testing::Contains("sluice_artifact_query"));
}

TEST_F(LinkerTest, TheSameObjectGivesTheSameBytes) {
  llvm::cantFail(linkArtifact({read(SLUICE_OBJECT_Program)}, at("a"), LinkOutput::Executable));
  llvm::cantFail(linkArtifact({read(SLUICE_OBJECT_Program)}, at("b"), LinkOutput::Executable));

  EXPECT_FALSE(read(at("a")).empty());
  EXPECT_EQ(read(at("a")), read(at("b")));
}

TEST_F(LinkerTest, AnUndefinedFunctionLeavesNothingBehind) {
  Failure failure = failureOf(linkArtifact({read(SLUICE_OBJECT_Unfinished)}, at("m.so"), LinkOutput::SharedLibrary));

  EXPECT_EQ(failure.code, ExitCode::Internal);
  EXPECT_THAT(failure.text, HasSubstr("sluiceNothingDefinesThis"));
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LinkerTest, AnObjectThatIsNoneLeavesWhatWasThere) {
  llvm::cantFail(writeWhole("before", at("m.so")));
  Failure failure = failureOf(linkArtifact({"garbage"}, at("m.so"), LinkOutput::SharedLibrary));

  EXPECT_EQ(failure.code, ExitCode::Internal);
  EXPECT_EQ(read(at("m.so")), "before");
  EXPECT_THAT(files(), ElementsAre("m.so"));
}

TEST_F(LinkerTest, TheLinkerRunsAgainAfterAFailure) {
  llvm::consumeError(linkArtifact({"garbage"}, at("m.so"), LinkOutput::SharedLibrary));

  llvm::cantFail(linkArtifact({read(SLUICE_OBJECT_Artifact)}, at("m.so"), LinkOutput::SharedLibrary));
}

TEST_F(LinkerTest, AnOutputFolderThatIsNotThereIsNamed) {
  std::string output = at("no/such/m.so");
  Failure failure = failureOf(linkArtifact({read(SLUICE_OBJECT_Artifact)}, output, LinkOutput::SharedLibrary));

  EXPECT_EQ(failure.code, ExitCode::Invalid);
  EXPECT_EQ(failure.text, output + ": cannot create: No such file or directory");
}

TEST_F(LinkerTest, AnOutputThatIsAFolderIsNamed) {
  std::filesystem::create_directory(at("m"));
  Failure failure = failureOf(linkArtifact({read(SLUICE_OBJECT_Artifact)}, at("m"), LinkOutput::SharedLibrary));

  EXPECT_EQ(failure.code, ExitCode::Invalid);
  EXPECT_EQ(failure.text, at("m") + ": cannot write: Is a directory");
  EXPECT_THAT(files(), ElementsAre("m"));
}

TEST_F(LinkerTest, LinkingIsQuick) {
  auto start = std::chrono::steady_clock::now();
  llvm::cantFail(linkArtifact({read(SLUICE_OBJECT_Program)}, at("m"), LinkOutput::Executable));
  std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;

  RecordProperty("milliseconds", std::to_string(took.count()));
  std::printf("linked an executable in %.1f ms\n", took.count());
}
