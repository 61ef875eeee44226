// Graph: a model under construction, and the file that the compiler reads. Functions throw Error (code 2) at `where`
// for arguments that a comment excludes, for names in use, and for shapes that contradict earlier ones.
#pragma once

#include "sluice/device.h"
#include "sluice/error.h"
#include "sluice/init.h"
#include "sluice/optim.h"
#include "sluice/tensor.h"

#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

namespace sluice {

/// A model under construction. Copies are handles to the same graph. PyTorch has no equivalent: a function traced by
/// torch.export comes closest. A graph may be used by one thread at a time.
class Graph {
public:
  /// The line of a call, for error messages; a default argument everywhere.
  using Where = std::source_location;

  /// Names of graphs, metrics and hyperparameters begin with a letter or '_', followed by letters, digits, '_', '-' and
  /// '.'. Inputs and outputs may also have names of other frameworks ("387", "serving_default_x:0", "/encoder/out"):
  /// UTF-8 without control characters, of 1 to 1,024 bytes.
  explicit Graph(std::string name, Where where = Where::current());

  /// The largest number of rows of the batch dimension in one call: 1 to 2^31 - 1; 256 by default.
  void set_capacity(std::int64_t rows, Where where = Where::current());
  /// The dtype of parameters and buffers that are created later, a float; f32 by default.
  void set_dtype(DType dtype, Where where = Where::current());

  /// The default data of the commands `train` and `eval` of the program: the name of a data set in the installation,
  /// such as "mnist-10k", or a path, relative to the executable or absolute. None by default.
  void set_data(const std::string &path, Where where = Where::current());

  /// Whether `train` shuffles the rows for each epoch. By default, it does if the graph has a batch dimension. It does
  /// not if all shapes are static, because the position of a row may then have a meaning. For example, rows may be the
  /// nodes of a constant adjacency. Rows that carry states are never shuffled. `--no-shuffle` overrides this setting.
  void set_shuffle(bool shuffle);

  /// Sets the devices of the program, in the syntax of `--devices`: "cpu,sim:0,sim:1" has the accelerators gpu(0) and
  /// gpu(1). The host is always part of it. Values without a place go to the first device of the list. Only the host by
  /// default. Throws Error for a malformed list, and for one that lacks a device in use.
  void set_devices(const std::string &list, Where where = Where::current());
  /// The policy for copies that pins require and the graph does not contain: "explicit" (an error when the graph is
  /// compiled; the default), "warn" (insert with a warning) or "insert".
  void set_copies(const std::string &policy, Where where = Where::current());

  /// A device of the target.
  struct DeviceInfo {
    Device device;       ///< its name in the graph
    std::string backend; ///< "cpu", "sim", "cuda"
    int ordinal;         ///< its number in the backend, from 0
  };
  /// The target's devices: the host, then gpu(0), gpu(1), ...
  std::vector<DeviceInfo> devices() const;

