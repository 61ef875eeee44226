// DLPack exchange; this test plays the other library.
#include "sluice/dlpack.h"

#include "tests/cuda_emu/Doubles.h"

#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

namespace sluice {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// A tensor of another library, with memory aligned to 64 bytes.
template <class Managed> struct Foreign {
  std::vector<std::byte> memory;
  std::vector<int64_t> shape, strides;
  Managed managed = {};
  int released = 0;

  Foreign(DLDataType type, std::vector<int64_t> its, size_t bytes) : memory(bytes + 64), shape(std::move(its)) {
    managed.manager_ctx = this;
    managed.deleter = [](Managed *self) { ++static_cast<Foreign *>(self->manager_ctx)->released; };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>)
      managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed.dl_tensor = {address(), {kDLCPU, 0}, int32_t(shape.size()), type, shape.data(), nullptr, 0};
  }

  std::byte *address() { return memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64; }
  void setStrides(std::vector<int64_t> its) {
    strides = std::move(its);
    managed.dl_tensor.strides = strides.data();
  }
  template <class T> void set(std::vector<T> values) {
    std::memcpy(address(), values.data(), values.size() * sizeof(T));
  }
};
using Unversioned = Foreign<DLManagedTensor>;
using Versioned = Foreign<DLManagedTensorVersioned>;

constexpr DLDataType kFloat{kDLFloat, 32, 1};

template <class Managed> void release(Managed *managed) { managed->deleter(managed); }

/// The address of an array's elements.
void *addressOf(const Array &x) {
  DLManagedTensorVersioned *managed = to_dlpack_versioned(x);
  void *address = managed->dl_tensor.data;
  release(managed);
  return address;
}

class DLPack : public testing::Test {
protected:
  static void SetUpTestSuite() { set_devices("cpu,sim:0,sim:1"); }
};

TEST_F(DLPack, StructsHaveTheLayoutOfTheSpecification) {
  EXPECT_EQ(sizeof(DLDevice), 8u);
  EXPECT_EQ(sizeof(DLDataType), 4u);
  EXPECT_EQ(sizeof(DLTensor), 48u);
  EXPECT_EQ(offsetof(DLTensor, dtype), 20u);
  EXPECT_EQ(offsetof(DLTensor, byte_offset), 40u);
  EXPECT_EQ(sizeof(DLManagedTensor), 64u);
  EXPECT_EQ(offsetof(DLManagedTensorVersioned, flags), 24u);
  EXPECT_EQ(offsetof(DLManagedTensorVersioned, dl_tensor), 32u);
}

//===- export -----------------------------------------------------------------------------------------------------===//

TEST_F(DLPack, ExportDescribesTheArray) {
  Array x = arange(24, f32).reshape({2, 3, 4}).copy_to(cpu());
  DLManagedTensor *managed = to_dlpack(x);
  const DLTensor &tensor = managed->dl_tensor;
  EXPECT_EQ(tensor.device.device_type, kDLCPU);
  EXPECT_EQ(tensor.device.device_id, 0);
  EXPECT_EQ(tensor.ndim, 3);
  EXPECT_THAT(std::vector(tensor.shape, tensor.shape + 3), ElementsAre(2, 3, 4));
  EXPECT_THAT(std::vector(tensor.strides, tensor.strides + 3), ElementsAre(12, 4, 1));
  EXPECT_EQ(tensor.byte_offset, 0u);
  EXPECT_EQ(static_cast<float *>(tensor.data)[23], 23);
  release(managed);
}

TEST_F(DLPack, ExportNamesEachDType) {
  auto typeOf = [](DType dtype) {
    DLManagedTensor *managed = to_dlpack(empty({2}, dtype));
    DLDataType type = managed->dl_tensor.dtype;
    release(managed);
    EXPECT_EQ(type.lanes, 1);
    return std::pair(int(type.code), int(type.bits));
  };
  EXPECT_EQ(typeOf(f32), std::pair(int(kDLFloat), 32));
  EXPECT_EQ(typeOf(f64), std::pair(int(kDLFloat), 64));
  EXPECT_EQ(typeOf(f16), std::pair(int(kDLFloat), 16));
  EXPECT_EQ(typeOf(bf16), std::pair(int(kDLBfloat), 16));
  EXPECT_EQ(typeOf(i32), std::pair(int(kDLInt), 32));
  EXPECT_EQ(typeOf(i64), std::pair(int(kDLInt), 64));
  EXPECT_EQ(typeOf(u8), std::pair(int(kDLUInt), 8));
  EXPECT_EQ(typeOf(boolean), std::pair(int(kDLBool), 8));
}

