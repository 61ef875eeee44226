// The plan of an artifact as structs: see PLAN.md for the meaning of every field.
#ifndef SLUICE_RUNTIME_PLAN_H
#define SLUICE_RUNTIME_PLAN_H

#include "runtime/DType.h"
#include "runtime/Layout.h"
#include "sluice/runtime/artifact.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

struct Device {
  std::string name, backend;
  int64_t ordinal = 0;
};

struct Arena {
  std::string name;
  size_t device = 0;
  int64_t bytes = 0;

  bool isConstant() const { return name == "constants"; }
};

/// A place in memory.
struct Slot {
  size_t arena = 0;
  int64_t offset = 0;
};

struct State {
  std::string name, kind;
  std::string of; ///< the parameter of a slot; empty otherwise
  DType dtype = DType::f32;
  Shape shape;
  Layout layout;
  Slot slot;
  int64_t bytes = 0; ///< physical, padding included

  int64_t elements() const { return elementsOf(shape); }
  int64_t logicalBytes() const { return elements() * static_cast<int64_t>(sizeOf(dtype)); }
  bool isWeight() const { return kind == "parameter" || kind == "statistic"; }
};

struct Stage {
  size_t function = 0;
  int64_t tasks = 1, rowsPerTask = 0;

  /// The number of tasks of a call with `rows` rows.
  int64_t tasksFor(int64_t rows) const {
    return rowsPerTask == 0 ? tasks : tasks * ((rows + rowsPerTask - 1) / rowsPerTask);
  }
};

struct Cost {
  double flops = 0, flopsPerRow = 0, bytes = 0, bytesPerRow = 0;

  double flopsFor(int64_t rows) const { return flops + flopsPerRow * static_cast<double>(rows); }
  double bytesFor(int64_t rows) const { return bytes + bytesPerRow * static_cast<double>(rows); }
};

struct Kernel {
  std::string name, source;
  std::vector<std::string> ops;
  std::vector<Stage> stages;
  Cost cost;
  double lanes = 1; ///< share of the vector lanes that the shape can fill
};

/// An input or output of an entry point.
struct Value {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  int rowsDim = -1; ///< the dimension that counts rows, or -1
  Slot slot;
  int64_t bytes = 0;

  /// The shape of a call with `rows` rows, where `capacity` is the plan's.
  Shape shapeFor(int64_t rows, int64_t capacity) const;
};

struct Launch {
  size_t kernel = 0;
  std::vector<Slot> buffers;
};

struct Entry {
  std::string name;
  std::vector<Value> inputs, outputs;
  std::vector<Launch> launches;
  int64_t peakBytes = 0;

  /// Whether an input or output has a batch dimension; without one, a call's number of rows means nothing.
  bool hasRows() const;
  const Value *findInput(std::string_view name) const;
  const Value *findOutput(std::string_view name) const;
};

struct Build {
  std::string compiler, cpu, fp;
  int64_t vectorBits = 0;
};

struct Plan {
  std::string model;
  std::string data; ///< the default data folder; empty if the plan names none
  Build build;
  int64_t capacity = 0; ///< rows that one call may have; 0 if no dimension is symbolic
  std::vector<Device> devices;
  std::vector<Arena> arenas;
  std::vector<State> states;
  std::vector<Kernel> kernels;
  std::vector<Entry> entries;

  const Entry *findEntry(std::string_view name) const;
  const State *findState(std::string_view name) const;
  std::vector<std::string> entryNames() const;

  /// The number of elements of all parameters.
  int64_t parameterCount() const;
  /// The largest peak of the entry points.
  int64_t peakBytes() const;
  /// A hash of every state's name, kind, type and shape: what a checkpoint must agree with.
  uint64_t stateHash() const;
};

/// Parses and checks the plan of `artifact`: afterwards every index and every range in it is sound.
Plan parsePlan(const sluice_artifact &artifact);

} // namespace sluice::runtime

#endif
