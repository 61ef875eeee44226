// Trials of shared objects of every kind: an invalid one is rejected with a reason and does no harm.
#include "runtime/plugins/BackendLoader.h"
#include "runtime/base/Status.h"
#include "runtime/plugins/BackendTables.h"
#include "sluice/backend/collectives.h"
#include "sluice/backend/host.h"
#include "tests/TemporaryFolder.h"

#include <algorithm>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice::runtime;
using sluice::test::contentOf;
using sluice::test::TemporaryFolder;
using ::testing::HasSubstr;

static std::string folderOf(const std::string &name) { return SLUICE_BINARY_DIR "/tests/backends/" + name; }
static std::string pathOf(const std::string &name) { return folderOf(name) + "/" + name + ".so"; }

TEST(BackendLoader, ASoundOneIsAccepted) {
  BackendFile file = tryBackend(pathOf("Good"));
  EXPECT_EQ(file.reason, "");
  EXPECT_EQ(file.name, "testing");
  EXPECT_EQ(file.description, "for tests");
  EXPECT_TRUE(file.hasCompile);
  EXPECT_FALSE(file.hasRun);
}

TEST(BackendLoader, OneOfALaterMinorVersionIsAccepted) {
  BackendFile file = tryBackend(pathOf("LaterMinor"));
  EXPECT_EQ(file.reason, "");
  EXPECT_TRUE(file.hasCompile);
}

/// The error for a table of version 2.`minor` with `size` bytes, given three known minor versions.
static std::string whyWrong(uint32_t minor, uint32_t size) {
  static constexpr size_t sizes[] = {100, 108, 120};
  return whyWrongSize({"its run half", size, SLUICE_BACKEND_MAJOR, minor}, sizes);
}

TEST(BackendTables, AreAsLargeAsInTheirOwnMinorVersion) {
  EXPECT_EQ(whyWrong(0, 100), "");
  EXPECT_EQ(whyWrong(1, 108), "");
  EXPECT_EQ(whyWrong(2, 120), "");
  EXPECT_EQ(whyWrong(7, 120), "");
  EXPECT_EQ(whyWrong(7, 200), "");
  EXPECT_EQ(whyWrong(0, 96), "its run half says that it has 96 bytes, but in version 2.0 it has 100");
  EXPECT_EQ(whyWrong(0, 120), "its run half says that it has 120 bytes, but in version 2.0 it has 100");
  EXPECT_EQ(whyWrong(1, 100), "its run half says that it has 100 bytes, but in version 2.1 it has 108");
  EXPECT_EQ(whyWrong(7, 108), "its run half says that it has 108 bytes, but in version 2.7 it has at least 120");
}

/// A backend with this run half.
static sluice_backend backendWith(const sluice_backend_run &half) {
  sluice_backend backend = *sluice_host_backend();
  backend.name = "testing";
  backend.run = &half;
  return backend;
}

