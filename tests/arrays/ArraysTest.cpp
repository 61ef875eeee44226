// Arrays on the host and on virtual accelerators.
#include "sluice/array.h"

#include <gmock/gmock.h>

#include <cmath>
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
