// Arrays whose elements are packed, as a function by jit leaves parameters that it updates. All else sees them row-major.
#include "sluice/array.h"
#include "sluice/dlpack.h"

#include <gmock/gmock.h>

#include <random>
#include <thread>

namespace sluice {
namespace {

constexpr std::int64_t kRows = 4, kIn = 33, kOut = 70; // the last panel of 70 columns is padded

std::vector<float> randomElements(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> elements(static_cast<size_t>(count));
  for (float &element : elements)
    element = std::uniform_real_distribution<float>(-1, 1)(random);
  return elements;
}

/// A step of gradient descent on sum((x w^T - y)^2), in double precision.
void step(std::vector<double> &w, const std::vector<float> &x, const std::vector<float> &y, double rate) {
  std::vector<double> gradient(w.size());
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t out = 0; out < kOut; ++out) {
      double sum = -y[size_t(row * kOut + out)];
      for (std::int64_t in = 0; in < kIn; ++in)
        sum += x[size_t(row * kIn + in)] * w[size_t(out * kIn + in)];
      for (std::int64_t in = 0; in < kIn; ++in)
        gradient[size_t(out * kIn + in)] += 2 * sum * x[size_t(row * kIn + in)];
    }
  for (size_t i = 0; i < w.size(); ++i)
    w[i] -= rate * gradient[i];
}

class Packed : public testing::Test {
protected:
  static void SetUpTestSuite() { set_devices("cpu,sim:0"); }

  Packed() {
    auto loss = [](const Tensor &w, const Tensor &x, const Tensor &y) { return square(linear(x, w) - y).sum(); };
    update = jit([loss](const Tensor &w, const Tensor &x, const Tensor &y) { return w - 0.01 * grad(loss)(w, x, y); });
  }

  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      w = update(w, x, y);
      step(wanted, elementsOfX, elementsOfY, 0.01);
    }
  }
  void expectWanted(const std::vector<float> &got) const {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 1e-5) << i;
  }

  std::vector<float> elementsOfX = randomElements(kRows * kIn, 1), elementsOfY = randomElements(kRows * kOut, 2),
                     elementsOfW = randomElements(kOut * kIn, 3);
  std::vector<double> wanted{elementsOfW.begin(), elementsOfW.end()};
  Array x = array(elementsOfX, {kRows, kIn}), y = array(elementsOfY, {kRows, kOut}),
        w = array(elementsOfW, {kOut, kIn});
  std::function<Array(Array, Array, Array)> update;
};

TEST_F(Packed, IsReadAsRowMajor) {
  train(3);
  expectWanted(w.to_vector<float>());
  train(2);
  expectWanted((w * 1.0).to_vector<float>());
  expectWanted(w.to_vector<float>());
}

TEST_F(Packed, IsUnpackedOnlyWhenItIsRead) {
  train(3);
  std::int64_t before = memory(cpu()).in_use;
  train(1);
  EXPECT_EQ(memory(cpu()).in_use, before) << "a step replaces the packed elements";
  w.to_vector<float>();
  EXPECT_GE(memory(cpu()).in_use, before + kOut * kIn * 4) << "the row-major elements";
  train(1);
  EXPECT_EQ(memory(cpu()).in_use, before);
}

TEST_F(Packed, FollowsWritesInPlace) {
  train(2);
  w *= 0.5;
  for (double &element : wanted)
    element *= 0.5;
  train(1);
  w[{0}] = 2.0;
  std::fill_n(wanted.begin(), kIn, 2.0);
  train(1);
  zeros({kOut, kIn}).copy_to(w);
  std::fill(wanted.begin(), wanted.end(), 0.0);
  train(2);
  expectWanted(w.to_vector<float>());
}

TEST_F(Packed, FollowsWritesOfAnotherLibrary) {
  train(1);
  DLManagedTensor *shared = to_dlpack(w);
  float *elements = static_cast<float *>(shared->dl_tensor.data);
  expectWanted({elements, elements + wanted.size()});
  for (float factor : {3.f, 0.25f}) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      elements[i] *= factor;
      wanted[i] *= factor;
    }
    Array next = update(w, x, y);
    std::vector<double> after = wanted;
    step(after, elementsOfX, elementsOfY, 0.01);
    std::vector<float> got = next.to_vector<float>();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], after[i], 1e-5) << i;
  }
  shared->deleter(shared);
}

TEST_F(Packed, MovesToAnotherDevice) {
  train(2);
  for (Array *each : {&w, &x, &y})
    *each = each->to(gpu(0));
  train(2);
  expectWanted(w.to_vector<float>());
}

TEST_F(Packed, IsReadByManyThreads) {
  train(1);
  std::vector<float> sums(4);
  std::vector<std::thread> threads;
  for (float &sum : sums)
    threads.emplace_back([&] {
      Array next = update(w, x, y);
      sum = float(w.sum().item()) + float(next.sum().item());
    });
  for (std::thread &thread : threads)
    thread.join();
  for (float sum : sums)
    EXPECT_EQ(sum, sums.front());
  expectWanted(w.to_vector<float>());
}

} // namespace
} // namespace sluice