TEST_F(DLPack, EachDTypeReturnsInTheSameMemory) {
  for (DType dtype : {f32, f64, f16, bf16, i32, i64, u8, boolean})
    for (const Device &device : {cpu(), gpu(1)}) {
      Array x = array({1.f, 0.f, 1.f}, device).to(dtype);
      void *address = addressOf(x);
      Array old = from_dlpack(to_dlpack(x)), versioned = from_dlpack(to_dlpack_versioned(x));
      for (const Array &y : {old, versioned}) {
        EXPECT_EQ(y.dtype(), dtype);
        EXPECT_EQ(y.device(), device);
        EXPECT_EQ(addressOf(y), address);
        EXPECT_THAT(y.to(f32).to_vector<float>(), ElementsAre(1, 0, 1));
      }
    }
}

TEST_F(DLPack, ExportOfAnAcceleratorIsAnExtensionDevice) {
  DLManagedTensorVersioned *managed = to_dlpack_versioned(ones({4}, f32, gpu(1)) * 3.0);
  EXPECT_EQ(managed->dl_tensor.device.device_type, kDLExtDev);
  EXPECT_EQ(managed->dl_tensor.device.device_id, 1);
  EXPECT_EQ(managed->flags, 0u);
  EXPECT_THAT(from_dlpack(managed).to_vector<float>(), Each(3));
}

TEST_F(DLPack, EmptyArraysAndScalarsPass) {
  Array scalar = from_dlpack(to_dlpack(array(2.5f)));
  EXPECT_EQ(scalar.dim(), 0);
  EXPECT_EQ(scalar.item(), 2.5);
  DLManagedTensor *managed = to_dlpack(empty({0, 3}));
  EXPECT_EQ(managed->dl_tensor.data, nullptr);
  EXPECT_THAT(from_dlpack(managed).shape(), ElementsAre(0, 3));
}

TEST_F(DLPack, MemoryLivesUntilBothSidesEnd) {
  int64_t before = memory(cpu()).in_use;
  Array x = array({1.f, 2.f});
  DLManagedTensor *managed = to_dlpack(x);
  x = Array();
  EXPECT_EQ(static_cast<float *>(managed->dl_tensor.data)[1], 2);
  EXPECT_GT(memory(cpu()).in_use, before);
  release(managed);
  EXPECT_EQ(memory(cpu()).in_use, before);

  x = array({1.f, 2.f});
  release(to_dlpack_versioned(x));
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(1, 2));
  x = Array();
  EXPECT_EQ(memory(cpu()).in_use, before);
}

TEST_F(DLPack, WritesInPlaceAreSeenByTheOtherSide) {
  for (const Device &device : {cpu(), gpu(0)}) {
    Array x = array({1.f, 2.f, 3.f}, device), y = from_dlpack(to_dlpack(x));
    auto seen = [&] { return y.to_vector<float>(); };
    x.fill_(4);
    EXPECT_THAT(seen(), Each(4));
    x += 1.0;
    EXPECT_THAT(seen(), Each(5));
    x.copy_(array({7.0, 8.0, 9.0}));
    EXPECT_THAT(seen(), ElementsAre(7, 8, 9));
    x[{1}] = 0.0;
    EXPECT_THAT(seen(), ElementsAre(7, 0, 9));
    array({1.f, 1.f, 2.f}, gpu(1)).copy_to(x);
    EXPECT_THAT(seen(), ElementsAre(1, 1, 2));
    y.fill_(6);
    EXPECT_THAT(x.to_vector<float>(), Each(6));
  }
}

TEST_F(DLPack, WritesThroughThePointerAreSeenByTheArray) {
  Array x = array({1.f, 2.f, 3.f});
  DLManagedTensor *managed = to_dlpack(x);
  auto *elements = static_cast<float *>(managed->dl_tensor.data);
  elements[0] = 6;
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(6, 2, 3));
  x += 1.0;
  EXPECT_EQ(elements[2], 4);
  release(managed);
}

