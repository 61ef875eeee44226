// nn::Module: parameters and submodules under the names of PyTorch's state_dict. Functions throw Error (code 2) at
// `where`.
#pragma once

#include "sluice/graph.h"
#include "sluice/init.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {
class Array;
struct ArrayArg;
namespace detail {
struct ModuleAccess;
}
} // namespace sluice

namespace sluice::nn {

/// The name of a submodule that only `get_submodule` uses: its parameters have the prefix of its parent. PyTorch has no
/// equivalent.
struct Group {
  std::string name;
};

/// A parameter as a member of a module. An assignment before the module is called ties parameters, as in PyTorch:
///
///     lm_head.weight = wte.weight;  // one parameter, `wte.weight`, with the second name `lm_head.weight`
///
/// Files hold it once, under its first name. A file that also has other names is accepted if all have equal elements.
class Parameter : public Tensor {
public:
  Parameter() = default;
  /// A handle that is not a member: assigning to it changes the handle only.
  Parameter(const Parameter &other) : Tensor(other) {}
  /// The first assignment sets the parameter; each later one ties it to another parameter of the same graph, shape and
  /// dtype. Throws Error if this parameter is in use already.
  Parameter &operator=(const Tensor &other);
  Parameter &operator=(const Parameter &other) { return *this = static_cast<const Tensor &>(other); }

private:
  bool isMember = false;
};

/// A part of a model with parameters: torch.nn.Module. Submodules are members that receive their name at construction:
///
///     struct Net : nn::Module {
///       using Module::Module;
///       nn::Linear fc1{this, "fc1", 784, 128}, fc2{this, "fc2", 128, 10};
///       Tensor forward(Tensor x) override { return fc2(relu(fc1(x))); }
///     };
///     Net net{graph};             // fc1.weight, fc1.bias, fc2.weight, fc2.bias
///
/// A module outside of a graph computes with arrays (<sluice/array.h>):
///
///     Net net;
///     net.to(try_gpu());
///     Array y = net(x);           // compiled by the first call with these types
///
/// Its parameters and buffers are arrays. They are created by the first use, with the initial values of `init` for the
/// seed of `manual_seed`, on the device of `to` or `pin`, or else on default_device(). A call is one program: forward
/// is called with tensors when the types of the arrays, the mode or a device changes, and otherwise only its kernels
/// run. While a tape records, parameters that require a gradient get one (Array::grad). A call of a submodule on arrays
/// is a separate program. A function by jit may call the module with tensors, as a part of its program.
class Module {
public:
  /// The line of a call, for error messages; a default argument everywhere.
  using Where = std::source_location;
  /// Tensors and their full names.
  using Named = std::vector<std::pair<std::string, Tensor>>;

  /// The whole model outside of a graph: its parameters have no prefix.
  explicit Module(Where where = Where::current());
  /// The whole model as a part of a graph.
  explicit Module(Graph &graph, Where where = Where::current());
  /// A submodule of `parent`, which must not be null. It must live as long as the parent is used. A name is not empty
  /// and has no '.', '*', '"' or space.
  Module(Module *parent, std::string name, Where where = Where::current());
  Module(Module *parent, Group group, Where where = Where::current());
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;
  virtual ~Module();

  /// The computation of the module. Override the version with the right number of tensors; the others throw Error.
  virtual Tensor forward(Tensor x);
  virtual Tensor forward(Tensor a, Tensor b);
  virtual Tensor forward(Tensor a, Tensor b, Tensor c);
  virtual Tensor forward(Tensor a, Tensor b, Tensor c, Tensor d);
  /// Calls forward. Errors inside it also name this line.
  Tensor operator()(Arg x);
  Tensor operator()(Arg a, Arg b);
  Tensor operator()(Arg a, Arg b, Arg c);
  Tensor operator()(Arg a, Arg b, Arg c, Arg d);
  /// Calls forward on arrays, outside of a graph. All are on the device of the parameters, unless modules are on several
  /// devices and forward moves its values.
  Array operator()(const ArrayArg &x);
  Array operator()(const ArrayArg &a, const ArrayArg &b);
  Array operator()(const ArrayArg &a, const ArrayArg &b, const ArrayArg &c);
  Array operator()(const ArrayArg &a, const ArrayArg &b, const ArrayArg &c, const ArrayArg &d);

