// A pack of kernels: device code, how each kernel is launched, and what the reference interpreter makes of operands that
// are drawn anew where the pack is used, so that they need no room in it.
//
//   lenet.json     the kernels, and where their figures lie
//   lenet.bin      the image of the device code, then pairs of an expected value and how far a result may be from it
//
// Of a result with many elements a fixed sample is kept; see `sampledElement`.
#pragma once

#include "runtime/plan/Layout.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::gpu_check {

using runtime::DType;

/// What an operand is drawn of: the reals, or the whole numbers, of [low, high).
struct Range {
  double low = 0, high = 1;
};

/// An operand, result or workspace; -1 in its shape is the batch dimension.
struct PackedBuffer {
  DType dtype = DType::f32;
  runtime::Shape shape;
  runtime::Layout layout;
  int64_t bytes = 0; ///< for all rows
  Range range;       ///< of an operand
};

/// What is expected of a result: `count` pairs of doubles from `offset` of the binary file on.
struct Expected {
  int64_t offset = 0, count = 0;
};

/// One call: its rows, and what is expected of each result.
struct PackedCall {
  int64_t rows = 0;
  std::vector<Expected> results;
};

struct PackedKernel {
  std::string name, place;           ///< "conv2d_add_relu", "lenet.cpp:11:25"
  std::string function;              ///< of the image
  std::vector<std::byte> parameters; ///< handed to the run half
  int64_t workspaceBytes = 0;
  std::vector<PackedBuffer> operands, results;
  std::vector<PackedCall> calls;
};

struct Pack {
  std::string model;
  int64_t capacity = 0;
  int64_t imageBytes = 0; ///< at the beginning of the binary file
  std::vector<PackedKernel> kernels;
};

/// Throw std::runtime_error where a file cannot be read, or is none.
Pack readPack(const std::string &path);
std::string readFile(const std::string &path);
std::string writePack(const Pack &pack);

/// The shape in a call with `rows` rows.
runtime::Shape shapeOf(const PackedBuffer &buffer, int64_t rows);

/// Where the elements of a call with `rows` rows lie in a buffer for `capacity` rows: by their numbers in row-major order.
class Places {
public:
  Places(const PackedBuffer &buffer, int64_t rows, int64_t capacity);

  int64_t elements() const { return elements_; }
  int64_t operator[](int64_t element) const { return isRowMajor ? element : find(element); }

private:
  int64_t find(int64_t element) const;

  runtime::Shape shape, sizes; // of the call, and of the physical dimensions
  runtime::Layout layout;
  int64_t elements_;
  bool isRowMajor; // a place is its element's number
};

/// The elements of operand `operand` of kernel number `kernel`, the same everywhere, as their type holds them.
class DrawnElements {
public:
  DrawnElements(size_t kernel, size_t operand, const PackedBuffer &buffer);
  double operator[](int64_t index) const;

private:
  uint64_t seed;
  DType dtype;
  Range range;
};

/// Elements that are kept of a result with `elements` elements, and which one is number `number` of them: all of a small
/// one, else one of each of as many stretches, the first and the last element among them.
int64_t sampleSize(int64_t elements);
int64_t sampledElement(int64_t elements, int64_t number);

} // namespace sluice::gpu_check
