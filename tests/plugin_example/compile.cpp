// The compile half: the supported ops, and the parameters of each launch.
#include "abacus.h"

#include <cstring>
#include <deque>
#include <string>

namespace abacus {

/// Throws with the reason why an op has no kernel.
[[noreturn]] static void refuse(const std::string &reason) { throw sluice::backend::Error(SLUICE_UNSUPPORTED, reason); }

/// The equation of an einsum: the letters of both operands and of the result.
static std::string equationOf(const sluice_op_view &op) {
  for (size_t i = 0; i < op.num_attributes; ++i)
    if (const sluice_attribute_view &attribute = *sluice_op_attribute_at(&op, i);
        std::strcmp(attribute.name, "equation") == 0 && attribute.kind == SLUICE_ATTRIBUTE_WORD)
      return attribute.word;
  return "";
}

/// Values are row-major f32 with the rows, if any, in dimension 0.
static void check(const sluice_type_view &type) {
  if (type.dtype != SLUICE_DTYPE_f32)
    refuse("abacus counts in f32 alone");
  if (type.num_layout > 0)
    refuse("abacus reads row-major tensors only");
  for (size_t i = 1; i < type.rank; ++i)
    if (type.shape[i] < 0)
      refuse("abacus wants the rows in dimension 0");
}

static Parameters parametersOfEinsum(const sluice_kernel_view &view, const sluice_op_view &op) {
  Parameters parameters;
  const sluice_type_view &a = *sluice_kernel_value_at(&view, op.operands[0]);
  const sluice_type_view &b = *sluice_kernel_value_at(&view, op.operands[1]);
  std::string equation = equationOf(op); // each product has one
  parameters.transposedB = equation == "ab,cb->ac";
  if ((equation != "ab,bc->ac" && !parameters.transposedB) || b.shape[0] < 0)
    refuse("abacus multiplies by 'ab,bc->ac' and 'ab,cb->ac', where the second matrix has no rows, not by '" +
           equation + "'");
  parameters.m = a.shape[0];
  parameters.k = a.shape[1];
  parameters.n = b.shape[parameters.transposedB ? 0 : 1];
  return parameters;
}

static Parameters parametersOfElements(const sluice_type_view &result) {
  Parameters parameters;
  bool hasRows = result.rank > 0 && result.shape[0] < 0;
  int64_t elements = 1;
  for (size_t i = hasRows ? 1 : 0; i < result.rank; ++i)
    elements *= result.shape[i];
  (hasRows ? parameters.elementsPerRow : parameters.elements) = elements;
  return parameters;
}

namespace {

/// A kernel, and its parameters.
struct Match {
  const char *function;
  Parameters parameters;
};

} // namespace

/// The kernel for an op. Refuses an op that has none.
static Match match(const sluice_kernel_view &view) {
  const sluice_op_view &op = *sluice_kernel_op_at(&view, 0);
  std::string name = op.name + std::strlen("sluice.");
  if (view.num_ops != 1 || !findKernel(name.c_str()))
    refuse(std::string("abacus can add, relu and einsum, but not ") + op.name);
  for (size_t i = 0; i < view.num_values; ++i)
    check(*sluice_kernel_value_at(&view, i));
  if (name == "einsum")
    return {"einsum", parametersOfEinsum(view, op)};
  return {name == "add" ? "add" : "relu", parametersOfElements(*sluice_kernel_value_at(&view, view.results[0]))};
}

namespace {

class Session {
public:
  static constexpr const char *name = "abacus";

  explicit Session(const sluice_target_options &options) {
    if (*options.settings)
      throw sluice::backend::Error(SLUICE_USAGE,
                                   std::string("abacus has no setting '").append(options.settings).append("'"));
  }

  void describe(sluice_target_info &info) const {
    info.device_type = "abacus";
    info.cpu = "beads";
    info.vector_bits = 32;
  }

  void supports(const sluice_kernel_view &op) const { match(op); }

  void prepare(const sluice_kernel_view &kernel, sluice_launch_info &launch) {
    Match found = match(kernel);
    Parameters &parameters = parameters_.emplace_back(found.parameters);
    launch.function = found.function;
    launch.parameters = &parameters;
    launch.parameters_bytes = sizeof(Parameters);
    launch.cost.lanes = 1;
    int64_t products = 2 * parameters.k * parameters.n;
    if (parameters.m < 0)
      launch.cost.flops_per_row = products;
    else
      launch.cost.flops = products * parameters.m;
  }

private:
  std::deque<Parameters> parameters_; // of the kernels prepared so far
};

} // namespace

const sluice_backend_compile &compileHalf() { return sluice::backend::compileTable<Session>; }

} // namespace abacus
