// Items 11 to 20 of the acceptance checklist, which are about arrays: on the host, on virtual accelerators and on
// emulated CUDA devices.
#include "sluice/array.h"
#include "tests/cuda_emu/Doubles.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <thread>

namespace sluice {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// The devices of the process, from the parameter.
class OnDevices : public testing::TestWithParam<const char *> {
protected:
  static void SetUpTestSuite() { test::useCudaDoubles(/*devices=*/2); }
  void SetUp() override { set_devices(GetParam()); }

  std::vector<Device> all() const {
    std::vector<Device> devices{cpu()};
    for (int i = 0; i < gpu_count(); ++i)
      devices.push_back(gpu(i));
    return devices;
  }
};

/// The copies between devices so far.
std::int64_t copies() {
  std::int64_t count = 0;
  for (const ArrayTransfers &pair : transfers())
    count += pair.copies;
  return count;
}

std::string nameOf(const testing::TestParamInfo<const char *> &info) {
  std::string list = info.param;
  return list == "cpu" ? "Host" : list.find("sim") != std::string::npos ? "Virtual" : "EmulatedCuda";
}

#define SLUICE_ON_DEVICES(name)                                                                                        \
  using name = OnDevices;                                                                                              \
  INSTANTIATE_TEST_SUITE_P(Devices, name, testing::Values("cpu", "cpu,sim:0,sim:1", "cpu,cuda:0,cuda:1"), nameOf)

//===- creation ---------------------------------------------------------------------------------------------------===//

SLUICE_ON_DEVICES(checklist_11_integers_on_the_default_device);

TEST_P(checklist_11_integers_on_the_default_device, AndTheArrayReportsIt) {
  EXPECT_EQ(array({1, 2, 3}).device(), cpu());
  for (const Device &device : all()) {
    DefaultDevice scope(device);
    Array x = array({1, 2, 3});
    EXPECT_EQ(x.dtype(), i32);
    EXPECT_EQ(x.device(), device);
    EXPECT_THAT(x.to_vector<int>(), ElementsAre(1, 2, 3));
  }
  EXPECT_EQ(array({1, 2, 3}).device(), cpu());
}

SLUICE_ON_DEVICES(checklist_12_creation_copies_nothing);

TEST_P(checklist_12_creation_copies_nothing, OnAnyDevice) {
  for (const Device &device : all()) {
    std::int64_t before = copies();
    std::vector<Array> made{zeros({2, 3}, f32, device), ones({2, 3}, f64, device), full({2}, 7, i32, device),
                            empty({4, 4}, f32, device), arange(5, i64, device)};
    for (const Array &x : made)
      EXPECT_EQ(x.device(), device);
    wait_all();
    EXPECT_EQ(copies(), before);
    EXPECT_THAT(made[0].to_vector<float>(), Each(0));
    EXPECT_THAT(made[1].to_vector<double>(), Each(1));
    EXPECT_THAT(made[2].to_vector<int>(), Each(7));
    EXPECT_THAT(made[4].to_vector<std::int64_t>(), ElementsAre(0, 1, 2, 3, 4));
  }
}

SLUICE_ON_DEVICES(checklist_13_memory_counts);

TEST_P(checklist_13_memory_counts, OfOneDeviceAndReused) {
  for (const Device &device : all()) {
    std::vector<std::int64_t> others;
    for (const Device &other : all())
      others.push_back(memory(other).in_use);
    zeros({512, 1024}, f32, device); // allocates a block and frees it
    wait_all();
    ArrayMemoryCounts before = memory(device);
    Array x = empty({512, 1024}, f32, device);
    EXPECT_EQ(memory(device).in_use - before.in_use, 512 * 1024 * 4);
    for (size_t i = 0; i < others.size(); ++i)
      if (all()[i] != device)
        EXPECT_EQ(memory(all()[i]).in_use, others[i]);
    x = Array();
    EXPECT_EQ(memory(device).in_use, before.in_use);
    for (int i = 0; i < 100; ++i)
      x = full({512, 1024}, i, f32, device);
    wait_all();
    EXPECT_LE(memory(device).allocations, before.allocations + 1) << "two arrays exist during an assignment";
    EXPECT_EQ((x[{511, 1023}].item()), 99);
  }
}

TEST(checklist_14_out_of_memory, NamesTheDeviceAndTheProcessGoesOn) {
  set_devices("cpu,sim:0", {{"sim", "memory=64MB"}});
  Array first = ones({1 << 20}, f32, gpu(0)); // 4 MB
  try {
    ones({1 << 25}, f32, gpu(0)); // 128 MB
    FAIL() << "more memory than there is";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), 5);
    EXPECT_THAT(error.what(), HasSubstr("134217728 bytes"));
    EXPECT_THAT(error.what(), HasSubstr("sim:0"));
    EXPECT_THAT(error.what(), HasSubstr("free"));
    EXPECT_THAT(error.what(), HasSubstr("ChecklistTest.cpp"));
  }
  EXPECT_EQ((first + 1.0).sum().item(), 2 << 20);
  Array large = empty({1 << 23}, f32, gpu(0)); // 32 MB
  large = Array();
  Array other = empty({9 << 20}, f32, gpu(0)); // 36 MB: unused blocks of other sizes go back to the driver
  EXPECT_EQ(other.numel(), 9 << 20);
}