TEST_F(DLPack, ResultsDoNotSeeWritesInPlace) {
  Array x = array({1.f, 2.f});
  Array before = x.reshape({2, 1}), detachedBefore = x.detach();
  DLManagedTensor *managed = to_dlpack(x);
  Array after = x.reshape({2, 1}), detachedAfter = x.detach();
  x.fill_(9);
  static_cast<float *>(managed->dl_tensor.data)[1] = 8;
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(9, 8));
  for (const Array &result : {before, detachedBefore, after, detachedAfter})
    EXPECT_THAT(result.to_vector<float>(), ElementsAre(1, 2));
  release(managed);
}

TEST_F(DLPack, CopiesInPlaceDoNotShareTheSource) {
  Array x = array({1.f, 2.f}), y = zeros({2}), z = zeros({2}), empty = sluice::empty({2});
  DLManagedTensor *managed = to_dlpack(x);
  y.copy_(x);
  x.copy_to(z);
  x.copy_(x);
  empty.copy_(x.to(f32));
  static_cast<float *>(managed->dl_tensor.data)[0] = 9;
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(9, 2));
  for (const Array &copy : {y, z, empty})
    EXPECT_THAT(copy.to_vector<float>(), ElementsAre(1, 2));
  release(managed);
}

TEST_F(DLPack, ExportOfUnsharedMemoryCopiesNothing) {
  Array x = array({1.f, 2.f});
  Array same = x;
  int64_t before = memory(cpu()).in_use;
  DLManagedTensor *first = to_dlpack(x), *second = to_dlpack(same);
  EXPECT_EQ(first->dl_tensor.data, second->dl_tensor.data);
  EXPECT_EQ(memory(cpu()).in_use, before);
  release(first);
  release(second);
}

TEST_F(DLPack, BackwardReportsOperandsThatChanged) {
  Array x = array({1.f, 2.f}), factor = array({3.f, 4.f});
  DLManagedTensor *managed = to_dlpack(factor);
  x.attach_grad();
  auto tape = record();
  Array unchanged = x * factor, changed = x * factor;
  unchanged.backward();
  EXPECT_THAT(x.grad().to_vector<float>(), ElementsAre(3, 4));
  factor.fill_(0);
  try {
    changed.backward();
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.message(), HasSubstr("backward: operand 2 [2] of mul was changed in place"));
  }
  release(managed);
}

//===- import -----------------------------------------------------------------------------------------------------===//

