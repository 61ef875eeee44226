// Graph: a model being built, and the file it becomes.
#pragma once

#include "sluice/device.h"
#include "sluice/error.h"
#include "sluice/init.h"
#include "sluice/optim.h"
#include "sluice/tensor.h"

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

namespace sluice {

class Graph {
public:
  using Where = std::source_location;

  /// The name is a letter followed by letters, digits, '_', '-' and '.'.
  explicit Graph(std::string name, Where where = Where::current());

  /// The most rows that the batch dimension can have in one call; 256 unless set.
  void set_capacity(std::int64_t rows, Where where = Where::current());
  /// The dtype of parameters: f32 unless set.
  void set_dtype(DType dtype, Where where = Where::current());

  /// The data that `train` and `eval` of the program use unless told otherwise: the name of what came with Sluice, such
  /// as "mnist-10k", or a path, from the executable unless it is absolute. None unless set.
  void set_data(const std::string &path, Where where = Where::current());

  /// Whether `train` shuffles the rows for each epoch. By default, it does if the graph has a batch dimension. It does
  /// not if all shapes are static, because the position of a row may then have a meaning. For example, rows may be the
  /// nodes of a constant adjacency. Rows that carry states are never shuffled. `--no-shuffle` overrides this setting.
  void set_shuffle(bool shuffle);

  /// The devices that the program may use, as `--devices` spells them: "cpu,sim:0,sim:1" makes the accelerators gpu(0)
  /// and gpu(1). The host is always there; what nothing places goes to the first of the list. The host alone unless
  /// set. Throws on malformed lists, and when a device would vanish that is in use.
  void set_devices(const std::string &list, Where where = Where::current());
  /// What becomes of copies that pins need and nobody wrote: "explicit" (an error; the default), "warn" or "insert".
  void set_copies(const std::string &policy, Where where = Where::current());

  /// A device of the target.
  struct DeviceInfo {
    Device device;
    std::string backend; ///< "cpu", "sim", "cuda"
    int ordinal;         ///< which of the backend's devices
  };
  /// The target's devices: the host, then gpu(0), gpu(1), ...
  std::vector<DeviceInfo> devices() const;

  Tensor input(std::string name, DType dtype, Shape shape, Where where = Where::current());
  /// Constants.
  Tensor full(Shape shape, double value, DType dtype = f32, Where where = Where::current());
  Tensor zeros(Shape shape, DType dtype = f32, Where where = Where::current());
  Tensor ones(Shape shape, DType dtype = f32, Where where = Where::current());
  /// The elements of a vector, in row-major order, of its dtype (`bool` of boolean).
  template <class T> Tensor constant(const std::vector<T> &values, const Shape &shape, Where where = Where::current()) {
    std::vector<StoredAs<T>> elements(values.begin(), values.end());
    return constant(elements.data(), elements.size(), DTypeOf<T>::value, shape, where);
  }
  /// Those of a file, of its dtype and shape: init::from_file("x.safetensors", "name") or init::from_npy("x.npy").
  Tensor constant(const init::Init &data, Where where = Where::current());
  /// start, start + step, ... as far as they are below end (above it, where step is negative). Of i64 unless said:
  /// fractions need a float.
  Tensor arange(double end, DType dtype = i64, Where where = Where::current());
  Tensor arange(double start, double end, double step = 1, DType dtype = i64, Where where = Where::current());
  /// A scalar that is set when the program runs (`--set lr=0.1`), and is `value` unless it is.
  Tensor hyper(std::string name, double value, DType dtype = f32, Where where = Where::current());
  /// A result of `predict`, or of the entry point in which it is given.
  void output(std::string name, Arg value);
  /// A scalar that training and evaluation report with the loss. The value for several calls is that of all their rows,
  /// so that it does not depend on `--batch`. Means over rows are averaged, and sums over rows are added. Formulas of
  /// such scalars (F1, RMSE, perplexity) are computed from the combined scalars. Any other value, such as a maximum
  /// over rows, is reported as a mean over calls, with a label; `save` warns. A model without a batch dimension reports
  /// the mean of its calls, which all have the same number of rows. A graph that writes its parameters itself
  /// (Tensor::copy_) reports its loss as a metric with the name "loss".
  void metric(std::string name, Arg value);
  /// Computes a metric from scalars.
  using Formula = std::function<Tensor(const std::vector<Tensor> &)>;
  /// A metric that is a formula of float scalars, each a sum or a mean over rows. The scalars are combined over all
  /// calls. The formula is computed once from the combined scalars, in f64:
  ///
  ///     graph.metric("f1", {tp, fp, fn}, [](auto &sums) { return 2 * sums[0] / (2 * sums[0] + sums[1] + sums[2]); });
  ///
  /// Throws if a scalar is neither a sum nor a mean, or if the formula reads anything except these, constants and
  /// states.
  void metric(std::string name, const std::vector<Tensor> &sums, const Formula &formula,
              Where where = Where::current());
  /// An entry point of the graph's own beside those of training, evaluation and prediction, which knows nothing of it:
  ///
  ///     graph.entry("decode", [&] { graph.output("logits", net.next(token, position)); });
  ///
  /// What `build` gives to `output` are its outputs, what it writes to caches (nn::Module::cache) is what its calls leave to later
  /// ones, and it takes the inputs that these depend on. It computes as prediction does. Neither metrics nor other entry points are within.
  void entry(const std::string &name, const std::function<void()> &build, Where where = Where::current());
  /// Trains every parameter that a gradient of the scalar loss reaches:
  ///
  ///     graph.minimize(loss, optim::AdamW{.lr = 3e-4}, {.clip_grad_norm = 1.0});
  ///
  /// As in PyTorch, `minimize` does not train parameters with `requires_grad(false)`. It also skips parameters that the
  /// loss reads only through `detach()`, comparisons or integers. Such parameters get no update, no weight decay and no
  /// optimizer slots.
  void minimize(Arg loss, const optim::Optimizer &optimizer, const optim::Options &options = {});

  /// Everything that outlives a step, in order of creation.
  struct State {
    std::string name, kind; ///< kind: parameter, statistic, slot (what rows carry), cache or hyper
    DType dtype;
    Shape shape;
    std::int64_t elements;
  };
  std::vector<State> states() const;
  const std::string &name() const;

  /// What no output, metric or loss depends on: layers as a whole, and parameters of other layers.
  struct Unused {
    std::string what;     ///< "layer 'conv4'", "parameter 'scale'"
    SourceLocation where; ///< of a layer: where it is called, if it is
  };
  std::vector<Unused> unused() const;

  /// The graph in text form: what `sluice compile` reads.
  std::string str(Where where = Where::current()) const;
  /// Writes `str()`; the file is whole or is not there ("-": the standard output). What states begin with that is data, and
  /// constants of more than 1024 elements, are written beside it: to `path` with .safetensors behind it.
  /// What is `unused` is warned of on the standard error.
  void save(const std::string &path, Where where = Where::current()) const;

private:
  /// As elements lie one after the other: those of std::vector<bool> do not.
  template <class T> using StoredAs = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
  Tensor constant(const void *elements, std::size_t count, DType dtype, const Shape &shape, Where where);

  std::shared_ptr<detail::GraphImpl> graph;
  friend struct detail::Access;
};

} // namespace sluice
