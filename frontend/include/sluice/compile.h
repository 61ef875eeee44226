// Compiling a graph in process: the result of `sluice compile --emit=so`, loaded. Link the shared library of the
// package.
#pragma once

#include "sluice/compile_options.h"
#include "sluice/graph.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// The copies from one device to another.
struct TransferCount {
  std::string from, to; ///< names of devices: "cpu", "acc0" for gpu(0)
  std::int64_t copies = 0, bytes = 0;
  /// Whether all members are equal.
  bool operator==(const TransferCount &) const = default;
};

/// A compiled graph with its states, ready to run. It may be used by one thread at a time; a moved-from program cannot
/// be used. Every method throws Error, with the name of the method, at the line of the call: code 2 for an unknown
/// name, a wrong dtype, number of elements or of rows; 3 for a label or index out of range, and for files; 4 and 5 for
/// devices.
class Program {
public:
  /// The line of a call, for error messages; a default argument everywhere.
  using Where = std::source_location;

  /// Internal: `compile` constructs programs.
  struct Impl;
  explicit Program(std::unique_ptr<Impl> impl);
  Program(Program &&) noexcept;
  Program &operator=(Program &&) noexcept;
  ~Program();

  /// Copies the elements of an input for the next runs, row-major. T is the type of its dtype (DTypeOf). `run` checks
  /// their number. The input keeps its elements until it is set again.
  template <class T> void set_input(std::string_view name, std::span<const T> values, Where where = Where::current()) {
    set(Kind::input, name, values.data(), values.size(), DTypeOf<T>::value, where);
  }
  template <class T>
  void set_input(std::string_view name, const std::vector<T> &values, Where where = Where::current()) {
    set(Kind::input, name, Flat(values).data(), values.size(), DTypeOf<T>::value, where);
  }
  /// Runs an entry point ("init", "train_step", "eval_step", "predict" or one of Graph::entry) on `rows` rows, from 1
  /// to the capacity. An entry point without a batch dimension ignores `rows`. States have no value until "init" has
  /// run, weights are loaded or they are set; running an entry point that reads such a state throws Error.
  void run(std::string_view entry, std::int64_t rows, Where where = Where::current());
  /// An output of the last run, row-major. Waits for its work. "train_step" and "eval_step" have the output "loss" and
  /// one output per metric.
  template <class T> std::vector<T> output(std::string_view name, Where where = Where::current()) const {
    return values<T>(Kind::output, name, where);
  }

  /// The elements of a parameter, statistic, optimizer state or hyperparameter (Graph::states), row-major; and their
  /// replacement, with exactly as many elements. Replicas have equal states.
  template <class T> std::vector<T> state(std::string_view name, Where where = Where::current()) const {
    return values<T>(Kind::state, name, where);
  }
  template <class T> void set_state(std::string_view name, std::span<const T> values, Where where = Where::current()) {
    set(Kind::state, name, values.data(), values.size(), DTypeOf<T>::value, where);
  }
  template <class T>
  void set_state(std::string_view name, const std::vector<T> &values, Where where = Where::current()) {
    set(Kind::state, name, Flat(values).data(), values.size(), DTypeOf<T>::value, where);
  }
  /// Loads every parameter and statistic from a safetensors file with PyTorch's names and shapes, as `--weights`. A
  /// missing, unknown or misshapen tensor is an error. Floats of another dtype are converted: wider ones are rounded to
  /// nearest, and a value beyond the range of the state is an error. The learning rate is no weight: run "init" or set
  /// the rate before training.
  void load_weights(const std::string &path, Where where = Where::current());
  /// Writes every parameter and statistic to such a file, as `--save`, completely or not at all.
  void save_weights(const std::string &path, Where where = Where::current()) const;

  /// The copies between devices since the program was compiled, by pair of devices: as counted by the backend, or as
  /// requested if the backend does not count. Copies within one device do not count. The copies of all replicas are
  /// added. Waits for all work.
  std::vector<TransferCount> transfers(Where where = Where::current()) const;
  /// Sets the seed of the random numbers of later runs of "init" (torch.manual_seed). There is no default: without a
  /// seed, an "init" that draws random numbers throws Error.
  void seed(std::uint64_t seed, Where where = Where::current());

private:
  /// Contiguous elements: std::vector<bool> does not store its elements so.
  template <class T> class Flat {
  public:
    explicit Flat(const std::vector<T> &values) : values(values) {}
    const void *data() const { return values.data(); }

  private:
    const std::vector<T> &values;
  };

  enum class Kind { input, output, state };
  void set(Kind kind, std::string_view name, const void *data, std::size_t count, DType dtype, Where where);
  std::size_t count(Kind kind, std::string_view name, Where where) const;
  void get(Kind kind, std::string_view name, void *data, std::size_t count, DType dtype, Where where) const;
  template <class T> std::vector<T> values(Kind kind, std::string_view name, Where where) const {
    std::size_t size = count(kind, name, where);
    auto elements = std::make_unique<T[]>(size); // contiguous, unlike std::vector<bool>
    get(kind, name, elements.get(), size, DTypeOf<T>::value, where);
    return std::vector<T>(elements.get(), elements.get() + size);
  }

  std::unique_ptr<Impl> impl;
};

/// Internal: one byte per element.
template <> class Program::Flat<bool> {
public:
  explicit Flat(const std::vector<bool> &values) : bytes(values.begin(), values.end()) {}
  const void *data() const { return bytes.data(); }

private:
  std::vector<std::uint8_t> bytes;
};

/// Compiles a graph (torch.compile, ahead of time). The program is independent of the graph, whose later changes do not
/// affect it. Throws Error if the graph is invalid (2), a backend, device or op is not available (4), or memory is
/// exhausted (5).
Program compile(const Graph &graph, const CompileOptions &options = {},
                std::source_location where = std::source_location::current());

} // namespace sluice
