// Errors of enqueued work appear at the read, with function and line. Also lost devices.
#include "runtime/arrays/ArrayDevices.h"
#include "runtime/device/DevicePool.h"
#include "runtime/plugins/BackendFolders.h"
#include "sluice/array.h"
#include "tools/compiler/Installation.h"

#include <gmock/gmock.h>

#include <thread>

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The backend sim with injected failures.
struct Faulty {
  static inline sluice_backend_run real{}, half{};
  static inline int syncs = 0, launches = 0; ///< calls until the next one that fails; 0: none does
  static inline sluice_status status = SLUICE_INTERNAL;
  static inline bool isFailing = false;

  static bool fails(int &calls) { return isFailing = calls > 0 && --calls == 0; }

  static void use() {
    syncs = launches = 0;
    std::string folder = compiler::findBackendFolder();
    real = runtime::DevicePool::ofProcess()->findHalf("sim", runtime::backendFoldersFor(runtime::Plan{}, folder));
    half = real;
    half.synchronize = [](sluice_event *event) { return fails(syncs) ? status : real.synchronize(event); };
    half.launch = [](sluice_queue *queue, const sluice_launch *launch) {
      return fails(launches) ? status : real.launch(queue, launch);
    };
    half.last_error = [](sluice_run *run) { return isFailing ? "planted fault" : real.last_error(run); };
    runtime::ArrayDevices::ofProcess().setTarget({{"sim", 0}}, {}, folder, {{"sim", &half}});
  }
};

class ArrayErrors : public testing::Test {
protected:
  void SetUp() override {
    set_devices("cpu,sim:0");
    Faulty::use();
  }
};

template <typename Body> std::string textOf(Body body, int code) {
  try {
    body();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "no error";
}

TEST_F(ArrayErrors, AppearAtTheReadWithTheFunctionAndItsLine) {
  Array x = ones({4}, f32, gpu(0));
  x.wait();
  Array before = x * 3.0;
  before.wait();
  Faulty::status = SLUICE_INTERNAL;
  Faulty::syncs = 2;
  Array good = x + 1.0;
  const unsigned line = __LINE__ + 1;
  Array bad = exp(x);
  Array after = bad * 2.0;
  EXPECT_EQ(Faulty::syncs, 2) << "calls return before the work is known to fail";
  std::string text = textOf([&] { after.to_vector<float>(); }, 70);
  EXPECT_THAT(text, AllOf(HasSubstr("exp (ErrorsTest.cpp:" + std::to_string(line) + ") on gpu(0) (sim:0)"),
                          HasSubstr("planted fault")));
  EXPECT_THAT(textOf([&] { bad.item(); }, 2), HasSubstr("elements, not 1"));
  EXPECT_THAT(textOf([&] { bad.wait(); }, 70), HasSubstr("exp (ErrorsTest.cpp"));
  EXPECT_EQ(good.to_vector<float>(), std::vector<float>(4, 2)) << "work before the failed one";
  EXPECT_EQ(before.to_vector<float>(), std::vector<float>(4, 3));
  EXPECT_EQ((x + x).to_vector<float>(), std::vector<float>(4, 2)) << "the process goes on";
}

TEST_F(ArrayErrors, FailedLaunchesFreeTheResult) {
  Array x = ones({1 << 20}, f32, gpu(0));
  x.wait();
  exp(x).wait();
  std::int64_t used = memory(gpu(0)).in_use;
  Faulty::status = SLUICE_INTERNAL;
  Faulty::launches = 1;
  EXPECT_THAT(textOf([&] { exp(x); }, 70), AllOf(HasSubstr("exp"), HasSubstr("planted fault")));
  EXPECT_EQ(memory(gpu(0)).in_use, used);
  EXPECT_NEAR(exp(x).max().item(), 2.718281828, 1e-6);
}

TEST_F(ArrayErrors, OfALostBackendEndWaitsOnAllOfItsDevices) {
  runtime::ArrayDevices::ofProcess().setTarget({{"sim", 0}, {"sim", 1}}, {}, compiler::findBackendFolder(),
                                               {{"sim", &Faulty::half}});
  Array x = ones({4}, f32, gpu(0)), y = ones({4}, f32, gpu(1));
  wait_all();
  Array first = x + 1.0, second = y + 1.0, third = y + 2.0;
  Faulty::status = SLUICE_EXHAUSTED;
  Faulty::syncs = 1;
  EXPECT_THAT(textOf([&] { first.wait(); }, 5), HasSubstr("add (ErrorsTest.cpp"));
  EXPECT_THAT(textOf([&] { third.to_vector<float>(); }, 5), HasSubstr("lost"));
  std::string text = "no error";
  std::thread([&] { text = textOf([&] { second.wait(); }, 5); }).join();
  EXPECT_THAT(text, HasSubstr("lost"));
  EXPECT_EQ((ones({4}, f32, gpu(1)) + 1.0).to_vector<float>(), std::vector<float>(4, 2));
}

TEST_F(ArrayErrors, LostDevicesInvalidateOnlyTheirArrays) {
  Array x = ones({4}, f32, gpu(0)), here = ones({4});
  x.wait();
  Faulty::status = SLUICE_EXHAUSTED;
  Faulty::syncs = 1;
  Array y = x + 1.0;
  EXPECT_THAT(textOf([&] { y.to_vector<float>(); }, 5), HasSubstr("add (ErrorsTest.cpp"));
  EXPECT_THAT(textOf([&] { x + 1.0; }, 5), HasSubstr("lost"));
  EXPECT_EQ((here + here).to_vector<float>(), std::vector<float>(4, 2));
  EXPECT_EQ((ones({4}, f32, gpu(0)) + here.to(gpu(0))).to_vector<float>(), std::vector<float>(4, 2))
      << "the device is opened again";
}

} // namespace
} // namespace sluice
