// The items of the checklist on batches for several devices, and the exercises, with arrays: 44, 45, 51 to 53 and 58.
// exercises_test.py has the measured ones.
#include "runtime/arrays/ArrayDevices.h"
#include "sluice/array.h"
#include "tests/cuda_emu/Doubles.h"

#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class OnAccelerators : public testing::TestWithParam<const char *> {
protected:
  static void SetUpTestSuite() { test::useCudaDoubles(/*devices=*/2); }
  void SetUp() override { set_devices(GetParam()); }
};

std::string backendOf(const testing::TestParamInfo<const char *> &info) {
  return std::string(info.param).find("sim") != std::string::npos ? "Virtual" : "EmulatedCuda";
}

#define SLUICE_ON_ACCELERATORS(name)                                                                                   \
  using name = OnAccelerators;                                                                                         \
  INSTANTIATE_TEST_SUITE_P(Arrays, name, testing::Values("cpu,sim:0,sim:1", "cpu,cuda:0,cuda:1"), backendOf)

std::int64_t copiesSoFar() {
  std::int64_t count = 0;
  for (const ArrayTransfers &pair : transfers())
    count += pair.copies;
  return count;
}

template <typename Body> std::string refusalOf(Body body) {
  try {
    body();
  } catch (const Error &error) {
    return error.message();
  }
  return "no error";
}

//===- batches for several devices --------------------------------------------------------------------------------===//

SLUICE_ON_ACCELERATORS(checklist_44_split);

TEST_P(checklist_44_split, RowsGoToTheirDevices) {
  Array batch = arange(24, f32).reshape({4, 6}), labels = arange(4);
  std::int64_t before = copiesSoFar();
  auto [x, y] = split_batch(batch, labels, try_all_gpus());
  EXPECT_EQ(copiesSoFar() - before, 4) << "one for each part";
  for (int i : {0, 1}) {
    EXPECT_EQ(x[size_t(i)].device(), gpu(i));
    EXPECT_EQ(y[size_t(i)].device(), gpu(i));
    EXPECT_EQ(x[size_t(i)].to_vector<float>(), (Array(batch[{slice(2 * i, 2 * i + 2)}]).to_vector<float>()));
    EXPECT_THAT(y[size_t(i)].to_vector<std::int64_t>(), ElementsAre(2 * i, 2 * i + 1));
  }
  EXPECT_EQ(refusalOf([&] { split_batch(batch, arange(3), try_all_gpus()); }),
            "split_batch: lengths differ: 4 of x and 3 of y");
}

SLUICE_ON_ACCELERATORS(checklist_45_uneven_split);

TEST_P(checklist_45_uneven_split, OnlyIfRequested) {
  Array batch = ones({51, 2});
  EXPECT_THAT(refusalOf([&] { split(batch, try_all_gpus()); }),
              HasSubstr("cannot split 51 rows among 2 devices evenly; SplitOptions{.even_split = false}"));
  std::vector<Array> parts = split(batch, try_all_gpus(), {.even_split = false});
  EXPECT_THAT(parts[0].shape(), ElementsAre(26, 2));
  EXPECT_THAT(parts[1].shape(), ElementsAre(25, 2));
  EXPECT_EQ(refusalOf([&] { split(ones({1, 2}), try_all_gpus(), {.even_split = false}); }),
            "split: cannot split 1 rows among 2 devices: an array has at least one row");
  EXPECT_EQ(refusalOf([&] { split(batch, std::vector<Device>()); }), "split: needs at least one device");
}

//===- exercises --------------------------------------------------------------------------------------------------===//

SLUICE_ON_ACCELERATORS(checklist_51_parameters_on_a_device);

TEST_P(checklist_51_parameters_on_a_device, AreReadAndWrittenInPlace) {
  Array w = random::normal(random::key(1, gpu(1)), {20, 1, 3, 3});
  std::vector<float> before = w.to_vector<float>();
  std::int64_t count = copiesSoFar(), driver = memory(gpu(1)).allocations;
  w[{0, 0, 1, 1}] = 7.0;
  w[{3}] = w[{4}];
  wait_all();
  EXPECT_EQ(copiesSoFar(), count) << "elements are written on the device";
  EXPECT_EQ((w[{0, 0, 1, 1}].item()), 7);
  EXPECT_EQ(copiesSoFar(), count + 1) << "one element crosses";
  EXPECT_EQ(memory(gpu(1)).allocations - driver, 0);
  std::vector<float> expected = before;
  expected[4] = 7;
  std::copy(before.begin() + 36, before.begin() + 45, expected.begin() + 27);
  EXPECT_EQ(w.to_vector<float>(), expected);
  EXPECT_EQ(w.to(gpu(0)).to_vector<float>(), expected) << "on another device";
}