  /// Sets the mode of later calls on arrays of this module and its submodules, as in PyTorch: training by default. In
  /// training, dropout drops elements, batch norm uses and updates statistics of the batch, and `copy_` writes buffers.
  /// Graphs have both: training steps train, and other entry points evaluate.
  Module &train(bool mode = true);
  Module &eval();

  /// The arrays of the parameters of this module and its submodules, outside of a graph. Handles stay valid: `to` moves
  /// their elements.
  std::vector<Array> parameters(Where where = Where::current());
  /// The arrays of parameters and buffers, with their names within this module.
  std::vector<std::pair<std::string, Array>> state_dict(Where where = Where::current());
  /// Copies elements into the arrays of state_dict, from any device and float dtype. Each name must occur once, with its
  /// shape.
  void load_state_dict(const std::vector<std::pair<std::string, Array>> &arrays, Where where = Where::current());
  /// Writes state_dict to a safetensors file with PyTorch's names (save_safetensors), and reads it, with the conversions
  /// and errors of load_state_dict. A file that cannot be read or written is Error 3.
  void save(const std::string &path, Where where = Where::current());
  void load(const std::string &path, Where where = Where::current());

  /// Creates a parameter (torch.nn.Parameter) of the graph's dtype, which `minimize` trains. The shape is static. The
  /// name follows the rules of a submodule's and is new in the module; "lr" and "step" of the whole model are reserved.
  Tensor parameter(const std::string &name, const Shape &shape, init::Init init, Where where = Where::current());
  /// Creates a buffer of the graph's dtype (register_buffer). With a static shape it is a statistic: saved with the
  /// parameters but not trained. With the batch as dimension 0 it holds a state of each row: row i of a training step
  /// reads the value that `copy_` wrote for row i in the step before, without its gradient. It begins with zeros, which
  /// evaluation and prediction always read, and rows that are not in a call keep their value. Checkpoints hold it,
  /// weights do not.
  Tensor buffer(const std::string &name, const Shape &shape, init::Init init, Where where = Where::current());

  /// Creates a state that calls of entry points (Graph::entry) pass to later calls, such as the keys and values of
  /// earlier tokens. Only entry points write it, by `copy_`. It begins with zeros, and neither weights nor checkpoints
  /// hold it. Its shape is static, its dtype the graph's. PyTorch has no equivalent.
  Tensor cache(const std::string &name, const Shape &shape, Where where = Where::current());

  /// The parameters and buffers of this module and its submodules, as ("conv1.weight", tensor). Names are those of the
  /// whole model; PyTorch's begin at this module. Tied parameters appear once.
  Named named_parameters() const;
  Named named_buffers() const;

  /// Sets whether `minimize` trains the parameters of this module and its submodules (Tensor::requires_grad), including
  /// those that lazy layers create later. Call it before `minimize`. Training steps still update the statistics of batch norm, as in PyTorch. Example of a frozen
  /// backbone:
  ///
  ///     net.backbone.requires_grad(false);
  Module &requires_grad(bool required, Where where = Where::current());

  /// Replaces the initial values of every parameter whose name within this module matches: `initialize("*.bias",
  /// init::zeros())`. '*' matches any characters. Data (init::from_file, init::from_npy) also replaces the values of
  /// matching statistics, as `--weights` does. Other rules do so only if the pattern matches no parameter:
  /// `initialize("*.running_var", init::constant(4))`. A pattern without a match throws Error.
  void initialize(std::string_view pattern, init::Init init, Where where = Where::current());

  /// The submodule with this name below this module: "features.0", or the name of a group. Throws Error if there is
  /// none.
  Module &get_submodule(std::string_view name, Where where = Where::current());

