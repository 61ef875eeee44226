// Accepted transports, and the reasons for rejecting others.
#include "runtime/plugins/Transports.h"
#include "runtime/base/Status.h"
#include "runtime/plugins/BackendLoader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice::runtime;
using testing::HasSubstr;

static std::string transportFolderOf(const std::string &fault) { return std::string(TRANSPORTS) + "/" + fault; }

TEST(Transports, AreFoundByTheirName) {
  const sluice_transport_library &library = findTransport("test", {"/no/such/folder", transportFolderOf("None")});
  EXPECT_STREQ(library.name, "test");
  EXPECT_EQ(searchTransport("test", {transportFolderOf("None")}).found, &library);
}

TEST(Transports, OfTheFirstFolderThatHasASoundOneAreTaken) {
  TransportSearch search =
      searchTransport("test", {transportFolderOf("Crash"), transportFolderOf("None"), transportFolderOf("NoSend")});
  EXPECT_NE(search.found, nullptr);
  EXPECT_THAT(search.refused, HasSubstr("Crash/libsluice_transport_test.so"));
}

TEST(Transports, ThatAreNotThereAreMissedByName) {
  Status status = guarded([] { findTransport("tpc", {transportFolderOf("None")}); });
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_EQ(status.message, "there is no transport 'tpc' in " + transportFolderOf("None"));
}

TEST(Transports, AreNoBackends) {
  EXPECT_TRUE(tryBackends({transportFolderOf("None"), transportFolderOf("NoSymbol")}).empty());
}

namespace {

struct BadTransport {
  const char *fault, *reason;
};

class TransportFaults : public testing::TestWithParam<BadTransport> {};

} // namespace

TEST_P(TransportFaults, AreTold) {
  Status status = guarded([] { findTransport("test", {transportFolderOf(GetParam().fault)}); });
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_THAT(status.message,
              HasSubstr("refused " + transportFolderOf(GetParam().fault) + "/libsluice_transport_test.so: "));
  EXPECT_THAT(status.message, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    All, TransportFaults,
    testing::Values(BadTransport{"NoSymbol", "undefined symbol: sluice_transport_query"},
                    BadTransport{"Nothing", "sluice_transport_query returned nothing"},
                    BadTransport{"WrongMajor", "its table has version 9.0, and this Sluice needs 1.x"},
                    BadTransport{"ShortTable", "but in version 1.0 it has"},
                    BadTransport{"OtherName", "its name is 'other'"}, BadTransport{"NoSend", "its table lacks send"},
                    BadTransport{"Crash", "crashed in its first call, sluice_transport_query"}),
    [](const auto &info) { return info.param.fault; });
