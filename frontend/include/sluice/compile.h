// Compiling a graph in process. Link Sluice's compiler library: this is what `sluice compile --emit=so` writes, loaded.
#pragma once

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

struct CompileOptions {
  std::optional<DType> dtype = {}; ///< f64: computes everything that is f32 in double precision
  /// bf16, f16: products of f32, and what is safe between them, in that, from states that stay f32; with f16, minimize scales
  /// its loss (optim::LossScale); f32: as they are; else: what the graph says
  std::optional<DType> precision = {};
  bool fuse = true;                          ///< one kernel for several ops
  int threads = 0;                           ///< 0: all cores
  std::optional<std::int64_t> capacity = {}; ///< rows of the batch, instead of the graph's
  std::string devices = {};                  ///< what to run on, as "cpu,sim:0"; empty: what the graph says
  /// Of the program, each on a share of the rows and, in turn, its own of `devices`; 1 unless the graph says otherwise.
  /// They train as one.
  std::optional<std::int64_t> replicas = {};
  /// The rows of a call, or a replica's, are done in so many microbatches at most, one after another: gradients are
  /// added up, and one step of the optimizer follows. Batch norm has the statistics of each. 1 unless the graph says
  /// otherwise.
  std::optional<std::int64_t> accumulate = {};
  /// The rows of a call are cut into so many logical shards (1, 2, 4, 8 and so on), each of which has its own statistics in
  /// batch norm. Whatever number of replicas that divides it shares them, all bits are the same. Not with `accumulate`.
  std::optional<std::int64_t> deterministic = {};
  /// The stage of ZeRO: at 1, each of the replicas keeps and updates a shard of the optimizer's slots. 0 unless the graph
  /// says otherwise.
  std::optional<std::int64_t> zero = {};
  std::string batch_norm = {};    ///< of replicas: by their own rows ("local"; the default) or by all ("sync")
  std::optional<DType> wire = {}; ///< what replicas reduce gradients in, where it is narrower than they are
  std::string copies = {};        ///< that pins need: "explicit", "warn" or "insert"; empty: what the graph says
  std::string dump_ir = {};       ///< a folder for one file a phase
  std::map<std::string, std::string> backends = {}; ///< settings by backend: {"sim", "seed=7,link=12GB/s,latency=5us"}
};

/// Copies from one device to another, counted where they are made.
struct TransferCount {
  std::string from, to; ///< names of devices: "cpu", "acc0" for gpu(0)
  std::int64_t copies = 0, bytes = 0;
  bool operator==(const TransferCount &) const = default;
};

/// A compiled graph with its state, ready to run. What does not fit (a name, a size, a dtype, a label beyond the
/// classes, a file) throws Error, which names the method and the line that called it.
class Program {
public:
  using Where = std::source_location;

  struct Impl;
  explicit Program(std::unique_ptr<Impl> impl);
  Program(Program &&) noexcept;
  Program &operator=(Program &&) noexcept;
  ~Program();

  /// The rows of an input for the next runs, row-major; T is the element type of its dtype (`bool` of boolean). How
  /// many rows there are shows when a run takes them.
  template <class T> void set_input(std::string_view name, std::span<const T> values, Where where = Where::current()) {
    set(Kind::input, name, values.data(), values.size(), DTypeOf<T>::value, where);
  }
  template <class T>
  void set_input(std::string_view name, const std::vector<T> &values, Where where = Where::current()) {
    set(Kind::input, name, Flat(values).data(), values.size(), DTypeOf<T>::value, where);
  }
  /// Runs an entry point ("init", "train_step", "eval_step", "predict" or one of the graph's own) on this many rows, from 1 to
  /// the capacity.
  /// States have no value before "init" has run, weights are loaded or they are set: what reads one before throws.
  void run(std::string_view entry, std::int64_t rows, Where where = Where::current());
  /// What the last run gave under this name, row-major.
  template <class T> std::vector<T> output(std::string_view name, Where where = Where::current()) const {
    return values<T>(Kind::output, name, where);
  }

  /// A parameter, statistic, optimizer slot or setting, row-major in its shape (Graph::states).
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
  /// Loads every parameter and statistic from a safetensors file with PyTorch's names and shapes, like the executable's
  /// `--weights`. A missing, misshapen or unknown tensor is an error. Floats of another type are converted to the type
  /// of the state. Wider floats are rounded to the nearest; a value beyond the state's range is an error. The learning
  /// rate is not a weight. To train on, run "init" first or set the rate.
  void load_weights(const std::string &path, Where where = Where::current());
  /// Every parameter and statistic to such a file, as the executable's `--save`; the file is whole or is not there.
  void save_weights(const std::string &path, Where where = Where::current()) const;

  /// The copies between devices since the program was made, by pair of devices, as the backends count them, else as
  /// they were asked for; copies on one device do not count. Replicas name their devices alike, and their copies are
  /// added up. Waits for all work.
  std::vector<TransferCount> transfers(Where where = Where::current()) const;
  /// The key of the random numbers that `init` draws.
  void seed(std::uint64_t seed, Where where = Where::current());

private:
  /// Elements that lie one after the other: those of std::vector<bool> do not.
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
    auto elements = std::make_unique<T[]>(size); // of bool, too, one after the other
    get(kind, name, elements.get(), size, DTypeOf<T>::value, where);
    return std::vector<T>(elements.get(), elements.get() + size);
  }

  std::unique_ptr<Impl> impl;
};

template <> class Program::Flat<bool> {
public:
  explicit Flat(const std::vector<bool> &values) : bytes(values.begin(), values.end()) {}
  const void *data() const { return bytes.data(); }

private:
  std::vector<std::uint8_t> bytes;
};

/// Throws Error when the graph cannot be compiled.
Program compile(const Graph &graph, const CompileOptions &options = {},
                std::source_location where = std::source_location::current());

} // namespace sluice