  /// An input of the program. The shape may have one dimension without a size, which is then the batch of the graph.
  /// Every size is at least 1, and a shape has at most 2^40 elements, in constants too.
  Tensor input(std::string name, DType dtype, Shape shape, Where where = Where::current());
  /// An input that is already on the accelerator `on`: programs pass memory of the device (sluice_instance_bind_input),
  /// and nothing is copied. Every other input, also one on cpu(), is passed in host memory.
  Tensor input(std::string name, DType dtype, Shape shape, const Device &on, Where where = Where::current());
  /// Constants whose elements are all equal. A value that the dtype lacks throws Error.
  Tensor full(Shape shape, double value, DType dtype = f32, Where where = Where::current());
  Tensor zeros(Shape shape, DType dtype = f32, Where where = Where::current());
  Tensor ones(Shape shape, DType dtype = f32, Where where = Where::current());
  /// A constant with these elements, in row-major order, of the dtype of T (torch.tensor). The shape is static and has
  /// as many elements.
  template <class T> Tensor constant(const std::vector<T> &values, const Shape &shape, Where where = Where::current()) {
    std::vector<StoredAs<T>> elements(values.begin(), values.end());
    return constant(elements.data(), elements.size(), DTypeOf<T>::value, shape, where);
  }
  /// A constant from a file, with its dtype and shape: init::from_file("x.safetensors", "name") or
  /// init::from_npy("x.npy"). A file that cannot be read is Error 3.
  Tensor constant(const init::Init &data, Where where = Where::current());
  /// start, start + step, ... below end (above end if step is negative), in i32, i64 or a float. i64 by default;
  /// PyTorch infers the dtype. Fails for an empty range, and for numbers that the dtype lacks.
  Tensor arange(double end, DType dtype = i64, Where where = Where::current());
  Tensor arange(double start, double end, double step = 1, DType dtype = i64, Where where = Where::current());
  /// A matrix [n, m] with ones on the diagonal and zeros elsewhere (torch.eye), of any dtype. m is n by default. Sizes
  /// below 1 throw Error.
  Tensor eye(std::int64_t n, std::optional<std::int64_t> m = {}, DType dtype = f32, Where where = Where::current());
  /// `steps` floats, equally spaced from `start` to `end`, both included. One step gives `start`. PyTorch also accepts
  /// integer dtypes.
  Tensor linspace(double start, double end, std::int64_t steps, DType dtype = f32, Where where = Where::current());
  /// A hyperparameter: a scalar of a float dtype that can be set when the program runs (`--set NAME=0.1`); `value` by
  /// default.
  Tensor hyper(std::string name, double value, DType dtype = f32, Where where = Where::current());
  /// Makes a value a result of `predict`, or of the entry point under construction. The batch must not be merged with
  /// another dimension.
  void output(std::string name, Arg value);
  /// The same for a result that stays on the device: programs get its address (sluice_instance_get_output_address).
  void output(std::string name, Arg value, const Device &on);
  /// Makes training and evaluation report a float scalar with the loss. The figure for several calls covers all their
  /// rows and does not depend on `--batch`: means over rows are averaged by rows, and sums over rows are added.
  /// Formulas of such scalars (F1, RMSE, perplexity) are computed from the combined scalars. Any other value, such as a
  /// maximum over rows, is reported as a mean over calls, with a label; `save` warns. A model without a batch dimension
  /// reports the mean of its calls. A graph that writes its parameters (Tensor::copy_) reports its loss as a metric
  /// with the name "loss".
  void metric(std::string name, Arg value);
  /// Computes a metric from scalars; called once.
  using Formula = std::function<Tensor(const std::vector<Tensor> &)>;
  /// A metric that is a formula of float scalars, each a sum or a mean over rows. The program combines the scalars over
  /// all calls and computes the formula once, in f64:
  ///
  ///     graph.metric("f1", {tp, fp, fn}, [](auto &sums) { return 2 * sums[0] / (2 * sums[0] + sums[1] + sums[2]); });
  ///
  /// Throws Error if a scalar is neither a sum nor a mean, or if the formula reads other values than these, constants
  /// and states.
  void metric(std::string name, const std::vector<Tensor> &sums, const Formula &formula,
              Where where = Where::current());
  /// Adds an entry point to those of training, evaluation and prediction, which ignore it:
  ///
  ///     graph.entry("decode", [&] { graph.output("logits", net.next(token, position)); });
  ///
  /// Calls of `output` in `build` define its outputs, and writes of caches (nn::Module::cache) its state between calls.
  /// Its inputs are the inputs of the graph on which its outputs and writes depend. It computes as prediction does. The
  /// name begins with a letter or '_', followed by letters, digits, '_' and '-'. Throws Error if it has no output and
  /// no write, and for metrics, `minimize` and entry points in `build`.
  void entry(const std::string &name, const std::function<void()> &build, Where where = Where::current());
  /// Builds prediction for several sizes of a dimension, over shared states:
  ///
  ///     graph.sizes("T", {64, 128}, [&](std::int64_t t) {
  ///       graph.output("y", net(graph.input("x", f32, {1, t, 80})));
  ///     });
  ///
  /// Shapes are static, so `build` runs once for each size and creates the inputs and outputs of this size, under the
  /// same names. Each size becomes an entry point: "predict-T64", "predict-T128". The command `predict` and
  /// Program::run("predict", rows) run the entry point whose inputs have exactly the sizes of the given values. Calls
  /// may be nested, for two dimensions ("predict-H8-W16"). Throws Error as `entry` does, for a name other than letters,
  /// digits and '_', and for sizes that repeat or are not positive.
  void sizes(const std::string &name, const std::vector<std::int64_t> &sizes,
             const std::function<void(std::int64_t)> &build, Where where = Where::current());
  /// Trains every parameter that a gradient of the float scalar `loss` reaches, at most once in a graph:
  ///
  ///     graph.minimize(loss, optim::AdamW{.lr = 3e-4}, {.clip_grad_norm = 1.0});
  ///
  /// As in PyTorch, it does not train parameters with `requires_grad(false)`, nor parameters that the loss reads only
  /// through `detach()`, comparisons or integers. Such parameters have no update, no weight decay and no optimizer
  /// states. Throws Error if no parameter is left, if copy_ writes one of them, and for numbers out of range (optim.h).
  void minimize(Arg loss, const optim::Optimizer &optimizer, const optim::Options &options = {});

  /// A value that outlives a step. The table in GUIDE.md describes the kinds.
  struct State {
    std::string name,
        kind; ///< parameter, statistic (BatchNorm), slot (rows, optimizers), cache, hyperparameter, key or constant
    DType dtype;
    Shape shape;
    std::int64_t elements; ///< with the capacity as the size of the batch
  };
  /// All states, in the order of their creation. The compiler adds those of the optimizer.
  std::vector<State> states() const;
  /// As given to the constructor.
  const std::string &name() const;

  /// A part that no output, metric, loss or written parameter depends on.
  struct Unused {
    std::string what;     ///< "layer 'conv4'", "parameter 'scale'"
    SourceLocation where; ///< of a layer: its first call, or its declaration
  };
  /// Unused layers as a whole, and unused parameters of other layers.
  std::vector<Unused> unused() const;

  /// The graph as text, which `sluice compile` reads. Throws Error if the graph has neither an output nor a loss, or is
  /// invalid.
  std::string str(Where where = Where::current()) const;
  /// Writes str() to a file, completely or not at all, or to the standard output ("-"). Initial values that are data,
  /// and constants of more than 1024 elements, go into a second file, `path` + ".safetensors"; then "-" throws Error.
  /// Prints a warning for each of `unused` and for each metric that is a mean over calls, unless there is a second
  /// file. Error 3 if a file cannot be written.
  void save(const std::string &path, Where where = Where::current()) const;

private:
  explicit Graph(std::shared_ptr<detail::GraphImpl> graph) : graph(std::move(graph)) {}
  /// The type of contiguous elements: std::vector<bool> does not store its elements so.
  template <class T> using StoredAs = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
  Tensor constant(const void *elements, std::size_t count, DType dtype, const Shape &shape, Where where);

  std::shared_ptr<detail::GraphImpl> graph;
  friend struct detail::Access;
};

} // namespace sluice