//===- printing ---------------------------------------------------------------------------------------------------===//

SLUICE_ON_DEVICES(checklist_15_printing);

TEST_P(checklist_15_printing, CopiesOnceFromAnAccelerator) {
  for (const Device &device : all()) {
    Array x = ones({2, 3}, f32, device);
    wait_all();
    std::int64_t before = copies();
    EXPECT_EQ(x.str(), "(2, 3) " + device.str() + " float32\n[[1., 1., 1.],\n [1., 1., 1.]]");
    EXPECT_EQ(copies() - before, device == cpu() ? 0 : 1);
  }
}

//===- dtypes and elements in place -------------------------------------------------------------------------------===//

SLUICE_ON_DEVICES(checklist_17_new_arrays_inherit);

TEST_P(checklist_17_new_arrays_inherit, DTypeAndDevice) {
  for (const Device &device : all()) {
    Array x = ones({2}, f64, device), y = x.new_zeros({2, 3});
    EXPECT_EQ(y.dtype(), f64);
    EXPECT_EQ(y.device(), device);
    Array half = empty({1}, f16, device).new_full({2, 3}, 1.4);
    EXPECT_EQ(half.dtype(), f16);
    EXPECT_THAT(half.str(), HasSubstr("1.4004"));
    EXPECT_THAT(half.str(), HasSubstr(device.str() + " float16"));
  }
}

SLUICE_ON_DEVICES(checklist_18_in_place);

TEST_P(checklist_18_in_place, HandlesSeeTheNewElements) {
  for (const Device &device : all()) {
    Array x = empty({3}, f32, device), same = x, sum = x.fill_(1.0) + 1.0;
    EXPECT_THAT(same.to_vector<float>(), Each(1));
    x += x;
    EXPECT_THAT(same.to_vector<float>(), Each(2));
    EXPECT_THAT(sum.to_vector<float>(), Each(2)) << "results of earlier calls do not change";
    x.copy_(array({5}, device == cpu() ? try_gpu() : cpu())); // another dtype and device
    EXPECT_THAT(same.to_vector<float>(), Each(5));
    Array reshaped = x.reshape({3, 1});
    x.zero_();
    EXPECT_THAT(reshaped.to_vector<float>(), Each(5));
  }
}

SLUICE_ON_DEVICES(checklist_19_as_numpy);

TEST_P(checklist_19_as_numpy, BroadcastReshapeAndSlice) {
  for (const Device &device : all()) {
    Array x = arange(12, f32, device).reshape({3, 4}), row = array({10.f, 20.f, 30.f, 40.f}, device);
    EXPECT_THAT((x + row).to_vector<float>(), ElementsAre(10, 21, 32, 43, 14, 25, 36, 47, 18, 29, 40, 51));
    EXPECT_THAT((x + row.reshape({4, 1}).slice(0, 0, 3)).shape(), ElementsAre(3, 4));
    EXPECT_THAT(Array(x[{ellipsis, -1}]).to_vector<float>(), ElementsAre(3, 7, 11));
    EXPECT_THAT(Array(x[{slice(0, 3, 2), slice(1, 3)}]).to_vector<float>(), ElementsAre(1, 2, 9, 10));
    EXPECT_THAT(Array(x[{newaxis, 1}]).shape(), ElementsAre(1, 4));
    x[{slice(0, 3, 2), slice(1, 4, 2)}] = array({{-1.f, -2.f}, {-3.f, -4.f}}, device);
    EXPECT_THAT(x.to_vector<float>(), ElementsAre(0, -1, 2, -2, 4, 5, 6, 7, 8, -3, 10, -4));
    EXPECT_THAT(x[lt(x, 0.0)].to_vector<float>(), ElementsAre(-1, -2, -3, -4));
    EXPECT_THAT(nonzero(lt(x, 0.0)).to_vector<std::int64_t>(), ElementsAre(0, 1, 0, 3, 2, 1, 2, 3));
    EXPECT_THAT(unique(array({3, 1, 3, 2, 1}, device)).to_vector<int>(), ElementsAre(1, 2, 3));
    EXPECT_THAT(x.t().shape(), ElementsAre(4, 3));
  }
}

