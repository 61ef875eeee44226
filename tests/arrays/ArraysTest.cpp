// Arrays on the host and on virtual accelerators.
#include "sluice/array.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Arrays : public testing::Test {
protected:
  static void SetUpTestSuite() { set_devices("cpu,sim:0,sim:1"); }
};

TEST_F(Arrays, HoldElements) {
  Array x = array({1, 2, 3});
  EXPECT_EQ(x.dtype(), i32);
  EXPECT_EQ(x.device(), cpu());
  EXPECT_THAT(x.to_vector<int>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(x.str(), "(3,) cpu() int32\n[1, 2, 3]");
}

TEST_F(Arrays, AddOnEachDevice) {
  for (const Device &device : {cpu(), gpu(0), gpu(1)}) {
    Array x = array({1.f, 2.f, 3.f}, device), y = x + x * 2.0;
    EXPECT_EQ(y.device(), device);
    EXPECT_THAT(y.to_vector<float>(), ElementsAre(3, 6, 9));
    EXPECT_THAT((x + x * 2.0).to_vector<float>(), ElementsAre(3, 6, 9));
  }
}

TEST_F(Arrays, Slice) {
  Array x = arange(24, f32).reshape({4, 6});
  Array part = x[{slice(1, 3), slice(0, 6, 2)}];
  EXPECT_THAT(part.shape(), ElementsAre(2, 3));
  EXPECT_THAT(part.to_vector<float>(), ElementsAre(6, 8, 10, 12, 14, 16));
  x[{1, slice(2, 4)}] = 0.0;
  EXPECT_THAT(Array(x[{1}]).to_vector<float>(), ElementsAre(6, 7, 0, 0, 10, 11));
}

TEST_F(Arrays, ComputeInSlices) {
  for (const Device &device : {cpu(), gpu(1)}) {
    Array x = arange(6, f32, device).reshape({2, 3}), handle = x;
    x[{0}] += 10.0;
    x[{1}] -= x[{0}];
    x[{ellipsis, 1}] *= array({2.f, 3.f}, device);
    x[{0, 0}] /= 4.0;
    EXPECT_THAT(handle.to_vector<float>(), ElementsAre(2.5, 22, 12, -7, -21, -7));
  }
  Array x = zeros({2, 3});
  const unsigned line = __LINE__ + 2;
  try {
    x[{0}] += ones({2});
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("ArraysTest.cpp:" + std::to_string(line)));
    EXPECT_THAT(error.what(), HasSubstr("sizes do not broadcast"));
  }
}

TEST_F(Arrays, JitAndGrad) {
  auto loss = [](const Tensor &w, const Tensor &x) { return square(matmul(x, w)).sum(); };
  auto both = jit(value_and_grad(loss));
  Array w = array({1.f, 2.f}).reshape({2, 1}), x = array({{1.f, 2.f}, {3.f, 4.f}});
  auto [value, gradient] = both(w, x);
  EXPECT_EQ(value.item(), 25 + 121);
  EXPECT_THAT(gradient.to_vector<float>(), ElementsAre(2 * 5 + 2 * 33, 4 * 5 + 2 * 44));
}

TEST_F(Arrays, Record) {
  for (const Device &device : {cpu(), gpu(1)}) {
    Array x = array({1.f, 2.f, 3.f}, device);
    x.attach_grad();
    {
      auto tape = record();
      Array y = exp(x) * x;
      y.backward();
    }
    std::vector<float> gradient = x.grad().to_vector<float>();
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(gradient[size_t(i)], std::exp(i + 1.0) * (i + 2), 1e-4);
    EXPECT_EQ(x.grad().device(), device);
  }
}

TEST_F(Arrays, GradientsFlowToLeavesOnly) {
  Array w = array({3.f}), other = array({5.f});
  w.attach_grad();
  {
    auto tape = record();
    (w * w.detach()).backward(); // detach shares the memory
  }
  EXPECT_EQ(w.grad().item(), 3);
  Array first = array({2.f}), a = empty({1}), b = empty({1});
  a.copy_(first).attach_grad();
  b.copy_(first).attach_grad();
  {
    auto tape = record();
    (a * other + b * b).backward(); // a and b share the memory of `first`
  }
  EXPECT_EQ(a.grad().item(), 5);
  EXPECT_EQ(b.grad().item(), 4);
}

TEST_F(Arrays, CopiesInPlaceCarryGradients) {
  for (const Device &device : {cpu(), gpu(0)}) {
    Array x = array({2.f, 3.f}, device);
    x.attach_grad();
    {
      auto tape = record();
      Array y = zeros({2}, f32, device), z = zeros({2}, f32, device);
      y.copy_(x);
      x.copy_to(z);
      (square(y) + z).backward();
    }
    EXPECT_THAT(x.grad().to_vector<float>(), ElementsAre(5, 7));
  }
}

