// The functions on tensors, under PyTorch's names and rules. Tensors broadcast as in NumPy; two tensors of different
// dtypes are an error (convert with `x.to(dtype)`); a number takes the dtype of the tensor beside it. `/` and `div`
// divide truly: integers and bool become the dtype of the graph's parameters (f32 unless set) first.
#pragma once

#include "sluice/tensor.h"

#include <functional>
#include <string>
#include <vector>

namespace sluice {

// --- elementwise
// ------------------------------------------------------------------------------------------------------

#define SLUICE_UNARY(name, op) Tensor name(Arg x);
SLUICE_UNARY_FUNCTIONS(SLUICE_UNARY)
#undef SLUICE_UNARY

Tensor leaky_relu(Arg x, double negative_slope = 0.01);
Tensor elu(Arg x, double alpha = 1.0);
enum class Gelu { none, tanh };
/// Gaussian error linear unit, exact (by erf) or by PyTorch's tanh approximation.
Tensor gelu(Arg x, Gelu approximate = Gelu::none);
/// min(max(x, min), max); an absent bound bounds nothing. Bounds of integers are whole numbers. No gradient flows where
/// x is at a bound or beyond.
Tensor clip(Arg x, std::optional<double> min = {}, std::optional<double> max = {});
Tensor clamp(Arg x, std::optional<double> min = {}, std::optional<double> max = {});
/// Changes the dtype: floats to integers round towards zero and saturate; anything but 0 is true.
Tensor cast(Arg x, DType dtype);
Tensor identity(Arg x);
Tensor stop_gradient(Arg x);
Tensor logical_not(Arg x);

#define SLUICE_BINARY(name, op)                                                                                        \
  Tensor name(Arg a, Arg b);                                                                                           \
  Tensor name(Arg a, double b);                                                                                        \
  Tensor name(double a, Arg b);
SLUICE_BINARY_FUNCTIONS(SLUICE_BINARY)
SLUICE_BINARY(div, )
#define SLUICE_COMPARISON(name, symbol) SLUICE_BINARY(name, )
SLUICE_COMPARISONS(SLUICE_COMPARISON)
#undef SLUICE_COMPARISON
#undef SLUICE_BINARY

#define SLUICE_LOGICAL(name, op) Tensor name(Arg a, Arg b);
SLUICE_LOGICAL_FUNCTIONS(SLUICE_LOGICAL)
#undef SLUICE_LOGICAL

Tensor operator-(Arg x);
#define SLUICE_OPERATOR(symbol)                                                                                        \
  Tensor operator symbol(Arg a, Arg b);                                                                                \
  Tensor operator symbol(Arg a, double b);                                                                             \
  Tensor operator symbol(double a, Arg b);
SLUICE_OPERATOR(+)
SLUICE_OPERATOR(-)
SLUICE_OPERATOR(*)
SLUICE_OPERATOR(/)
#define SLUICE_COMPARISON(name, symbol) SLUICE_OPERATOR(symbol)
SLUICE_COMPARISONS(SLUICE_COMPARISON)
#undef SLUICE_COMPARISON
#undef SLUICE_OPERATOR

/// Makes the handle x stand for the result, whose shape and dtype must be those of x; other handles keep the value that
/// they had, and so does a state (Tensor::copy_ changes one). Gives x.
#define SLUICE_ASSIGNMENT(symbol)                                                                                      \
  Tensor &operator symbol(AssignedArg x, Arg y);                                                                       \
  Tensor &operator symbol(AssignedArg x, double y);
SLUICE_ASSIGNMENT(+=)
SLUICE_ASSIGNMENT(-=)
SLUICE_ASSIGNMENT(*=)
SLUICE_ASSIGNMENT(/=)
#undef SLUICE_ASSIGNMENT

/// logical_not, logical_and, logical_or and logical_xor, of bool. `!x` is told as of the line of x. (`&&` and `||` are
/// C++'s own, and ask whether there are tensors.)
Tensor operator!(const Tensor &x);
Tensor operator&(Arg a, Arg b);
Tensor operator|(Arg a, Arg b);
Tensor operator^(Arg a, Arg b);

/// a where the condition holds, b elsewhere.
Tensor where(Arg condition, Arg a, Arg b);
Tensor where(Arg condition, Arg a, double b);
Tensor where(Arg condition, double a, Arg b);
/// Of the dtype of the graph's parameters.
Tensor where(Arg condition, double a, double b);

/// A constant of x's shape, its batch too, and of its dtype.
Tensor full_like(Arg x, double value);
Tensor zeros_like(Arg x);
Tensor ones_like(Arg x);

// --- reductions
// -------------------------------------------------------------------------------------------------------

/// Of integers and bool, i64.
Tensor sum(Arg x, Axes dim = {}, bool keepdim = false);
/// Divides by the elements there are: for the batch, its rows. Of floats only.
Tensor mean(Arg x, Axes dim = {}, bool keepdim = false);
/// Elements that tie share the gradient equally (PyTorch's amax and amin).
Tensor max(Arg x, Axes dim = {}, bool keepdim = false);
Tensor min(Arg x, Axes dim = {}, bool keepdim = false);
/// Index of the first maximum, in i32 or i64. More than 2^31 elements require i64.
Tensor argmax(Arg x, std::int64_t dim, bool keepdim = false, DType dtype = i32);
/// Of integers and bool, i64. The gradient of an element is the product of all others, where there are zeros too.
Tensor prod(Arg x, Axes dim = {}, bool keepdim = false);
/// Whether one element, or all, are not 0.
Tensor any(Arg x, Axes dim = {}, bool keepdim = false);
Tensor all(Arg x, Axes dim = {}, bool keepdim = false);
/// sum((x - mean)^2) / (n - correction), of n elements: 1 is that of a sample, 0 that of all there is. Not over the
/// batch.
Tensor var(Arg x, Axes dim = {}, std::int64_t correction = 1, bool keepdim = false);
/// The square root of the variance. No gradient flows where the variance is 0.
Tensor std(Arg x, Axes dim = {}, std::int64_t correction = 1, bool keepdim = false);
/// log(sum(exp(x))), computed without overflow.
Tensor logsumexp(Arg x, Axes dim = {}, bool keepdim = false);
Tensor softmax(Arg x, std::int64_t dim);
Tensor log_softmax(Arg x, std::int64_t dim);

// --- shape
// ------------------------------------------------------------------------------------------------------------

/// One size may be -1. As many elements lie before the batch dimension as did, and behind it, so that a row stays a
/// row. Or the batch is merged with what is behind it, as many elements as are left, in a dimension that is a multiple of the
/// batch: [batch, 16, 32] as {-1, 32} is [batch*16, 32], on which elementwise functions, reductions, products, norms, losses
/// and metrics work as on any rows. Reshaping takes it apart again. What needs the batch by itself (convolutions, outputs, scans)
/// says so.
Tensor reshape(Arg x, Shape shape);
Tensor view(Arg x, Shape shape);
Tensor flatten(Arg x, std::int64_t start_dim = 0, std::int64_t end_dim = -1);
Tensor permute(Arg x, Axes dims);
Tensor transpose(Arg x, std::int64_t dim0, std::int64_t dim1);
/// Removes dimensions of size 1: the given ones, or all.
Tensor squeeze(Arg x, Axes dim = {});
Tensor unsqueeze(Arg x, std::int64_t dim);
/// Broadcasts; -1 keeps a size.
Tensor expand(Arg x, Shape shape);
/// Elements start, start + step, ... below end; negative ones count from the end, and both are clamped. The batch can
/// only be taken whole: how many rows a part of it has, no shape can say.
Tensor slice(Arg x, std::int64_t dim, std::int64_t start, std::int64_t end = Tensor::toEnd, std::int64_t step = 1);
/// One index of a dimension, which is removed.
Tensor select(Arg x, std::int64_t dim, std::int64_t index);
/// Pads with a constant; pairs (before, after), the last dimension first, as in torch.nn.functional.pad. Negative
/// numbers crop. Not the batch.
Tensor pad(Arg x, std::vector<std::int64_t> pad, double value = 0.0);
/// Along any dimension but the batch.
Tensor cat(std::vector<Tensor> tensors, std::int64_t dim = 0,
           std::source_location where = std::source_location::current());
Tensor concat(std::vector<Tensor> tensors, std::int64_t dim = 0,
              std::source_location where = std::source_location::current());
/// Tensors of one shape along a new dimension.
Tensor stack(std::vector<Tensor> tensors, std::int64_t dim = 0,
             std::source_location where = std::source_location::current());
/// Parts of so many elements, the last one of what is left; or of these sizes, which add up to the dimension's. Not of
/// the batch.
std::vector<Tensor> split(Arg x, std::int64_t split_size, std::int64_t dim = 0);
std::vector<Tensor> split(Arg x, std::vector<std::int64_t> split_sizes, std::int64_t dim = 0);
/// Parts of equal sizes but for the last, which may be smaller: as many as asked for, or fewer.
std::vector<Tensor> chunk(Arg x, std::int64_t chunks, std::int64_t dim = 0);
/// The elements of the last two dimensions whose row + diagonal is at least (triu: at most) their column; 0 elsewhere.
Tensor tril(Arg x, std::int64_t diagonal = 0);
Tensor triu(Arg x, std::int64_t diagonal = 0);
/// Slices along a dimension, which is not the batch: y has the index's shape in its place, for which PyTorch allows one
/// dimension at most. A call whose input has indices out of range is refused; such an index that is computed is taken as the
/// first or the last.
Tensor index_select(Arg x, std::int64_t dim, const Tensor &index);
/// Rows of weight [num_embeddings, embedding_dim]: index [...] gives [..., embedding_dim]. No gradient reaches the row
/// `padding_idx`, which counts from the end where it is negative.
Tensor embedding(Arg index, const Tensor &weight, std::optional<std::int64_t> padding_idx = {});
/// A last dimension of `classes` elements: 1 at the label, 0 elsewhere. A call whose input has other labels than 0 to
/// classes - 1 is refused; a label that is computed and names no class gives zeros.
Tensor one_hot(Arg label, std::int64_t classes, DType dtype = f32);

// --- order
// ------------------------------------------------------------------------------------------------------------

struct CumsumOptions {
  bool exclusive = false; ///< an element is not in its own sum
  bool reverse = false;   ///< sums of what is behind an element
};
/// The sum of all elements up to each one along a dimension, which is not the batch; of integers and bool, i64. They are added
/// one after another, from the first to the last (with `reverse` from the last to the first), on every device.
Tensor cumsum(Arg x, std::int64_t dim, CumsumOptions options = {});

/// torch.gather: y[i][j] = x[index[i][j]][j] for dimension 0, and so on; y has the index's shape. Elsewhere than in the
/// dimension, x has as many elements as the index, or more. A call whose input has indices out of range is refused; such an
/// index that is computed is taken as the first or the last. The gradients of elements taken twice are added.
Tensor gather(Arg x, std::int64_t dim, const Tensor &index);
/// The same, where x and the index broadcast in all other dimensions.
Tensor take_along_dim(Arg x, const Tensor &index, std::int64_t dim);

struct TopK {
  Tensor values, indices; ///< of the requested dtype: i32 or i64
};
/// The k largest (or smallest) elements along a dimension, and their indices, in order. The dimension must not be the
/// batch. Among equal elements, the one with the least index is first; PyTorch does not specify this. NaN comes last.
/// Gradients flow through the values. A small k takes one pass along the dimension per element; a large k takes as much
/// work as `sort`. More than 2^31 elements require indices in i64.
TopK topk(Arg x, std::int64_t k, std::int64_t dim = -1, bool largest = true, bool sorted = true, DType dtype = i32);
/// topk of all elements. Equal elements stay in their order. The work grows as n log(n)^2.
TopK sort(Arg x, std::int64_t dim = -1, bool descending = false, DType dtype = i32);
Tensor argsort(Arg x, std::int64_t dim = -1, bool descending = false, DType dtype = i32);

// --- steps
// ------------------------------------------------------------------------------------------------------------

/// What a step of a scan leaves: the carried values for the next one, and what is stacked.
struct ScanStep {
  std::vector<Tensor> carried, stacked;
};
struct ScanOptions {
  bool reverse = false; ///< from the last slice to the first; what a step stacks lies where its slices lie
  /// Of all steps only what they carry is kept for their gradients, which compute the rest again: less memory, the same bits.
  bool recompute = false;
};
/// Does `body` for each slice of all `xs` along a dimension, which is not the batch: with the carried values, which begin as
/// `init`, and the slices, without that dimension. It is called once, to build one step; other tensors of the graph it may
/// read, parameters among them. Gives what the last step carries, and what all have stacked, along the same dimension:
///
///     ScanStep sums = scan({zeros_like(x.select(1, 0))}, {x}, 1, [](auto &carried, auto &slices) {
///       Tensor sum = carried[0] + slices[0];
///       return ScanStep{{sum}, {sum}};
///     });
ScanStep
scan(std::vector<Tensor> init, std::vector<Tensor> xs, std::int64_t dim,
     const std::function<ScanStep(const std::vector<Tensor> &carried, const std::vector<Tensor> &slices)> &body,
     ScanOptions options = {}, std::source_location where = std::source_location::current());

/// What `then` gives where the predicate, a bool without dimensions, holds, what `otherwise` gives elsewhere: alike in number,
/// shapes and dtypes. Both are called once, to build them; of a call of the program one is done, and its gradient alone. They may
/// read all tensors of the graph, parameters among them, and random numbers and updates of buffers have no place in them. A
/// branch is done on one device. All rows of a call, and all replicas, take one branch: a predicate that is made of rows is
/// one of all rows.
///
///     Tensor y = cond(loss > 2.0, [&] { return x * 0.5; }, [&] { return x; });
std::vector<Tensor> cond(Arg predicate, const std::function<std::vector<Tensor>()> &then,
                         const std::function<std::vector<Tensor>()> &otherwise);
Tensor cond(Arg predicate, const std::function<Tensor()> &then, const std::function<Tensor()> &otherwise);

// --- products, convolutions, pools
// ------------------------------------------------------------------------------------

/// NumPy's matmul: leading dimensions broadcast, a vector is a matrix of one row (on the left) or column.
Tensor matmul(Arg a, Arg b);
/// A product by PyTorch's notation: einsum("bthd,bshd->bhts", q, k) sums over d alone. Each dimension has a letter, letters
/// that the result lacks are summed over, and without `->` the result has those that are there once, in the order of the
/// alphabet. Sizes of 1 broadcast. `...` stands for all other dimensions of an operand, which are aligned from the last; without
/// `->` they come first. No letter is twice in an operand.
Tensor einsum(const std::string &equation, Arg a, Arg b);
/// Sums and permutes.
Tensor einsum(const std::string &equation, Arg x);
/// x weight^T + bias; weight is [out, in].
Tensor linear(Arg x, const Tensor &weight, const Tensor &bias = {});

/// `length` neighbouring elements along a dimension, from one on that is known when the program runs: a scalar of i32 or i64. One that
/// is an input is checked; another is brought into 0 to size - length. slice() is for what the graph knows.
Tensor narrow(Arg x, std::int64_t dim, const Tensor &start, std::int64_t length);
/// x with `source` in the place of what `narrow` would give.
Tensor slice_scatter(Arg x, const Tensor &source, std::int64_t dim, const Tensor &start);

struct AttentionOptions {
  /// Added to the scores, or of bool whether a query may attend to a key; broadcasts to [N, H, T, S]. No gradient reaches one of bool.
  Tensor attn_mask = {};
  bool is_causal = false;           ///< query t attends to keys 0 to t alone; also where there is a mask
  std::optional<double> scale = {}; ///< 1 / sqrt(D) unless given
};
/// softmax(query key^T * scale + mask) value over the keys, for queries [N, H, T, D], keys [N, Hk, S, D] and values
/// [N, Hk, S, Dv]: [N, H, T, Dv]. Hk divides H: as many heads after one another share those of keys and values (PyTorch's
/// enable_gqa). Without heads they are [N, T, D], and so on, or [T, D]. A query that may attend to no key gives 0.
///
/// It is an op of its own: scores are computed block by block, and never stored as a whole. Products and a softmax that
/// are written out are what they say.
Tensor scaled_dot_product_attention(Arg query, const Tensor &key, const Tensor &value, AttentionOptions options = {});

struct ConvOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
};
/// Cross-correlation of x [N, C, H, W] with weight [O, C / groups, kH, kW].
Tensor conv2d(Arg x, const Tensor &weight, const Tensor &bias = {}, ConvOptions options = {});