SLUICE_ON_ACCELERATORS(checklist_52_products_and_their_norms);

TEST_P(checklist_52_products_and_their_norms, OfArraysAreLoggedWithOneTransfer) {
  constexpr int kProducts = 20;
  std::vector<Array> traces, norms;
  Array m = random::uniform(random::key(2, gpu(0)), {100, 100}, -0.1, 0.1);
  wait_all();
  std::int64_t before = copiesSoFar();
  for (int i = 0; i < kProducts; ++i) {
    m = m * 1.0625;
    Array product = matmul(m, m.t());
    traces.push_back(trace(matmul(product, product.t())));
    norms.push_back(product.norm());
  }
  std::vector<float> logged = stack({stack(traces), stack(norms)}).to_vector<float>();
  EXPECT_EQ(copiesSoFar() - before, 1);
  for (size_t i = 0; i < kProducts; ++i) {
    float norm = logged[kProducts + i];
    EXPECT_NEAR(norm * norm, logged[i], 1e-4 * logged[i]);
  }
}

/// Seconds of the virtual clock until all work of this thread on gpu(0) and gpu(1) is done.
double clockOf(const std::function<void()> &work) {
  std::vector<runtime::ArrayDevice *> devices = runtime::ArrayDevices::ofProcess().all();
  double start = 0, end = 0;
  auto readClock = [&](double &into) {
    for (size_t i : {1, 2}) {
      runtime::Stream &stream = devices[i]->streamOfThread();
      runtime::DeviceEvent event(stream.queue().context());
      stream.queue().record(event);
      event.synchronize();
      into = std::max(into, event.times().second);
    }
  };
  readClock(start);
  work();
  readClock(end);
  return end - start;
}

// "Almost linear": by the clock of the virtual devices, which does not depend on this machine.
TEST(checklist_53_two_devices_at_once, TakeLittleMoreThanHalfTheTimeWithArrays) {
  set_devices("cpu,sim:0,sim:1");
  Array a = random::uniform(random::key(3, gpu(0)), {256, 256}), b = a.to(gpu(1));
  auto products = [&](const Array &first, const Array &second) {
    Array x = matmul(first, first), y = matmul(second, second);
  };
  products(a, b);
  wait_all();
  double sequence = clockOf([&] { products(a, a); }), together = clockOf([&] { products(a, b); });
  EXPECT_GT(together, 0);
  EXPECT_GE(sequence / together, 1.8);
}

//===- options of other tools -------------------------------------------------------------------------------------===//

// models/documents/README.md has the table of these options.
SLUICE_ON_ACCELERATORS(checklist_58_options_of_other_tools);

TEST_P(checklist_58_options_of_other_tools, FusedAndUnfusedSoftmaxAgree) {
  Array logits = random::normal(random::key(4, gpu(0)), {8, 10}), labels = arange(8, i64, gpu(0));
  auto fused = jit([](const Tensor &x, const Tensor &y) { return cross_entropy(x, y); });
  auto unfused = jit([](const Tensor &x, const Tensor &y) { return nll_loss(log_softmax(x, 1), y); }, {.fuse = false});
  EXPECT_NEAR(fused(logits, labels).item(), unfused(logits, labels).item(), 1e-6);
}

TEST_P(checklist_58_options_of_other_tools, RunsHaveEqualBits) {
  Array image = random::normal(random::key(5, gpu(0)), {2, 3, 9, 9}),
        weight = random::normal(random::key(6, gpu(0)), {4, 3, 3, 3});
  auto gradient = jit(grad([](const Tensor &w, const Tensor &x) { return square(conv2d(x, w)).mean(); }));
  EXPECT_EQ(gradient(weight, image).to_vector<float>(), gradient(weight, image).to_vector<float>());
}

TEST_P(checklist_58_options_of_other_tools, UpdatesInPlaceNeedNoMemory) {
  Array x = ones({256, 256}, f32, gpu(0));
  x += 1.0;
  wait_all();
  ArrayMemoryCounts before = memory(gpu(0));
  for (int i = 0; i < 10; ++i)
    x += 1.0;
  wait_all();
  EXPECT_EQ(memory(gpu(0)).in_use, before.in_use);
  EXPECT_EQ(memory(gpu(0)).held, before.held);
}

} // namespace
} // namespace sluice
