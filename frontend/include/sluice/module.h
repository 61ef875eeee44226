// nn::Module: parameters and sub-modules under PyTorch's state_dict names.
#pragma once

#include "sluice/graph.h"
#include "sluice/init.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::nn {

/// The name of a part for `get_submodule` alone: its parameters are named as if they were its parent's.
struct Stage {
  std::string name;
};

/// A module's parameter, as a member of the module. It is tied by an assignment, as in PyTorch, before its module is called:
///
///     lm_head.weight = wte.weight;  // one parameter, `wte.weight`, which both train; its other name is `lm_head.weight`
///
/// Files hold it once, under its first name. A file that has it under its other names, too, is read if all are equal.
class Parameter : public Tensor {
public:
  Parameter() = default;
  /// A handle that is no member: assigning to it changes nothing but the handle.
  Parameter(const Parameter &other) : Tensor(other) {}
  Parameter &operator=(const Tensor &other);
  Parameter &operator=(const Parameter &other) { return *this = static_cast<const Tensor &>(other); }

private:
  bool isMember = false;
};

/// A part of a model with parameters. Sub-modules are members, named at construction:
///
///     struct Net : nn::Module {
///       using Module::Module;
///       nn::Linear fc1{this, "fc1", 784, 128}, fc2{this, "fc2", 128, 10};
///       Tensor forward(Tensor x) override { return fc2(relu(fc1(x))); }
///     };
///     Net net{graph};             // fc1.weight, fc1.bias, fc2.weight, fc2.bias
class Module {
public:
  using Where = std::source_location;
  using Named = std::vector<std::pair<std::string, Tensor>>;

  /// The whole model; its parameters' names have no prefix.
  explicit Module(Graph &graph, Where where = Where::current());
  /// A part of `parent`.
  Module(Module *parent, std::string name, Where where = Where::current());
  Module(Module *parent, Stage stage, Where where = Where::current());
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;
  virtual ~Module();

  /// What the module computes; it overrides the one that takes as many tensors as it does.
  virtual Tensor forward(Tensor x);
  virtual Tensor forward(Tensor a, Tensor b);
  virtual Tensor forward(Tensor a, Tensor b, Tensor c);
  virtual Tensor forward(Tensor a, Tensor b, Tensor c, Tensor d);
  /// Calls forward; errors inside it name this line too.
  Tensor operator()(Arg x);
  Tensor operator()(Arg a, Arg b);
  Tensor operator()(Arg a, Arg b, Arg c);
  Tensor operator()(Arg a, Arg b, Arg c, Arg d);

  /// A trained tensor. Its shape is static.
  Tensor parameter(const std::string &name, const Shape &shape, init::Init init, Where where = Where::current());
  /// A statistic: saved with the parameters, but not trained. Or, with the batch dimension first, what rows carry: each
  /// row of a training step reads what the same row of the step before was given by `copy_`, to which no gradient goes
  /// back. It begins with zeros, which evaluation and prediction always read; a row that is not in a call keeps what it
  /// has. Checkpoints hold it, weights do not.
  Tensor buffer(const std::string &name, const Shape &shape, init::Init init, Where where = Where::current());

  /// What calls of entry points leave to later ones (Graph::entry), in which alone it is written, by `copy_`: keys and values
  /// of the words so far, say. It begins with zeros, and neither weights nor checkpoints hold it. Its shape is static.
  Tensor cache(const std::string &name, const Shape &shape, Where where = Where::current());

  /// Of this module and those within, as ("conv1.weight", tensor).
  Named named_parameters() const;
  Named named_buffers() const;

  /// Sets whether `minimize` trains the parameters of this module and of its submodules (Tensor::requires_grad).
  /// Training steps still update the statistics of batch norm, as in PyTorch. Example of a frozen backbone:
  ///
  ///     net.backbone.requires_grad(false);
  Module &requires_grad(bool required, Where where = Where::current());

  /// Replaces the initial values of every parameter whose name within this module matches: `initialize("*.bias",
  /// init::zeros())`. '*' matches any characters. Data (init::from_file, init::from_npy) also replaces the values of
  /// matching statistics, as `--weights` does. A rule replaces those of statistics only if the pattern matches no
  /// parameter: `initialize("*.running_var", init::constant(4))`. A pattern without a match is an error.
  void initialize(std::string_view pattern, init::Init init, Where where = Where::current());

  /// The part of this name: "features.0", or a stage's name.
  Module &get_submodule(std::string_view name, Where where = Where::current());

  /// Moves parameters and buffers, those of parts too, in place; gradients and optimizer slots follow. Ops on them run
  /// there. Not once they are used.
  Module &to(const Device &device, Where where = Where::current());
  Module &cpu(Where where = Where::current());
  /// To the GPU that things are created on (DeviceScope), or to gpu(0).
  Module &cuda(Where where = Where::current());
  Module &cuda(int index, Where where = Where::current());
  /// Makes what `forward` builds from now on work on a device, in parts too; parameters and buffers live there. A
  /// part's own pin wins over that of the whole. Ops that need values from elsewhere get them by `Graph::set_copies`.
  Module &pin(const Device &device, Where where = Where::current());
  /// The function of <sluice/ops.h>, which the method would hide from `forward`.
  static Tensor pin(Arg x, const Device &device);

protected:
  /// The operand of a layer's op: errors name the line that calls the layer.
  Arg at(const Tensor &x) const;
  /// The dtype of the graph's parameters.
  DType dtype() const;
  Where declared() const { return created; }

private:
  // No name here may be that of a function of <sluice/ops.h>: `forward` would find the member instead.
  Tensor state(const char *kind, const std::string &name, const Shape &shape, init::Init init, Where where);
  Module(Module *parent, std::string name, bool isStage, Where where);
  struct Member {
    const char *kind;
    std::string path;
    Tensor tensor;
  };
  /// Whether it is not another module's by now (Parameter).
  bool isOwn(const Member &member) const;
  void collect(const char *kind, Named &into) const;
  /// Sets the initial values of every state in a list whose name within this module matches. Returns whether any does.
  bool initializeMatching(std::string_view pattern, const init::Init &init, const Named &states, Where at);
  /// States of this module and of the parts that have no pin of their own.
  void collectUnpinned(Named &into) const;
  void collectParts(std::vector<Module *> &into);
  template <class Forward> Tensor call(Where line, Forward forward);
  void enroll();
  [[noreturn]] void failForward(const char *parameters) const;
  /// Where it works: its pin, or that of the innermost module around it; null if there is none.
  const Device *pinnedTo() const;

  std::shared_ptr<detail::GraphImpl> graph;
  std::string path; ///< in front of its parameters' names
  std::string name; ///< for `get_submodule`, from the whole model
  Where created;
  std::size_t number = 0; ///< among the graph's layers
  Module *parent = nullptr;
  std::optional<Device> pinned;
  std::vector<Module *> children;
  std::vector<Member> members;
};

} // namespace sluice::nn