struct MaxPoolOptions {
  Size2 stride = 0; ///< 0: the kernel's size
  Size2 padding = 0, dilation = 1;
  bool ceil_mode = false; ///< the last window may hang over the end; so may the only one, by less than a stride
};
Tensor max_pool2d(Arg x, Size2 kernel_size, MaxPoolOptions options = {});

struct AvgPoolOptions {
  Size2 stride = 0; ///< 0: the kernel's size
  Size2 padding = 0;
  bool ceil_mode = false, count_include_pad = true;
};
Tensor avg_pool2d(Arg x, Size2 kernel_size, AvgPoolOptions options = {});

struct ConvOptions1d {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
/// Cross-correlation of x [N, C, L] with weight [O, C / groups, k].
Tensor conv1d(Arg x, const Tensor &weight, const Tensor &bias = {}, ConvOptions1d options = {});

struct ConvTransposeOptions {
  Size2 stride = 1, padding = 0, output_padding = 0;
  std::int64_t groups = 1;
  Size2 dilation = 1;
};
/// The gradient of conv2d with respect to its input, of x [N, C, H, W] and weight [C, O / groups, kH, kW]. The result
/// is (H - 1) * stride - 2 * padding + dilation * (kH - 1) + output_padding + 1 high, and its width by the same rule:
/// of the sizes that conv2d would make H of, output_padding, which is below the stride, chooses one.
Tensor conv_transpose2d(Arg x, const Tensor &weight, const Tensor &bias = {}, ConvTransposeOptions options = {});

/// Means over `output_size` windows. All windows have one size if `output_size` divides the image size. Otherwise,
/// their sizes differ by one, and they may overlap. An infinity or NaN affects only the means of its windows.
Tensor adaptive_avg_pool2d(Arg x, Size2 output_size);
/// Every element so many times along height and width (PyTorch's mode "nearest").
Tensor interpolate(Arg x, Size2 scale_factor);

struct BatchNormOptions {
  double eps = 1e-5, momentum = 0.1;
};
/// Normalizes x [N, C, ...] by the statistics of the batch in training, and by the running statistics elsewhere. The
/// running statistics are states (buffers of a module), which training moves towards those of each batch. If several
/// calls share them, they are updated once per call, in the order of the calls. A batch of one value per channel does
/// not change the running variance. If no batch has more values, compiling the graph for training is an error.
Tensor batch_norm(Arg x, const Tensor &running_mean, const Tensor &running_var, const Tensor &weight = {},
                  const Tensor &bias = {}, BatchNormOptions options = {});

/// (x - mean) / sqrt(var + eps) * weight + bias, mean and var (biased) over the last dimensions, which are
/// normalized_shape, as are weight and bias. They are not the batch.
Tensor layer_norm(Arg x, Shape normalized_shape, const Tensor &weight = {}, const Tensor &bias = {}, double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions; eps is that of the dtype unless given.
Tensor rms_norm(Arg x, Shape normalized_shape, const Tensor &weight = {}, std::optional<double> eps = {});
/// As layer_norm, mean and var over the channels of a group of x [N, C, ...] and all that they have; weight and bias
/// are [C]. C is a multiple of num_groups.
Tensor group_norm(Arg x, std::int64_t num_groups, const Tensor &weight = {}, const Tensor &bias = {},
                  double eps = 1e-5);

/// In training 0 with probability p, and x / (1 - p) elsewhere; x itself outside of training. Each call draws numbers of
/// its own, by the seed, the number of the step and the element's place in the whole batch: the same on every device, and
/// on any number of them.
Tensor dropout(Arg x, double p = 0.5);

// --- losses and metrics
// -----------------------------------------------------------------------------------------------

/// Of the losses of all positions: a mean divides by how many there are, which is by the rows of the call and not by its
/// capacity. Of no rows, it is no number.
enum class Reduction { mean, sum, none };

struct CrossEntropyOptions {
  Tensor weight = {}; ///< [C]: of a position whose label is c, w[c]. No gradient reaches it.
  /// A label, such as PyTorch's default of -100, of positions that count in no loss; none: all count.
  std::optional<std::int64_t> ignore_index = {};
  double label_smoothing = 0; ///< of each position's share, what all classes have alike; from 0 to 1
  Reduction reduction = Reduction::mean;
};
/// Of logits [N, C, d1, ...], or [C], and integer labels [N, d1, ...], or [], each from 0 to C - 1 or `ignore_index`: a call
/// whose input has others is refused. With e for label_smoothing, the loss of a position is
///   -sum over c of w[c] * ((1 - e) * [c is the label] + e / C) * log_softmax(logits)[c],
/// and 0 where the label is ignored. A mean divides the sum of them by that of the weights w[label] of all labels that are not
/// ignored; if all are, it is no number.
/// Classes may also lie in another dimension: cross_entropy(logits.transpose(1, 2), label) reads logits [N, T, C] where they
/// lie. A float target of the logits' shape has each class's share, in place of [c is the label]; then no position is
/// ignored, and a mean divides by the number of positions.
///
/// The loss of an evaluation is the sum over all labels that are not ignored, in all calls, divided by their number.
/// Without such labels, the loss is null. Executables print the perplexity, exp(nll / words), of two metrics with these
/// names:
///   g.metric("nll", cross_entropy(logits, label, {.ignore_index = -100, .reduction = Reduction::none}).sum(1).mean());
///   g.metric("words", ne(label, -100).to(f32).sum(1).mean());
/// Without "words", nll is the mean per word.
Tensor cross_entropy(Arg logits, const Tensor &target, CrossEntropyOptions options);
Tensor cross_entropy(Arg logits, const Tensor &target, Reduction reduction = Reduction::mean);

struct NllLossOptions {
  Tensor weight = {};                            ///< as in CrossEntropyOptions
  std::optional<std::int64_t> ignore_index = {}; ///< likewise
  Reduction reduction = Reduction::mean;
};
/// Of log-probabilities [N, C, d1, ...] in place of logits: -w[label] * log_probabilities[label] of each position.
Tensor nll_loss(Arg log_probabilities, const Tensor &label, NllLossOptions options);
Tensor nll_loss(Arg log_probabilities, const Tensor &label, Reduction reduction = Reduction::mean);

struct BinaryCrossEntropyOptions {
  Tensor weight = {}; ///< of each loss; broadcasts to the logits' shape
  Tensor pos_weight =
      {}; ///< of what the target says is there, such as [C] for classes in the last dimension; broadcasts, too
  Reduction reduction = Reduction::mean;
};
/// -weight * (pos_weight * target * log(sigmoid(x)) + (1 - target) * log(1 - sigmoid(x))) for logits x and targets of their
/// shape from 0 to 1, computed as (1 - target) * x + (1 + (pos_weight - 1) * target) * softplus(-x), which no x overflows. A
/// mean divides by the number of losses, whatever their weights.
Tensor binary_cross_entropy_with_logits(Arg logits, const Tensor &target, BinaryCrossEntropyOptions options = {});

/// Of d = x - target, which have one shape: d^2.
Tensor mse_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean);
/// |d|, with gradient 0 at 0.
Tensor l1_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean);
/// d^2 / 2 where |d| < delta, delta * (|d| - delta / 2) elsewhere.
Tensor huber_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean, double delta = 1.0);
/// d^2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere; l1_loss where beta is 0.
Tensor smooth_l1_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean, double beta = 1.0);