TEST_F(DLPack, ImportTakesTheMemoryOver) {
  Unversioned given(kFloat, {2, 3}, 24);
  given.set<float>({1, 2, 3, 4, 5, 6});
  Array x = from_dlpack(&given.managed), other = x;
  EXPECT_THAT(x.shape(), ElementsAre(2, 3));
  EXPECT_THAT((x * 2.0).to_vector<float>(), ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_EQ(addressOf(x), given.address());
  x.fill_(7);
  EXPECT_EQ(reinterpret_cast<float *>(given.address())[5], 7);
  x = Array();
  EXPECT_EQ(given.released, 0);
  other = Array();
  EXPECT_EQ(given.released, 1);
}

/// Sanitizers report uses after the deleter.
TEST_F(DLPack, NothingIsUsedAfterItsDeleter) {
  auto make = [] {
    auto *given = new Unversioned(kFloat, {2, 2}, 16);
    given->set<float>({1, 2, 3, 4});
    given->managed.deleter = [](DLManagedTensor *self) { delete static_cast<Unversioned *>(self->manager_ctx); };
    return given;
  };
  Array shared = from_dlpack(&make()->managed);
  Array result = shared.reshape({4}), there = shared.to(gpu(0)), sum = shared + shared;
  shared = Array();
  EXPECT_THAT(result.to_vector<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(there.to_vector<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(sum.to_vector<float>(), ElementsAre(2, 4, 6, 8));

  Unversioned *given = make();
  given->setStrides({1, 2});
  Array copied = from_dlpack(&given->managed);
  EXPECT_THAT(copied.to_vector<float>(), ElementsAre(1, 3, 2, 4));
}

TEST_F(DLPack, ImportedMemoryMayBeExported) {
  Unversioned given(kFloat, {2}, 8);
  Array x = from_dlpack(&given.managed);
  DLManagedTensorVersioned *managed = to_dlpack_versioned(x);
  EXPECT_EQ(managed->dl_tensor.data, given.address());
  x = Array();
  EXPECT_EQ(given.released, 0);
  release(managed);
  EXPECT_EQ(given.released, 1);
}

TEST_F(DLPack, ADeleterMayBeNull) {
  Unversioned given(kFloat, {2}, 8);
  given.set<float>({1, 2});
  given.managed.deleter = nullptr;
  EXPECT_THAT(from_dlpack(&given.managed).to_vector<float>(), ElementsAre(1, 2));
}

TEST_F(DLPack, ReadOnlyMemoryIsNotWritten) {
  Versioned given(kFloat, {2}, 8);
  given.set<float>({1, 2});
  given.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  Array x = from_dlpack(&given.managed);
  EXPECT_EQ(addressOf(x), given.address());
  DLManagedTensorVersioned *readOnly = to_dlpack_versioned(x);
  EXPECT_EQ(readOnly->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  release(readOnly);
  array({3.f, 3.f}).copy_to(x);
  EXPECT_THAT(x.to_vector<float>(), Each(3));
  EXPECT_EQ(reinterpret_cast<float *>(given.address())[0], 1);
  EXPECT_EQ(given.released, 1);
}

TEST_F(DLPack, InPlaceMethodsLeaveReadOnlyMemory) {
  Versioned given(kFloat, {2}, 8);
  given.set<float>({1, 2});
  given.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  Array x = from_dlpack(&given.managed);
  x += 1.0;
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(2, 3));
  EXPECT_EQ(reinterpret_cast<float *>(given.address())[0], 1);
}

TEST_F(DLPack, ATensorWithoutFlagsOfReadOnlyMemoryIsACopy) {
  Versioned given(kFloat, {2}, 8);
  given.set<float>({1, 2});
  given.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  Array x = from_dlpack(&given.managed);
  DLManagedTensor *managed = to_dlpack(x);
  EXPECT_NE(managed->dl_tensor.data, given.address());
  static_cast<float *>(managed->dl_tensor.data)[0] = 5;
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(5, 2));
  release(managed);
}

TEST_F(DLPack, MemoryOfACopyBelongsToTheArray) {
  Versioned given(kFloat, {2}, 8);
  given.set<float>({1, 2});
  given.managed.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
  Array x = from_dlpack(&given.managed);
  x.fill_(3);
  EXPECT_EQ(given.released, 1); // fill_ gives the array new memory
  EXPECT_THAT(x.to_vector<float>(), Each(3));
}

struct StrideCase {
  const char *what;
  std::vector<int64_t> shape, strides;
  int64_t first;
};

TEST_F(DLPack, AnyStridesAreCopied) {
  const StrideCase cases[] = {
      {"transposed", {4, 3}, {1, 4}, 0},     {"every second", {2, 2}, {4, 2}, 1},    {"reversed", {3, 4}, {-4, -1}, 11},
      {"reversed rows", {3, 4}, {-4, 1}, 8}, {"repeated", {3, 4}, {0, 1}, 4},        {"one element", {5}, {0}, 3},
      {"permuted", {2, 2, 3}, {3, 6, 1}, 0}, {"backward steps", {2, 3}, {-6, 2}, 6},
  };
  for (const StrideCase &each : cases) {
    SCOPED_TRACE(each.what);
    Unversioned given({kDLInt, 64, 1}, each.shape, 12 * 8);
    given.set<int64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    given.setStrides(each.strides);
    given.managed.dl_tensor.byte_offset = uint64_t(8 * each.first);
    std::vector<int64_t> expected{each.first};
    for (size_t dim = 0; dim < each.shape.size(); ++dim) {
      std::vector<int64_t> wider;
      for (int64_t element : expected)
        for (int64_t i = 0; i < each.shape[dim]; ++i)
          wider.push_back(element + i * each.strides[dim]);
      expected = wider;
    }
    Array x = from_dlpack(&given.managed);
    EXPECT_EQ(given.released, 1);
    EXPECT_EQ(x.shape(), each.shape);
    EXPECT_EQ(x.to_vector<int64_t>(), expected);
    x.fill_(0);
    EXPECT_EQ(reinterpret_cast<int64_t *>(given.address())[11], 11);
  }
}

TEST_F(DLPack, StridesOfSingleRowsDoNotMatter) {
  Unversioned given(kFloat, {1, 3, 1}, 12);
  given.setStrides({77, 1, -5});
  Array x = from_dlpack(&given.managed);
  EXPECT_EQ(addressOf(x), given.address());
}

TEST_F(DLPack, ElementsThatAreNotAlignedAreCopied) {
  Unversioned given(kFloat, {2}, 16);
  float values[] = {2, 3};
  std::memcpy(given.address() + 2, values, sizeof values);
  given.managed.dl_tensor.byte_offset = 2;
  Array x = from_dlpack(&given.managed);
  EXPECT_EQ(given.released, 1);
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(2, 3));
}

TEST_F(DLPack, KernelsReadElementsAtAnyMultipleOfTheirSize) {
  Unversioned given(kFloat, {1001}, 1001 * 4 + 4);
  for (int i = 0; i < 1001; ++i)
    reinterpret_cast<float *>(given.address() + 4)[i] = float(i % 16); // sums are exact
  given.managed.dl_tensor.byte_offset = 4;
  Array x = from_dlpack(&given.managed);
  EXPECT_EQ(addressOf(x), given.address() + 4);
  EXPECT_EQ((x + x).sum().item(), 14952);
  EXPECT_EQ(matmul(x.reshape({1, 1001}), x.reshape({1001, 1})).item(), 77084);
  EXPECT_EQ(x.max().item(), 15);
}

TEST_F(DLPack, AByteOffsetMayBeShared) {
  Unversioned given(kFloat, {2}, 72);
  reinterpret_cast<float *>(given.address())[16] = 5;
  given.managed.dl_tensor.byte_offset = 64;
  Array x = from_dlpack(&given.managed);
  EXPECT_EQ(addressOf(x), given.address() + 64);
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(5, 0));
}

