// Compiling a graph in process. Link Sluice's compiler library: this is what `sluice compile --emit=so` writes, loaded.
#pragma once

#include "sluice/graph.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

struct CompileOptions {
  std::optional<DType> dtype = {};           ///< f64: computes everything that is f32 in double precision
  bool fuse = true;                          ///< one kernel for several ops
  int threads = 0;                           ///< 0: all cores
  std::optional<std::int64_t> capacity = {}; ///< rows of the batch, instead of the graph's
  std::string devices = {};                  ///< what to run on, as "cpu,sim:0"; empty: what the graph says
  std::string copies = {};  ///< that pins need: "explicit", "warn" or "insert"; empty: what the graph says
  std::string dump_ir = {}; ///< a folder for one file a phase
  std::map<std::string, std::string> backends = {}; ///< settings by backend: {"sim", "seed=7,link=12GB/s,latency=5us"}
};

/// Copies from one device to another, counted where they are made.
struct TransferCount {
  std::string from, to; ///< names of devices: "cpu", "acc0" for gpu(0)
  std::int64_t copies = 0, bytes = 0;
  bool operator==(const TransferCount &) const = default;
};

/// A compiled graph with its state, ready to run. Sizes and dtypes that do not fit throw Error.
class Program {
public:
  struct Impl;
  explicit Program(std::unique_ptr<Impl> impl);
  Program(Program &&) noexcept;
  Program &operator=(Program &&) noexcept;
  ~Program();

  /// The rows of an input for the next run, row-major.
  template <class T> void set_input(std::string_view name, std::span<const T> values) {
    set(Kind::input, name, values.data(), values.size(), DTypeOf<T>::value);
  }
  template <class T> void set_input(std::string_view name, const std::vector<T> &values) {
    set_input(name, std::span<const T>(values));
  }
  /// Runs an entry point ("init", "train_step", "eval_step", "predict") on this many rows.
  void run(std::string_view entry, std::int64_t rows);
  /// What the last run gave under this name.
  template <class T> std::vector<T> output(std::string_view name) const { return values<T>(Kind::output, name); }

  template <class T> std::vector<T> state(std::string_view name) const { return values<T>(Kind::state, name); }
  template <class T> void set_state(std::string_view name, std::span<const T> values) {
    set(Kind::state, name, values.data(), values.size(), DTypeOf<T>::value);
  }
  template <class T> void set_state(std::string_view name, const std::vector<T> &values) {
    set_state(name, std::span<const T>(values));
  }
  /// The copies between devices since the program was made, by pair of devices, as the backends count them, else as
  /// they were asked for; copies on one device do not count. Waits for all work.
  std::vector<TransferCount> transfers() const;
  /// The key of the random numbers that `init` draws.
  void seed(std::uint64_t seed);

private:
  enum class Kind { input, output, state };
  void set(Kind kind, std::string_view name, const void *data, std::size_t count, DType dtype);
  std::size_t count(Kind kind, std::string_view name) const;
  void get(Kind kind, std::string_view name, void *data, std::size_t count, DType dtype) const;
  template <class T> std::vector<T> values(Kind kind, std::string_view name) const {
    std::vector<T> result(count(kind, name));
    get(kind, name, result.data(), result.size(), DTypeOf<T>::value);
    return result;
  }

  std::unique_ptr<Impl> impl;
};

/// Throws Error when the graph cannot be compiled.
Program compile(const Graph &graph, const CompileOptions &options = {});

} // namespace sluice