/// The share of positions whose largest logit is the label's, of those whose label is not ignored: logits and labels as in
/// cross_entropy. The first of equal logits is the largest.
Tensor accuracy(Arg logits, const Tensor &label, std::optional<std::int64_t> ignore_index = {});
/// Likewise of positions where the label's logit is among the k largest: at most k classes, its own among them, have one that is
/// not below it. Equal logits count against it, so that a network that says the same of all classes scores nothing.
Tensor top_k_accuracy(Arg logits, const Tensor &label, std::int64_t k, std::optional<std::int64_t> ignore_index = {});

// --- gradients
// ------------------------------------------------------------------------------------------------------------

/// The gradients of a scalar with respect to values that it depends on: parameters, copies, inputs or intermediate
/// values. As with torch.autograd.grad, a gradient has the shape, dtype and device of its value. A graph may report
/// gradients, or write values computed from them into parameters (Tensor::copy_). It may also compute another loss from
/// them. All ops have gradients of gradients except batch norm with statistics of each replica's own rows. That is an
/// error at the line of this call when the graph is compiled. In training, these are the gradients of the values that a
/// training step computes; elsewhere, of those that `predict` computes.
///
///     std::vector<Tensor> gradients = grad(loss, {weight, bias});
std::vector<Tensor> grad(Arg loss, const std::vector<Tensor> &values);

