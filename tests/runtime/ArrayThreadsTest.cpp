// Threads that call programs on arrays, on virtual accelerators and the host. Under preset tsan this test finds data
// races of the queues, the memory and the events of arrays.
#include "PlanJson.h"
#include "runtime/arrays/ArrayProgram.h"
#include "runtime/base/Status.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <latch>
#include <thread>

using namespace sluice;
using namespace sluice::runtime;
using test::Json;

namespace {

constexpr int64_t elements = 256, bytes = elements * 4;

/// y = 2 x + 1 by two launches on device `device` of the plan, with a transient buffer between them.
Json doublePlan(int device) {
  int arena = device; // the transient arena of each device
  Json x = test::place(arena, bytes), y = test::place(arena, 2 * bytes), between = test::place(arena, 0);
  Json none = Json::array();
  Json plan;
  plan["format"] = planFormat;
  plan["model"] = "double";
  plan["build"] = Json::object();
  plan["capacity"] = 0;
  plan["in_flight"] = 1;
  plan["devices"] = {{{"name", "cpu"}, {"backend", "cpu"}, {"compiled_for", 0}},
                     {{"name", "acc0"}, {"backend", "sim"}, {"compiled_for", 0}}};
  plan["arenas"] = {{{"name", "transient"}, {"device", 0}, {"bytes", 3 * bytes}},
                    {{"name", "transient"}, {"device", 1}, {"bytes", 3 * bytes}}};
  plan["queues"] = {{{"name", "cpu"}, {"device", 0}, {"kind", "compute"}},
                    {{"name", "acc0"}, {"device", 1}, {"kind", "compute"}}};
  plan["states"] = none;
  plan["kernels"] = {test::kernel("twice", device, 0, 100), test::kernel("plus_one", device, 1, 100)};
  Json predict;
  predict["name"] = "predict";
  predict["inputs"] = Json::array({test::value("x", "f32", Json::array({elements}), -1, x, bytes)});
  predict["outputs"] = Json::array({test::value("y", "f32", Json::array({elements}), -1, y, bytes)});
  predict["actions"] = {
      test::launchAction(0, {test::buffer(x, bytes, "r"), test::buffer(between, bytes, "w")}, device, {}),
      test::launchAction(1, {test::buffer(between, bytes, "r"), test::buffer(y, bytes, "w")}, device, {{0, 0}})};
  predict["peak_bytes"] = {3 * bytes, 3 * bytes};
  plan["entries"] = Json::array({predict});
  return plan;
}

void twice(void *const *buffers, int64_t, int64_t, int64_t) {
  const auto *x = static_cast<const float *>(buffers[0]);
  std::transform(x, x + elements, static_cast<float *>(buffers[1]), [](float value) { return 2 * value; });
}
void plusOne(void *const *buffers, int64_t, int64_t, int64_t) {
  const auto *x = static_cast<const float *>(buffers[0]);
  std::transform(x, x + elements, static_cast<float *>(buffers[1]), [](float value) { return value + 1; });
}
const sluice_stage_fn stages[] = {twice, plusOne};

/// The program on the host, or on an accelerator.
ArrayProgram &program(bool isOnHost) {
  static const std::string texts[] = {doublePlan(1).dump(), doublePlan(0).dump()};
  static const sluice_artifact artifacts[] = {test::artifactOf(texts[0], stages), test::artifactOf(texts[1], stages)};
  static ArrayProgram programs[] = {ArrayProgram(artifacts[0], nullptr), ArrayProgram(artifacts[1], nullptr)};
  return programs[isOnHost];
}

const CallSite site{"a test", {}};

class ArrayThreads : public testing::Test {
protected:
  static void SetUpTestSuite() {
    ArrayDevices::ofProcess().setTarget({{"sim", 0}, {"sim", 1}}, {}, SLUICE_BINARY_DIR "/lib/sluice/backends");
    all = ArrayDevices::ofProcess().all();
  }

  static StoragePointer newStorage(ArrayDevice &device) {
    return std::make_shared<Storage>(device, bytes, device.streamOfThread(), "an array");
  }
  static StoragePointer filled(ArrayDevice &device, float value) {
    StoragePointer host = newStorage(*all[0]);
    std::fill_n(reinterpret_cast<float *>(host->address()), elements, value);
    return device.isHost() ? host : copied(host, device);
  }
  static StoragePointer copied(const StoragePointer &from, ArrayDevice &device) {
    StoragePointer to = newStorage(device);
    copyStorage(*from, 0, *to, 0, bytes, site, from);
    return to;
  }
  static StoragePointer doubled(const StoragePointer &x, size_t device) {
    ArrayDevice *devices[] = {all[0], all[std::max<size_t>(device, 1)]};
    return program(device == 0).call({&x, 1}, devices, site).front();
  }
  static float valueOf(const StoragePointer &x) {
    std::vector<float> values(elements);
    readStorage(*x, 0, std::as_writable_bytes(std::span(values)), site);
    EXPECT_EQ(std::count(values.begin(), values.end(), values[0]), elements);
    return values[0];
  }

  static inline std::vector<ArrayDevice *> all;
};

TEST_F(ArrayThreads, EachDrivesItsDevice) {
  std::vector<std::thread> threads;
  std::vector<float> results(6);
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      StoragePointer x = filled(*all[i % 3], 1);
      for (int step = 0; step < 8; ++step)
        x = doubled(x, i % 3);
      results[i] = valueOf(x);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(results, std::vector<float>(6, 511));
}

TEST_F(ArrayThreads, ReadOneArray) {
  StoragePointer x = doubled(filled(*all[1], 3), 1); // its work may still run
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] { results[i] = i % 2 ? valueOf(doubled(x, 1)) : valueOf(copied(x, *all[2])); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(results, (std::vector<float>{7, 15, 7, 15}));
}

// One order is made from the other while other threads read both.
TEST_F(ArrayThreads, ReadOneArrayInTwoOrders) {
  auto columns = std::make_shared<const Packing>(Packing{DType::f32, {elements / 4, 4}, Layout{{1}, {0}}, bytes});
  for (int repetition = 0; repetition < 50; ++repetition) {
    StoragePointer packed = std::make_shared<Storage>(*all[0], columns, all[0]->streamOfThread(), "an array");
    std::fill_n(reinterpret_cast<float *>(packed->packedAddress(columns)), elements, 3.0F);
    std::vector<std::thread> threads;
    std::vector<float> results(6);
    std::latch start(6);
    for (size_t i = 0; i < results.size(); ++i)
      threads.emplace_back([&, i] {
        StoragePointer x = i % 3 == 0 ? filled(*all[0], 3) : packed;
        start.arrive_and_wait();
        results[i] = i % 2 ? valueOf(x) : *reinterpret_cast<const float *>(x->packedAddress(columns));
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(results, std::vector<float>(6, 3));
  }
}

TEST_F(ArrayThreads, FreeMemoryThatOthersUse) {
  std::vector<std::thread> threads;
  std::vector<float> results(2);
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      for (int step = 0; step < 20; ++step) {
        StoragePointer x = filled(*all[1 + i], float(step)), there = copied(x, *all[2 - i]);
        x.reset(); // the copy may not have run
        results[i] += valueOf(doubled(there, 2 - i));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(results, std::vector<float>(2, 2 * 190 + 20));
  for (ArrayDevice *device : all)
    EXPECT_EQ(device->memory().count().inUse, 0);
}

} // namespace