TEST_F(DLPack, StridesOnAcceleratorsAreCopied) {
  Array x = array({{0, 1, 2}, {3, 4, 5}}, gpu(1));
  DLManagedTensor *managed = to_dlpack(x);
  std::swap(managed->dl_tensor.shape[0], managed->dl_tensor.shape[1]);
  std::swap(managed->dl_tensor.strides[0], managed->dl_tensor.strides[1]);
  Array y = from_dlpack(managed);
  EXPECT_EQ(y.device(), gpu(1));
  EXPECT_THAT(y.shape(), ElementsAre(3, 2));
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(DLPack, ElementsOnAcceleratorsThatAreNotAlignedAreCopied) {
  Array x = array({0, 1, 2, 3}, gpu(1));
  DLManagedTensor *managed = to_dlpack(x);
  managed->dl_tensor.byte_offset = 4;
  managed->dl_tensor.shape[0] = 3;
  std::vector<ArrayTransfers> before = transfers();
  Array y = from_dlpack(managed);
  EXPECT_EQ(transfers(), before); // the device copies
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(1, 2, 3));
}

TEST_F(DLPack, TensorsWithoutElementsMayHaveNoData) {
  Unversioned given(kFloat, {0, 5}, 0);
  given.managed.dl_tensor.data = nullptr;
  given.setStrides({5, 1});
  EXPECT_THAT(from_dlpack(&given.managed).shape(), ElementsAre(0, 5));
  EXPECT_EQ(given.released, 1);
}

TEST_F(DLPack, AScalarHasNoShape) {
  Unversioned given(kFloat, {}, 4);
  given.set<float>({3});
  given.managed.dl_tensor.shape = nullptr;
  Array x = from_dlpack(&given.managed);
  EXPECT_EQ(x.dim(), 0);
  EXPECT_EQ(x.item(), 3);
}

//===- CUDA devices, emulated -------------------------------------------------------------------------------------===//

class DLPackOnCuda : public testing::Test {
protected:
  static void SetUpTestSuite() { test::useCudaDoubles(/*devices=*/2); }
  DLPackOnCuda() {
    set_devices("cpu,sim:0,cuda:1,cuda:0");
    x = array({0, 1, 2, 3, 4, 5}, device);
  }
  static void TearDownTestSuite() { set_devices("cpu"); }