  /// Moves parameters and buffers, including those of submodules, to a device, in place. Gradients and optimizer states
  /// follow, and ops on them run there. States that lazy layers create later are created there. Throws Error if the
  /// target lacks the device, or if a state is used already or is pinned to another device. Returns this module.
  Module &to(const Device &device, Where where = Where::current());
  Module &cpu(Where where = Where::current());
  /// To the GPU of the innermost DeviceScope, or gpu(0); or to gpu(index).
  Module &cuda(Where where = Where::current());
  Module &cuda(int index, Where where = Where::current());
  /// Runs the ops of later calls of `forward` on a device, including those of submodules, and keeps parameters and
  /// buffers there. The pin of a submodule takes precedence. Graph::set_copies decides about copies of values from
  /// other devices. Errors as of `to`. PyTorch has no equivalent.
  Module &pin(const Device &device, Where where = Where::current());
  /// The function of ops.h, which the method would hide in `forward`.
  static Tensor pin(Arg x, const Device &device);

protected:
  /// x as an operand whose errors name the line that calls the layer.
  Arg at(const Tensor &x) const;
  /// The dtype of the graph's parameters, and the line of the declaration of the module.
  DType dtype() const;
  Where declared() const { return created; }
  /// The graph in which calls build.
  detail::GraphImpl &target() const;
  /// The line of the innermost call in progress; else the declaration.
  Where callingLine() const;
  /// A "parameter" or "statistic" of an imported model: any name that is new, any float dtype.
  Tensor importedState(const char *kind, const std::string &name, DType dtype, const Shape &shape, init::Init init,
                       Where where);
  /// Whether the module itself has a parameter or buffer of this name.
  bool hasState(const std::string &name) const;
  /// Runs a forward function with several results as operator() runs `forward`: with the pin and the mode of the module.
  std::vector<Tensor> runForward(Where line, const std::vector<Tensor> &x,
                                 const std::function<std::vector<Tensor>()> &forward);
  /// Gives a parameter of the module itself another name, which is free.
  void renameState(const std::string &name, const std::string &to);
  /// For layers that create their parameters in the first call, as in PyTorch's lazy modules: keeps the device of the
  /// innermost DeviceScope for these parameters. Called by the constructor.
  void delay();

private:
  // No private name may equal a function of ops.h: `forward` would find the member instead.
  Tensor state(const char *kind, const std::string &name, const Shape &shape, init::Init init, Where where);
  Tensor addState(const char *kind, const std::string &full, DType dtype, const Shape &shape, init::Init init,
                  Where where);
  Module(Module *parent, std::string name, bool isGroup, Where where);
  struct Member {
    const char *kind;
    std::string path;
    Tensor tensor;
  };
  /// Whether the state still exists, and is not tied to another parameter.
  bool isOwn(const Member &member) const;
  void collect(const char *kind, Named &into) const;
  /// Sets the initial values of every state in a list whose name within this module matches. Returns whether any does.
  bool initializeMatching(std::string_view pattern, const init::Init &init, const Named &states, Where at);
  /// States of this module and of the submodules without a separate pin.
  void collectUnpinned(Named &into) const;
  void collectParts(std::vector<Module *> &into);
  /// In a trace of a function of arrays: makes the states of the model further operands of the function.
  void enterTrace(const std::vector<Tensor> &x);
  template <class Forward> Tensor call(Where line, const std::vector<Tensor> &x, Forward forward);
  void enroll();
  [[noreturn]] void failForward(const char *parameters) const;
  /// The pin of this module or of the innermost module around it; null if there is none.
  const Device *pinnedTo() const;

  std::shared_ptr<detail::GraphImpl> graph;
  std::string path; ///< the prefix of parameter names
  std::string name; ///< for `get_submodule`, from the whole model
  Where created;
  std::size_t number = 0; ///< among the graph's layers
  Module *parent = nullptr;
  std::optional<Device> pinned;
  std::optional<Device> later; ///< the device of states that are created later
  bool isFrozen = false;       ///< whether parameters that are created later have requires_grad(false)
  bool isDelayed = false;      ///< whether the first call creates the states
  bool isTraining = true;      ///< the mode of calls on arrays
  std::vector<Module *> children;
  std::vector<Member> members;
  std::shared_ptr<Module *> self = std::make_shared<Module *>(this); ///< expires with the module
  friend struct detail::ModuleAccess;
};

} // namespace sluice::nn
