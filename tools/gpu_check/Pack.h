// A pack of kernels: device code, launch parameters of each kernel, and the reference interpreter's results. Operands
// are pseudo-random and drawn again at run time, so the pack does not store them.
//
//   lenet.json     the kernels, and the offsets of their figures
//   lenet.bin      the image of the device code, then pairs of an expected value and the allowed error
//
// Of large results a fixed sample is kept; see `sampledElement`.
#pragma once

#include "runtime/plan/Layout.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::gpu_check {

using runtime::DType;

/// The distribution of an operand: the reals, or the integers, of [low, high).
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

/// The expected values of a result: `count` pairs of doubles at `offset` in the binary file.
struct Expected {
  int64_t offset = 0, count = 0;
};

/// One call: its rows, and the expected values of each result.
struct PackedCall {
  int64_t rows = 0;
  std::vector<Expected> results;
};

struct PackedKernel {
  std::string name, place;           ///< "conv2d_add_relu", "lenet.cpp:11:25"
  std::string function;              ///< in the image
  std::vector<std::byte> parameters; ///< for the run half
  int64_t workspaceBytes = 0;
  std::vector<PackedBuffer> operands, results;
  std::vector<PackedCall> calls;
};

struct Pack {
  std::string model;
  int64_t capacity = 0;
  int64_t imageBytes = 0; ///< at the start of the binary file
  std::vector<PackedKernel> kernels;
};

/// Throw std::runtime_error if the file cannot be read or is malformed.
Pack readPack(const std::string &path);
std::string readFile(const std::string &path);
std::string writePack(const Pack &pack);

/// The shape in a call with `rows` rows.
runtime::Shape shapeOf(const PackedBuffer &buffer, int64_t rows);

/// The positions of the elements of a call with `rows` rows in a buffer for `capacity` rows, by their row-major index.
class Places {
public:
  Places(const PackedBuffer &buffer, int64_t rows, int64_t capacity);

  int64_t elements() const { return elements_; }
  int64_t operator[](int64_t element) const { return isRowMajor ? element : find(element); }

private:
  int64_t find(int64_t element) const;

  runtime::Shape shape, sizes; // of the call; of the physical dimensions
  runtime::Layout layout;
  int64_t elements_;
  bool isRowMajor; // a position equals the element's index
};

/// The elements of operand `operand` of kernel number `kernel`, equal on every machine, rounded to their type.
class DrawnElements {
public:
  DrawnElements(size_t kernel, size_t operand, const PackedBuffer &buffer);
  double operator[](int64_t index) const;

private:
  uint64_t seed;
  DType dtype;
  Range range;
};

/// The number of sampled elements of a result with `elements` elements, and the index of sample `number`. Small results
/// are sampled completely, others once in each of equal intervals, including the first and the last element.
int64_t sampleSize(int64_t elements);
int64_t sampledElement(int64_t elements, int64_t number);

} // namespace sluice::gpu_check