TEST(checklist_19_as_numpy, WrongIndicesFail) {
  set_devices("cpu");
  Array x = zeros({3, 4});
  auto textOf = [](auto body) {
    try {
      body();
      return std::string("no error");
    } catch (const Error &error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(textOf([&] { Array y = x[{3}]; }), HasSubstr("slice: 3 is out of range for dimension 0 of size 3"));
  EXPECT_THAT(textOf([&] { Array y = x[{0, 0, 0}]; }), HasSubstr("3 indices for an array of 2 dimensions"));
  EXPECT_THAT(textOf([&] { Array y = x[{slice(0, 2, 0)}]; }), HasSubstr("the step must be positive: 0"));
  EXPECT_THAT(textOf([&] { x[{0}] = zeros({3}); }), HasSubstr("ChecklistTest.cpp"));
  EXPECT_THAT(textOf([&] { x + zeros({2, 4}); }), HasSubstr("[3, 4]"));
  EXPECT_THAT(textOf([&] { x + zeros({3, 4}, f64); }), HasSubstr("f64"));
}

//===- random numbers ---------------------------------------------------------------------------------------------===//

SLUICE_ON_DEVICES(checklist_20_random_keys);

TEST_P(checklist_20_random_keys, GiveTheNumbersOfJax) {
  std::vector<float> printed{0.57450044f, 0.09968603f, 0.7419659f, 0.8941783f, 0.59656656f, 0.45325184f};
  std::vector<float> normal;
  for (const Device &device : all()) {
    Array key = random::key(0, device), x = random::uniform(key, {2, 3});
    EXPECT_EQ(x.device(), device);
    EXPECT_EQ(x.to_vector<float>(), printed);
    EXPECT_EQ(random::uniform(key, {2, 3}).to_vector<float>(), printed);
    Array keys = random::split(key);
    EXPECT_THAT(random::uniform(keys[{0}], {6}).to_vector<float>(),
                Not(random::uniform(keys[{1}], {6}).to_vector<float>()));
    Array y = empty({1000}, f32, device).normal_(key);
    if (device == cpu())
      normal = y.to_vector<float>();
    EXPECT_EQ(y.to_vector<float>(), normal) << "the same bits on every device";
    Array z = empty({20000}, f64, device).uniform_(keys[{1}], -1, 1);
    EXPECT_NEAR(z.mean().item(), 0, 0.02);
    EXPECT_NEAR(z.std().item(), 0.57735, 0.01);
    EXPECT_GE(z.min().item(), -1);
    EXPECT_LT(z.max().item(), 1);
  }
}

//===- several threads --------------------------------------------------------------------------------------------===//

using Threads = OnDevices;
INSTANTIATE_TEST_SUITE_P(Devices, Threads, testing::Values("cpu,sim:0,sim:1", "cpu,cuda:0,cuda:1"), nameOf);

TEST_P(Threads, EachDrivesADevice) {
  std::vector<float> sums(2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      Array x = full({64, 64}, i + 1, f32, gpu(i));
      for (int step = 0; step < 20; ++step)
        x = x * 0.5 + 1.0;
      sums[size_t(i)] = float(x.sum().item());
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int i = 0; i < 2; ++i)
    EXPECT_NEAR(sums[size_t(i)], 2 * 64 * 64, 0.1);
}

TEST_P(Threads, ReadOneArray) {
  Array x = arange(1000, f32, gpu(0)) * 2.0;
  std::vector<double> sums(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < sums.size(); ++i)
    threads.emplace_back([&, i] { sums[i] = (x + double(i)).sum().item(); });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < sums.size(); ++i)
    EXPECT_EQ(sums[i], 999000 + 1000 * double(i));
}

TEST_P(Threads, PassArraysOn) {
  Array x;
  std::thread([&] { x = ones({256, 256}, f32, gpu(0)) * 3.0; }).join();
  Array y = (x + x).to(gpu(1));
  double sum = 0;
  std::thread([&] { sum = (y * 2.0).sum().item(); }).join();
  EXPECT_EQ(sum, 12 * 256 * 256);
}

} // namespace
} // namespace sluice
