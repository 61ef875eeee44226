// Batch normalization and its running statistics.
#include "frontend/graph/Call.h"

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::Rows;

Tensor batch_norm(Arg x, const Tensor &running_mean, const Tensor &running_var, const Tensor &weight,
                  const Tensor &bias, BatchNormOptions options) {
  Call call("batch_norm", Call::present({x.tensor, running_mean, running_var, weight, bias}), x.where, Rows::merged);
  call.requireFloat(x.tensor);
  if (Call::seenRank(x.tensor) < 2)
    call.fail("the input has " + std::to_string(Call::seenRank(x.tensor)) + " dimensions, not at least 2");
  if (!(running_mean && running_var))
    call.fail("needs running_mean and running_var");
  if (!(options.eps > 0) || !(options.momentum >= 0 && options.momentum <= 1))
    call.fail("eps is positive and momentum within [0, 1]");
  int64_t channels = call.axis(x.tensor, 1);
  for (const Tensor &vector : Call::present({running_mean, running_var, weight, bias})) {
    call.requireSameDType(x.tensor, vector);
    if (Call::rank(vector) != 1 || Call::shape(vector)[0] != Call::shape(x.tensor)[channels])
      call.fail("statistics, weight and bias are [" + call.print(Call::shape(x.tensor)[channels]) + "], not " +
                call.print(vector));
  }
  Tensor scale = weight ? weight : call.full(1.0, Call::type(running_mean));
  Tensor shift = bias ? bias : call.full(0.0, Call::type(running_mean));
  // For merged rows, the dimension merged with the batch temporarily follows the channels.
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, Call::rank(x.tensor)));
  std::swap(order[1], order[size_t(channels)]);
  SmallVector<Tensor> results =
      call.emitAll(ir::BatchNormOp::getOperationName(),
                   {call.permute(x.tensor, order), scale, shift, call.latest(running_mean), call.latest(running_var)},
                   {call.real("eps", options.eps), call.real("momentum", options.momentum)});
  call.update(running_mean, results[1]);
  call.update(running_var, results[2]);
  return call.permute(results[0], order);
}

} // namespace sluice