  /// Another library's view of an array on cuda:1.
  struct View : Unversioned {
    DLManagedTensor *owner;

    View(const Array &x, std::vector<int64_t> shape)
        : Unversioned({kDLInt, 32, 1}, std::move(shape), 0), owner(to_dlpack(x)) {
      managed.dl_tensor.data = owner->dl_tensor.data;
      managed.dl_tensor.device = {kDLCUDA, 1};
    }
    ~View() { release(owner); }
  };

  const Device device = gpu(1);
  Array x;
};

TEST_F(DLPackOnCuda, DevicesHaveTheNumberOfTheirBackend) {
  for (int number : {1, 2}) {
    DLManagedTensor *managed = to_dlpack(ones({2}, f32, gpu(number)));
    EXPECT_EQ(managed->dl_tensor.device.device_type, kDLCUDA);
    EXPECT_EQ(managed->dl_tensor.device.device_id, number == 1 ? 1 : 0);
    EXPECT_EQ(from_dlpack(managed).device(), gpu(number));
  }
}

TEST_F(DLPackOnCuda, ForeignMemoryIsShared) {
  View view(x, {2, 3});
  std::vector<ArrayTransfers> before = transfers();
  Array y = from_dlpack(&view.managed);
  EXPECT_EQ(y.device(), device);
  EXPECT_EQ(addressOf(y), addressOf(x));
  y += 1;
  y.wait();
  EXPECT_EQ(transfers(), before);
  EXPECT_THAT(x.to_vector<int>(), ElementsAre(1, 2, 3, 4, 5, 6));
  y = Array();
  EXPECT_EQ(view.released, 1);
}

TEST_F(DLPackOnCuda, AnyThreadMayEndTheLastArray) {
  View view(x, {6});
  Array y = from_dlpack(&view.managed), later = y + 1; // may still read the memory
  std::thread([its = std::exchange(y, Array())]() mutable { its = Array(); }).join();
  EXPECT_EQ(view.released, 1);
  EXPECT_THAT(later.to_vector<int>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(DLPackOnCuda, StridesPassThroughTheHost) {
  View view(x, {3, 2});
  view.setStrides({-1, -3});
  view.managed.dl_tensor.byte_offset = 20;
  Array y = from_dlpack(&view.managed);
  EXPECT_EQ(view.released, 1);
  EXPECT_THAT(y.shape(), ElementsAre(3, 2));
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(5, 2, 4, 1, 3, 0));
}

TEST_F(DLPackOnCuda, MemoryThatIsNotAlignedIsCopiedOnTheDevice) {
  View view(x, {4});
  view.managed.dl_tensor.byte_offset = 8;
  std::vector<ArrayTransfers> before = transfers();
  Array y = from_dlpack(&view.managed);
  EXPECT_EQ(transfers(), before);
  EXPECT_EQ(view.released, 1);
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(2, 3, 4, 5));
}

TEST_F(DLPackOnCuda, DevicesOutsideOfTheProcessAreErrors) {
  set_devices("cpu,sim:0,cuda:0");
  View view(x, {6});
  EXPECT_THROW(from_dlpack(&view.managed), Error);
  EXPECT_EQ(view.released, 0);
}

//===- errors -----------------------------------------------------------------------------------------------------===//

struct DamageCase {
  std::function<void(Versioned &)> damage;
  int code;
  const char *message;
};