// --- work
// -----------------------------------------------------------------------------------------------------------------

/// Makes the call that computed x work on a device; gives x. What crosses for it follows `Graph::set_copies`. Inputs,
/// states, constants and copies are not computed, and values fixed elsewhere cannot be.
Tensor pin(Arg x, const Device &device);

// --- methods
// ----------------------------------------------------------------------------------------------------------

#define SLUICE_METHOD(name, op)                                                                                        \
  inline Tensor Tensor::name(Where where) const { return sluice::name(Arg(*this, where)); }
SLUICE_UNARY_FUNCTIONS(SLUICE_METHOD)
#undef SLUICE_METHOD

inline Tensor Tensor::to(DType dtype, Where where) const { return cast(Arg(*this, where), dtype); }
inline Tensor Tensor::clip(std::optional<double> min, std::optional<double> max, Where where) const {
  return sluice::clip(Arg(*this, where), min, max);
}
inline Tensor Tensor::clamp(std::optional<double> min, std::optional<double> max, Where where) const {
  return sluice::clamp(Arg(*this, where), min, max);
}
inline Tensor Tensor::detach(Where where) const { return stop_gradient(Arg(*this, where)); }
inline Tensor Tensor::sum(Axes dim, bool keepdim, Where where) const {
  return sluice::sum(Arg(*this, where), std::move(dim), keepdim);
}
inline Tensor Tensor::mean(Axes dim, bool keepdim, Where where) const {
  return sluice::mean(Arg(*this, where), std::move(dim), keepdim);
}
inline Tensor Tensor::max(Axes dim, bool keepdim, Where where) const {
  return sluice::max(Arg(*this, where), std::move(dim), keepdim);
}
inline Tensor Tensor::min(Axes dim, bool keepdim, Where where) const {
  return sluice::min(Arg(*this, where), std::move(dim), keepdim);
}
inline Tensor Tensor::prod(Axes dim, bool keepdim, Where where) const {
  return sluice::prod(Arg(*this, where), std::move(dim), keepdim);
}
inline Tensor Tensor::any(Axes dim, bool keepdim, Where where) const {
  return sluice::any(Arg(*this, where), std::move(dim), keepdim);
}
inline Tensor Tensor::all(Axes dim, bool keepdim, Where where) const {
  return sluice::all(Arg(*this, where), std::move(dim), keepdim);
}
inline Tensor Tensor::var(Axes dim, std::int64_t correction, bool keepdim, Where where) const {
  return sluice::var(Arg(*this, where), std::move(dim), correction, keepdim);
}
inline Tensor Tensor::std(Axes dim, std::int64_t correction, bool keepdim, Where where) const {
  return sluice::std(Arg(*this, where), std::move(dim), correction, keepdim);
}
inline Tensor Tensor::logsumexp(Axes dim, bool keepdim, Where where) const {
  return sluice::logsumexp(Arg(*this, where), std::move(dim), keepdim);
}
inline Tensor Tensor::argmax(std::int64_t dim, bool keepdim, DType dtype, Where where) const {
  return sluice::argmax(Arg(*this, where), dim, keepdim, dtype);
}
inline Tensor Tensor::softmax(std::int64_t dim, Where where) const { return sluice::softmax(Arg(*this, where), dim); }
inline Tensor Tensor::log_softmax(std::int64_t dim, Where where) const {
  return sluice::log_softmax(Arg(*this, where), dim);
}
inline Tensor Tensor::reshape(Shape shape, Where where) const {
  return sluice::reshape(Arg(*this, where), std::move(shape));
}
inline Tensor Tensor::view(Shape shape, Where where) const { return sluice::view(Arg(*this, where), std::move(shape)); }
inline Tensor Tensor::flatten(std::int64_t start_dim, std::int64_t end_dim, Where where) const {
  return sluice::flatten(Arg(*this, where), start_dim, end_dim);
}
inline Tensor Tensor::permute(Axes dims, Where where) const {
  return sluice::permute(Arg(*this, where), std::move(dims));
}
inline Tensor Tensor::transpose(std::int64_t dim0, std::int64_t dim1, Where where) const {
  return sluice::transpose(Arg(*this, where), dim0, dim1);
}
inline Tensor Tensor::squeeze(Axes dim, Where where) const {
  return sluice::squeeze(Arg(*this, where), std::move(dim));
}
inline Tensor Tensor::unsqueeze(std::int64_t dim, Where where) const {
  return sluice::unsqueeze(Arg(*this, where), dim);
}
inline Tensor Tensor::expand(Shape shape, Where where) const {
  return sluice::expand(Arg(*this, where), std::move(shape));
}
inline Tensor Tensor::slice(std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step,
                            Where where) const {
  return sluice::slice(Arg(*this, where), dim, start, end, step);
}
inline Tensor Tensor::select(std::int64_t dim, std::int64_t index, Where where) const {
  return sluice::select(Arg(*this, where), dim, index);
}
inline std::vector<Tensor> Tensor::split(std::int64_t split_size, std::int64_t dim, Where where) const {
  return sluice::split(Arg(*this, where), split_size, dim);
}
inline std::vector<Tensor> Tensor::split(std::vector<std::int64_t> split_sizes, std::int64_t dim, Where where) const {
  return sluice::split(Arg(*this, where), std::move(split_sizes), dim);
}
inline std::vector<Tensor> Tensor::chunk(std::int64_t chunks, std::int64_t dim, Where where) const {
  return sluice::chunk(Arg(*this, where), chunks, dim);
}
inline Tensor Tensor::tril(std::int64_t diagonal, Where where) const {
  return sluice::tril(Arg(*this, where), diagonal);
}
inline Tensor Tensor::triu(std::int64_t diagonal, Where where) const {
  return sluice::triu(Arg(*this, where), diagonal);
}
inline Tensor Tensor::index_select(std::int64_t dim, const Tensor &index, Where where) const {
  return sluice::index_select(Arg(*this, where), dim, index);
}
inline Tensor Tensor::gather(std::int64_t dim, const Tensor &index, Where where) const {
  return sluice::gather(Arg(*this, where), dim, index);
}
inline Tensor Tensor::matmul(const Tensor &other, Where where) const {
  return sluice::matmul(Arg(*this, where), Arg(other, where));
}

} // namespace sluice
