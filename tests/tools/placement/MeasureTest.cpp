// Measurements of a device match its programs: copies end to end, and kernels by a backend's clock if the host's
// agrees.
#include "tools/compiler/placement/costs/Measure.h"
#include "runtime/instance/ActionTimes.h"
#include "runtime/plugins/BackendLoader.h"
#include "tests/TemporaryFolder.h"
#include "tools/compiler/Compiler.h"
#include "tools/compiler/Installation.h"
#include "tools/compiler/placement/costs/MeasureLinks.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::compiler;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;

namespace {

const sluice_backend_run &simulator() { return runtime::findRunHalf("sim", {findBackendFolder()}); }

sluice_status tellNothing(sluice_event *, double *start, double *end) {
  *start = *end = 1;
  return SLUICE_OK;
}

/// An accelerator whose copies take the host's time, which its own clock does not include.
sluice_backend_run withBlindClock() {
  sluice_backend_run half = simulator();
  half.takes_host_queues = 0;
  half.event_times = tellNothing;
  return half;
}

LinkCalibration linkOf(const sluice_backend_run &half, const char *settings) {
  ir::Target target = llvm::cantFail(ir::Target::parse("cpu,sim:0"));
  runtime::Team team(1);
  runtime::DeviceContext context("sim", half, settings, team);
  return timeLink(target.devices()[0], target.devices()[1], context);
}

/// With one model, on devices some of which are emulated CUDA devices.
MeasureRequest onEmulated(const char *devices, const std::string &model) {
  setenv("SLUICE_NVRTC", SLUICE_CUDA_EMU_NVRTC, /*replace=*/1);
  for (const char *library : {"SLUICE_CUDA_DRIVER", "SLUICE_CUBLASLT"})
    setenv(library, SLUICE_CUDA_EMU_DRIVER, /*replace=*/1);
  setenv("CUDA_EMU_EFFORT", "least", /*replace=*/1);
  MeasureRequest request;
  request.devices = devices;
  request.seconds = 0;
  request.knowsOnlyThem = true;
  request.models = {model};
  return request;
}

bool isOfHalves(const std::string &kind) { return llvm::StringRef(kind).ends_with("_bf16"); }

runtime::WorkTime work(double told, std::optional<double> host) {
  runtime::WorkTime time;
  time.end = told;
  time.isHostClock = false;
  time.hostSeconds = host;
  return time;
}

} // namespace

TEST(MeasuredLinks, CountWhatTheHostWaitsFor) {
  LinkCalibration link = linkOf(withBlindClock(), "");
  EXPECT_GT(link.latency, 0);
  EXPECT_LT(link.bytesPerSecond, 1e13) << "as fast as no memory is";
}

TEST(MeasuredLinks, GoByTheClockThatTheHostGoesByToo) {
  LinkCalibration link = linkOf(simulator(), "link=2GB/s,latency=7us");
  EXPECT_NEAR(link.bytesPerSecond, 2e9, 1e3);
  EXPECT_NEAR(link.latency, 7e-6, 1e-9);
}

TEST(MeasuredKernels, AClockIsBelievedWhereTheHostsAgrees) {
  EXPECT_EQ(runtime::secondsOf(work(90e-6, 100e-6)), 90e-6);
  EXPECT_EQ(runtime::secondsOf(work(2e-6, 20e-6)), 2e-6) << "a launch takes the host longer than a small kernel runs";
  EXPECT_EQ(runtime::secondsOf(work(0, 100e-6)), 100e-6) << "it tells nothing";
  EXPECT_EQ(runtime::secondsOf(work(1e-6, 100e-6)), 100e-6) << "it sees a part of the work";
  EXPECT_EQ(runtime::secondsOf(work(200e-6, 100e-6)), 100e-6) << "it counts in other seconds";
  EXPECT_EQ(runtime::secondsOf(work(5, std::nullopt)), 5) << "of a simulator that takes the host's work, too";
}

// Kernels that could not be timed are reported, and the calibration file keeps them.
TEST(MeasuredKernels, WhatCouldNotBeMeasuredIsKept) {
  ClockCalibration clock{"cpu", machineName(), {}, {}, {{"acc:0", "conv2d", "its clock showed no time for conv2d_1"}}};
  test::TemporaryFolder folder;
  std::string path = folder / "calibration.json";
  setenv("SLUICE_CALIBRATION", path.c_str(), /*replace=*/1);
  llvm::cantFail(writeCalibration(clock));
  Calibration read = llvm::cantFail(readCalibration());
  EXPECT_THAT(read.clocks.front().unmeasured, Contains(Field(&UnmeasuredKind::reason, HasSubstr("conv2d_1"))));
}

TEST(MeasuredKernels, AKindWithoutATimeIsSaidSo) {
  static const sluice_backend_run timeless = [] {
    sluice_backend_run half = simulator();
    half.event_times = tellNothing;
    return half;
  }();
  MeasureRequest request;
  request.devices = "cpu,sim:0";
  request.clock = "sim";
  request.seconds = 0;
  request.knowsOnlyThem = true;
  request.models = {SLUICE_SMALL_MODEL};
  request.runHalves["sim"] = &timeless;
  auto measured = llvm::cantFail(measureDevices(request));
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_THAT(measured[0].unmeasured, Contains(Field(&UnmeasuredKind::device, "sim:0")));
  EXPECT_THAT(measured[0].unmeasured, Contains(Field(&UnmeasuredKind::reason, HasSubstr("its clock showed no time"))));
}

// Products of two-byte floats reach another share of another peak than those of f32: both are timed.
TEST(MeasuredKernels, TensorCoresHaveKindsOfTheirOwn) {
  MeasureRequest request = onEmulated("cpu,cuda:0,cuda:1", SLUICE_SMALL_MODEL);
  auto measured = llvm::cantFail(measureDevices(request));
  ASSERT_EQ(measured.size(), 1u) << "by the wall clock";
  ASSERT_EQ(measured[0].devices.size(), 3u);
  auto hasKinds = [&](size_t device, bool areOfHalves) {
    return llvm::any_of(measured[0].devices[device].kinds, [&](const auto &kind) {
      return llvm::StringRef(kind.first).starts_with("einsum") && isOfHalves(kind.first) == areOfHalves;
    });
  };
  EXPECT_TRUE(hasKinds(0, false));
  EXPECT_FALSE(hasKinds(0, true)) << "of the host they are no other kind";
  for (size_t device : {1, 2}) {
    EXPECT_TRUE(hasKinds(device, false)) << device;
    EXPECT_TRUE(hasKinds(device, true)) << device;
  }
  EXPECT_EQ(measured[0].links.size(), 6u) << "between each two, in both directions";
}

// A dump already has a precision, and is timed in no other.
TEST(MeasuredKernels, ADumpIsTimedAsItIs) {
  test::TemporaryFolder folder;
  CompileTask task;
  task.compileTo = "train";
  task.output = folder / "dump.mlir";
  llvm::cantFail(compileFile(SLUICE_SMALL_MODEL, CompileOptions(), task));
  auto measured = llvm::cantFail(measureDevices(onEmulated("cpu,cuda:0", task.output)));
  ASSERT_EQ(measured.size(), 1u);
  ASSERT_EQ(measured[0].devices.size(), 2u);
  for (const auto &kind : measured[0].devices[1].kinds)
    EXPECT_FALSE(isOfHalves(kind.first)) << kind.first;
}