static sluice_backend_run simulator() { return findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"}); }

/// Memory after a table of version 2.0 is not part of the table.
TEST(BackendTables, OfAnEarlierMinorVersionLackWhatWasAppended) {
  sluice_backend_run half = simulator();
  half.minor_version = 0;
  half.struct_size = offsetof(sluice_backend_run, capture_begin);
  half.sequence_destroy = nullptr;
  half.collectives = nullptr;
  sluice_backend backend = backendWith(half);
  backend.minor_version = 0;
  EXPECT_EQ(whyUnsound(&backend), "");
  sluice_backend_run whole = wholeRunHalf(half);
  EXPECT_EQ(whole.launch, half.launch);
  EXPECT_EQ(whole.capture_begin, nullptr);
  EXPECT_EQ(whole.query, nullptr);
}

TEST(BackendTables, HaveSequencesHostMemoryAndGroupsWholeOrNotAtAll) {
  sluice_backend_run half = simulator();
  sluice_backend backend = backendWith(half);
  half.replay = nullptr;
  EXPECT_EQ(whyUnsound(&backend), "its run half lacks replay");
  half.capture_begin = nullptr;
  half.capture_end = nullptr;
  half.sequence_destroy = nullptr;
  EXPECT_EQ(whyUnsound(&backend), "");
  half.host_release = nullptr;
  EXPECT_EQ(whyUnsound(&backend), "its run half lacks host_release");
  half.host_allocate = nullptr;
  half.group_destroy = nullptr;
  EXPECT_EQ(whyUnsound(&backend), "its run half lacks group_destroy");
}

TEST(BackendTables, NoteNoTimesThatTheyDoNotTell) {
  sluice_backend_run half = simulator();
  sluice_backend backend = backendWith(half);
  half.note_times = [](sluice_queue *, int) { return SLUICE_OK; };
  EXPECT_EQ(whyUnsound(&backend), "");
  half.event_times = nullptr;
  EXPECT_EQ(whyUnsound(&backend), "its run half lacks event_times");
}

TEST(BackendTables, HaveCollectivesThatAreWhole) {
  sluice_backend_run half = simulator();
  sluice_backend backend = backendWith(half);
  EXPECT_EQ(whyUnsound(&backend), "");
  sluice_backend_collectives collectives = *half.collectives;
  half.collectives = &collectives;
  collectives.counts = nullptr;
  EXPECT_EQ(whyUnsound(&backend), "");
  collectives.abort = nullptr;
  EXPECT_EQ(whyUnsound(&backend), "its table of collectives lacks abort");
  collectives.struct_size = 16;
  EXPECT_EQ(whyUnsound(&backend), "its table of collectives says that it has 16 bytes, but in version 2.8 it has " +
                                      std::to_string(sizeof collectives));
}

TEST(BackendTables, HaveNoCollectivesBeforeVersion22) {
  sluice_backend_run half = simulator();
  sluice_backend backend = backendWith(half);
  half.minor_version = 1;
  half.struct_size = offsetof(sluice_backend_run, group_create);
  EXPECT_EQ(whyUnsound(&backend), "its run half has collectives, which version 2.1 does not know");
}

TEST(BackendLoader, DevicesAreAskedFor) {
  BackendFile file = tryBackend(SLUICE_BINARY_DIR "/lib/sluice/backends/sluice_sim_run.so");
  EXPECT_EQ(file.reason, "");
  EXPECT_TRUE(file.hasRun);
  ASSERT_EQ(file.devices.size(), 4u);
  EXPECT_EQ(file.devices[3].name, "virtual accelerator");
  EXPECT_EQ(file.devices[3].memoryBytes, 16'000'000'000);
  EXPECT_EQ(file.devices[3].freeBytes, 16'000'000'000);
  EXPECT_EQ(file.devices[3].clockHz, 1e9);
}

struct Fault {
  const char *name, *reason;
};

class FaultyBackend : public ::testing::TestWithParam<Fault> {};

TEST_P(FaultyBackend, IsRefusedWithAReason) {
  BackendTrial trial;
  if (GetParam().name == std::string("Hang"))
    trial.limit = std::chrono::milliseconds(500); // the other backends answer in time even on a slow machine
  BackendFile file = tryBackend(pathOf(GetParam().name), trial);
  EXPECT_FALSE(file.accepted());
  EXPECT_THAT(file.reason, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    BackendLoader, FaultyBackend,
    ::testing::Values(Fault{"WrongMajor", "sluice_backend has version 3.8, and this Sluice needs 2.x"},
                      Fault{"ShortTable", "says that it has 40 bytes, but in version 2.8 it has 48"},
                      Fault{"LongTable", "says that it has 112 bytes, but in version 2.8 it has 48"},
                      Fault{"LyingHalf", "its compile half says that it has 4096 bytes"},
                      Fault{"ShortHalf", "bytes, but in version 2.8 it has"},
                      Fault{"LaterMinorTooShort", "bytes, but in version 2.9 it has at least"},
                      Fault{"NoPrepare", "its compile half lacks prepare"},
                      Fault{"NoHalves", "neither a compile half nor a run half"},
                      Fault{"BadName", "its name must be 1 to 32 lower-case letters"},
                      Fault{"HostsName", "its name is 'cpu', which is the host's"},
                      Fault{"BadPointer", "crashed in its tables being read (Segmentation fault)"},
                      Fault{"Crash", "crashed in its first call, sluice_backend_query (Segmentation fault)"},
                      Fault{"Exit", "ended the process in its first call, sluice_backend_query"},
                      Fault{"Hang", "gave no answer within 0.5 s in its first call, sluice_backend_query"},
                      Fault{"Nothing", "sluice_backend_query returned nothing"},
                      Fault{"NoSymbol", "it does not export sluice_backend_query"}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(BackendLoader, FilesThatAreNoSharedObjectsAreRefused) {
  TemporaryFolder folder;
  std::string whole = contentOf(pathOf("Good"));
  folder.write("empty.so", "");
  folder.write("text.so", "not a shared object");
  folder.write("truncated.so", whole.substr(0, 4096)); // one of several pages
  folder.write("header.so", whole.substr(0, 100));
  folder.write("readme.txt", "is not looked at");
  std::vector<BackendFile> files = tryBackends({folder.path()});
  ASSERT_EQ(files.size(), 4u);
  for (const BackendFile &file : files)
    EXPECT_NE(file.reason, "") << file.path;
}

TEST(BackendLoader, OneNameIsTakenOnce) {
  TemporaryFolder folder;
  folder.write("copy.so", contentOf(pathOf("Good")));
  std::vector<BackendFile> files = tryBackends({folderOf("Good"), folder.path()});
  ASSERT_EQ(files.size(), 2u);
  EXPECT_TRUE(files[0].accepted());
  EXPECT_EQ(files[1].reason, "there is a backend 'testing' in a file before it");
}

TEST(BackendLoader, AnAbsentFolderIsListed) {
  std::vector<BackendFile> files = tryBackends({"/nowhere", folderOf("Good")});
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].reason, "there is no such folder");
  EXPECT_TRUE(files[1].accepted());
}

TEST(BackendLoader, TheEnvironmentsFoldersComeFirst) {
  setenv("SLUICE_BACKEND_PATH", "/a::/b", 1);
  EXPECT_EQ(backendFolders("/installed"), (std::vector<std::string>{"/a", "/b", "/installed"}));
  unsetenv("SLUICE_BACKEND_PATH");
  EXPECT_EQ(backendFolders(""), std::vector<std::string>());
}

TEST(BackendLoader, ARunHalfIsFoundByName) {
  const sluice_backend_run &half = findRunHalf("sim", {folderOf("Crash"), SLUICE_BINARY_DIR "/lib/sluice/backends"});
  EXPECT_EQ(half.takes_host_queues, 1);
}

TEST(BackendLoader, AnAbsentRunHalfIsNamedWithWhatWasRefused) {
  try {
    findRunHalf("testing", {folderOf("Good"), folderOf("WrongMajor")});
    ADD_FAILURE() << "no error";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("there is no backend 'testing' to run on in"));
    EXPECT_THAT(error.what(), HasSubstr("WrongMajor.so: sluice_backend has version 3.8"));
  }
}