TEST_F(Arrays, LeavesDoNotChangeUnderATape) {
  Array x = ones({2});
  x.attach_grad();
  auto tape = record();
  try {
    x += 1.0;
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("an array with attach_grad cannot change by calls that a tape records"));
  }
  NoGrad pause;
  x += 1.0;
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(2, 2));
}

TEST_F(Arrays, TypesOfNumbersSelectAProgram) {
  auto plus = jit([](const Tensor &x, auto number) { return x + double(number); });
  Array x = zeros({1}, f64);
  EXPECT_EQ(plus(x, -1).item(), -1);
  EXPECT_EQ(plus(x, 4294967295u).item(), 4294967295.0);
  EXPECT_EQ(plus(x, 1.0f).item(), 1);
  EXPECT_EQ(plus(x, 1065353216).item(), 1065353216); // the bits of 1.0f
}

TEST_F(Arrays, IndicesOutOfRangeAreErrorsOnTheHost) {
  Array logits = zeros({2, 3}), table = zeros({4, 2});
  for (int wrong : {3, -1}) {
    try {
      cross_entropy(logits, array({0, wrong}));
      FAIL();
    } catch (const Error &error) {
      EXPECT_EQ(error.code(), 3);
      EXPECT_THAT(error.what(), HasSubstr("element 1: " + std::to_string(wrong) + " is none of the 3 classes 0 to 2"));
    }
  }
  EXPECT_THROW(embedding(array({4}), table), Error);
  EXPECT_EQ(embedding(array({3}), table).numel(), 2);
}

TEST_F(Arrays, SlicesOfResultsAndNegatedMasks) {
  Array x = array({1.f, 2.f}), mask = gt(x, 1.0);
  auto first = (x * 2.0)[{0}];
  EXPECT_EQ(first.item(), 2);
  EXPECT_THAT((!mask).to_vector<bool>(), ElementsAre(true, false));
}

/// Ends the process with arrays in static variables, and a call in the destructor of one.
[[noreturn]] void endWithArrays() {
  static Array large = ones({200 << 20}, u8), there = large.to(gpu(0)); // enough to be returned to the system
  struct Last {
    Array sum = ones({2}) + 1.0;
    ~Last() {
      sum = ones({2}) + 1.0;
      try {
        sum = ones({3}) + 1.0;
      } catch (const Error &error) {
        if (std::string(error.what()).find("cannot be compiled after the thread, or main, has ended") !=
            std::string::npos)
          return;
      }
      std::abort();
    }
  };
  static Last last;
  std::exit(0);
}

TEST_F(Arrays, MayEndAndComputeAfterMain) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(endWithArrays(), testing::ExitedWithCode(0), "");
}

TEST_F(Arrays, UnusedMemoryGoesBackToTheDriver) {
  set_devices("cpu,sim:0", {{"sim", "memory=8MB"}});
  Array small = ones({10}, f32, gpu(0));
  for (int i = 0; i < 6; ++i)
    empty({1 << 18}, f32, gpu(0)); // 1 MB
  wait_all();
  trim_memory();
  EXPECT_LE(memory(gpu(0)).held, 1 << 20) << "one slab of small blocks is left";
  Array large = empty({6 << 18}, f32, gpu(0));
  EXPECT_EQ((small + 1.0).sum().item(), 20);
  large = Array();
  std::vector<Array> all;
  try {
    while (true)
      all.push_back(empty({1 << 16}, u8, gpu(0)));
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), 5);
    EXPECT_GE(all.size(), 100u);
  }
  set_devices("cpu,sim:0,sim:1");
}

TEST_F(Arrays, KeepTheirDevicesWhenTheListChanges) {
  Array x = array({1.f, 2.f}, gpu(1));
  x.attach_grad();
  set_devices("cpu,sim:0");
  auto twice = jit([](const Tensor &its) { return its * 2.0; });
  EXPECT_THAT(twice(x).to_vector<float>(), ElementsAre(2, 4));
  {
    auto tape = record();
    square(x).backward();
  }
  EXPECT_THAT(x.grad().to_vector<float>(), ElementsAre(2, 4));
  set_devices("cpu,sim:1");
  Array here = ones({2}, f32, gpu(0));
  try {
    x + here;
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("is on gpu(1), and operand 2 [2] on gpu(0)"));
  }
  set_devices("cpu,sim:0,sim:1");
}

TEST_F(Arrays, RejectMixedDevices) {
  Array x = ones({2, 3}, f32, gpu(0)), y = ones({2, 3}, f32, gpu(1));
  try {
    x + y;
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("add: operand 1 [2, 3] is on gpu(0), and operand 2 [2, 3] on gpu(1)"));
  }
}

} // namespace
} // namespace sluice