TEST_F(DLPack, DamagedTensorsAreErrors) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  const DamageCase cases[] = {
      {[](Versioned &its) { its.managed.version.major = 2; }, 2, "has version 2.1 of DLPack; supported: 1"},
      {[](Versioned &its) { its.managed.dl_tensor.data = nullptr; }, 2, "the data of [2, 3] is null"},
      {[](Versioned &its) { its.managed.dl_tensor.shape = nullptr; }, 2, "the shape of 2 dimensions is null"},
      {[](Versioned &its) { its.managed.dl_tensor.ndim = -1; }, 2, "a tensor cannot have -1 dimensions; at most 64"},
      {[](Versioned &its) { its.managed.dl_tensor.ndim = 1 << 30; }, 2, "a tensor cannot have 1073741824 dimensions"},
      {[](Versioned &its) { its.shape[1] = -3; }, 2, "the shape [2, -3] has a negative size"},
      {[](Versioned &its) { its.shape = {most, most}, its.managed.dl_tensor.shape = its.shape.data(); }, 2,
       "has more than 2^40 elements"},
      {[](Versioned &its) { its.setStrides({most, 1}); }, 2,
       "strides or byte_offset of [2, 3] exceed the address space"},
      {[](Versioned &its) { its.setStrides({most / 4, -most / 4}); }, 2, "exceed the address space"},
      {[](Versioned &its) { its.setStrides({-(int64_t(1) << 60), 1}); }, 2, "exceed the address space"},
      {[](Versioned &its) { its.managed.dl_tensor.byte_offset = ~uint64_t(0); }, 2, "exceed the address space"},
      {[](Versioned &its) { its.managed.dl_tensor.dtype = {kDLComplex, 64, 1}; }, 2,
       "elements of complex64 are not supported; supported: float32, float64, int32, int64, uint8, bool8, float16, "
       "bfloat16"},
      {[](Versioned &its) { its.managed.dl_tensor.dtype = {kDLInt, 8, 1}; }, 2, "elements of int8 are not supported"},
      {[](Versioned &its) { its.managed.dl_tensor.dtype = {kDLFloat, 32, 4}; }, 2, "elements of float32 x 4 are not"},
      {[](Versioned &its) { its.managed.dl_tensor.dtype = {kDLFloat, 32, 0}; }, 2, "elements of float32 x 0 are not"},
      {[](Versioned &its) { its.managed.dl_tensor.dtype = {12, 8, 1}; }, 2, "elements of code 12 with bits 8 are not"},
      {[](Versioned &its) { its.managed.dl_tensor.dtype = {kDLBool, 8, 1}; }, 2,
       "element 0 of the bool tensor [2, 3] is 5, not 0 or 1"},
      {[](Versioned &its) { its.managed.dl_tensor.dtype = {kDLBool, 8, 1}, its.setStrides({1, 2}); }, 2,
       "element 0 of the bool tensor [2, 3] is 5, not 0 or 1"},
      {[](Versioned &its) { its.managed.dl_tensor.device = {kDLCUDA, 3}; }, 4,
       "cannot import memory of device 3 of kind kDLCUDA; set_devices selects the devices of this process"},
      {[](Versioned &its) { its.managed.dl_tensor.device = {kDLExtDev, 0}; }, 4,
       "cannot import memory of device 0 of kind kDLExtDev, which only its own library can access"},
      {[](Versioned &its) { its.managed.dl_tensor.device = {kDLROCM, 1}; }, 4,
       "cannot import memory of device 1 of kind kDLROCM; supported: kDLCPU, kDLCUDA"},
      {[](Versioned &its) { its.managed.dl_tensor.device = {DLDeviceType(-7), 0}; }, 4, "device 0 of kind -7;"},
  };
  for (const DamageCase &each : cases) {
    SCOPED_TRACE(each.message);
    Versioned given(kFloat, {2, 3}, 24);
    std::memset(given.address(), 5, 24);
    each.damage(given);
    try {
      from_dlpack(&given.managed);
      ADD_FAILURE() << "no error";
    } catch (const Error &error) {
      EXPECT_THAT(error.message(), HasSubstr(each.message));
      EXPECT_THAT(error.message(), testing::StartsWith("from_dlpack: "));
      EXPECT_EQ(error.code(), each.code);
      EXPECT_EQ(error.location().file, "DLPackTest.cpp");
    }
    EXPECT_EQ(given.released, 0); // the caller keeps it
  }
}

TEST_F(DLPack, NullPointersAndEmptyHandlesAreErrors) {
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensor *>(nullptr)), Error);
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensorVersioned *>(nullptr)), Error);
  EXPECT_THROW(to_dlpack(Array()), Error);
}

TEST_F(DLPack, ATensorThatDoesNotFitIsAnError) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the sanitizer ends the program instead";
#endif
#endif
  Unversioned given(kFloat, {int64_t(1) << 40}, 4);
  given.setStrides({0});
  try {
    from_dlpack(&given.managed);
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), 5);
  }
  EXPECT_EQ(given.released, 0);
}

} // namespace
} // namespace sluice
