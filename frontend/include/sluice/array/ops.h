// The functions of <sluice/ops.h> and <sluice/formulas.h> on arrays, with the same names, arguments, rules and results.
// Numbers, shapes and options are compile-time constants: each new value compiles the function again. Pass numbers that
// change, such as learning rates, as arrays.
//
// Differences: scan, cond, pin and stop_gradient exist for tensors only; a function for `jit` may call them. Use
// `detach` instead of stop_gradient. dropout takes a key (array/random.h). batch_norm is that of evaluation. allclose
// returns a bool and waits. Options that contain tensors have a struct with arrays, such as ArrayRopeOptions.
#pragma once

#include "sluice/array/call.h"
#include "sluice/formulas.h"

namespace sluice {

/// The result of topk and sort on arrays.
struct ArrayTopK {
  Array values, indices;
};

/// A stateless function object for all overloads of a function.
#define SLUICE_FUNCTION(name) [](auto &&...its) { return sluice::name(its...); }

// --- elementwise

#define SLUICE_UNARY(name, op)                                                                                         \
  inline Array name(ArrayArg x) { return detail::apply(#name, x.where, SLUICE_FUNCTION(name), x); }
SLUICE_UNARY_FUNCTIONS(SLUICE_UNARY)
#undef SLUICE_UNARY

/// Functions of two operands. One of them may be a number.
#define SLUICE_BINARY(name, op)                                                                                        \
  inline Array name(ArrayArg a, ArrayArg b) { return detail::apply(#name, a.where, SLUICE_FUNCTION(name), a, b); }     \
  inline Array name(ArrayArg a, double b) { return detail::apply(#name, a.where, SLUICE_FUNCTION(name), a, b); }       \
  inline Array name(double a, ArrayArg b) { return detail::apply(#name, b.where, SLUICE_FUNCTION(name), a, b); }
SLUICE_BINARY_FUNCTIONS(SLUICE_BINARY)
SLUICE_BINARY(div, )
SLUICE_BITWISE_FUNCTIONS(SLUICE_BINARY)
SLUICE_SHIFT_FUNCTIONS(SLUICE_BINARY)
#define SLUICE_COMPARISON(name, symbol) SLUICE_BINARY(name, )
SLUICE_COMPARISONS(SLUICE_COMPARISON)
#undef SLUICE_COMPARISON
#undef SLUICE_BINARY

#define SLUICE_LOGICAL(name, op)                                                                                       \
  inline Array name(ArrayArg a, ArrayArg b) { return detail::apply(#name, a.where, SLUICE_FUNCTION(name), a, b); }
SLUICE_LOGICAL_FUNCTIONS(SLUICE_LOGICAL)
#undef SLUICE_LOGICAL

inline Array bitwise_not(ArrayArg x) { return detail::apply("bitwise_not", x.where, SLUICE_FUNCTION(bitwise_not), x); }
inline Array logical_not(ArrayArg x) { return detail::apply("logical_not", x.where, SLUICE_FUNCTION(logical_not), x); }
inline Array operator-(ArrayArg x) { return neg(x); }
inline Array operator~(ArrayArg x) { return bitwise_not(x); }
/// logical_not. Errors name no line.
inline Array operator!(const Array &x) { return logical_not(x); }
#define SLUICE_OPERATOR(name, symbol)                                                                                  \
  inline Array operator symbol(ArrayArg a, ArrayArg b) { return name(a, b); }                                          \
  inline Array operator symbol(ArrayArg a, double b) { return name(a, b); }                                            \
  inline Array operator symbol(double a, ArrayArg b) { return name(a, b); }
SLUICE_OPERATOR(add, +)
SLUICE_OPERATOR(sub, -)
SLUICE_OPERATOR(mul, *)
SLUICE_OPERATOR(div, /)
SLUICE_OPERATOR(remainder, %)
SLUICE_OPERATOR(bitwise_and, &)
SLUICE_OPERATOR(bitwise_or, |)
SLUICE_OPERATOR(bitwise_xor, ^)
SLUICE_OPERATOR(bitwise_left_shift, <<)
SLUICE_OPERATOR(bitwise_right_shift, >>)
SLUICE_COMPARISONS(SLUICE_OPERATOR)
#undef SLUICE_OPERATOR

inline Array where(ArrayArg condition, ArrayArg a, ArrayArg b) {
  return detail::apply("where", condition.where, SLUICE_FUNCTION(where), condition, a, b);
}
inline Array where(ArrayArg condition, ArrayArg a, double b) {
  return detail::apply("where", condition.where, SLUICE_FUNCTION(where), condition, a, b);
}
inline Array where(ArrayArg condition, double a, ArrayArg b) {
  return detail::apply("where", condition.where, SLUICE_FUNCTION(where), condition, a, b);
}
inline Array where(ArrayArg condition, double a, double b) {
  return detail::apply("where", condition.where, SLUICE_FUNCTION(where), condition, a, b);
}

inline Array full_like(ArrayArg x, double value) {
  const std::vector<std::int64_t> &shape = x.array.shape(x.where);
  return full(Shape(std::vector<Dim>(shape.begin(), shape.end())), value, x.array.dtype(x.where),
              x.array.device(x.where), x.where);
}
inline Array zeros_like(ArrayArg x) { return full_like(x, 0); }
inline Array ones_like(ArrayArg x) { return full_like(x, 1); }

inline Array leaky_relu(ArrayArg x, double negative_slope = 0.01) {
  return detail::apply("leaky_relu", x.where, SLUICE_FUNCTION(leaky_relu), x, negative_slope);
}
inline Array elu(ArrayArg x, double alpha = 1.0) {
  return detail::apply("elu", x.where, SLUICE_FUNCTION(elu), x, alpha);
}
inline Array gelu(ArrayArg x, Gelu approximate = Gelu::none) {
  return detail::apply("gelu", x.where, SLUICE_FUNCTION(gelu), x, approximate);
}
inline Array clip(ArrayArg x, std::optional<double> min = {}, std::optional<double> max = {}) {
  return detail::apply("clip", x.where, SLUICE_FUNCTION(clip), x, min, max);
}
inline Array clamp(ArrayArg x, std::optional<double> min = {}, std::optional<double> max = {}) {
  return detail::apply("clamp", x.where, SLUICE_FUNCTION(clamp), x, min, max);
}
inline Array cast(ArrayArg x, DType dtype) { return detail::apply("cast", x.where, SLUICE_FUNCTION(cast), x, dtype); }

// --- reductions

inline Array sum(ArrayArg x, Axes dim = {}, bool keepdim = false) {
  return detail::apply("sum", x.where, SLUICE_FUNCTION(sum), x, dim, keepdim);
}
inline Array mean(ArrayArg x, Axes dim = {}, bool keepdim = false) {
  return detail::apply("mean", x.where, SLUICE_FUNCTION(mean), x, dim, keepdim);
}
inline Array max(ArrayArg x, Axes dim = {}, bool keepdim = false) {
  return detail::apply("max", x.where, SLUICE_FUNCTION(max), x, dim, keepdim);
}
inline Array min(ArrayArg x, Axes dim = {}, bool keepdim = false) {
  return detail::apply("min", x.where, SLUICE_FUNCTION(min), x, dim, keepdim);
}
inline Array argmax(ArrayArg x, std::int64_t dim, bool keepdim = false, DType dtype = i32) {
  return detail::apply("argmax", x.where, SLUICE_FUNCTION(argmax), x, dim, keepdim, dtype);
}
inline Array prod(ArrayArg x, Axes dim = {}, bool keepdim = false) {
  return detail::apply("prod", x.where, SLUICE_FUNCTION(prod), x, dim, keepdim);
}
inline Array any(ArrayArg x, Axes dim = {}, bool keepdim = false) {
  return detail::apply("any", x.where, SLUICE_FUNCTION(any), x, dim, keepdim);
}
inline Array all(ArrayArg x, Axes dim = {}, bool keepdim = false) {
  return detail::apply("all", x.where, SLUICE_FUNCTION(all), x, dim, keepdim);
}
inline Array var(ArrayArg x, Axes dim = {}, std::int64_t correction = 1, bool keepdim = false) {
  return detail::apply("var", x.where, SLUICE_FUNCTION(var), x, dim, correction, keepdim);
}
inline Array std(ArrayArg x, Axes dim = {}, std::int64_t correction = 1, bool keepdim = false) {
  return detail::apply("std", x.where, SLUICE_FUNCTION(std), x, dim, correction, keepdim);
}
inline Array logsumexp(ArrayArg x, Axes dim = {}, bool keepdim = false) {
  return detail::apply("logsumexp", x.where, SLUICE_FUNCTION(logsumexp), x, dim, keepdim);
}
inline Array softmax(ArrayArg x, std::int64_t dim) {
  return detail::apply("softmax", x.where, SLUICE_FUNCTION(softmax), x, dim);
}
inline Array log_softmax(ArrayArg x, std::int64_t dim) {
  return detail::apply("log_softmax", x.where, SLUICE_FUNCTION(log_softmax), x, dim);
}

// --- shapes

inline Array reshape(ArrayArg x, Shape shape) {
  return detail::apply("reshape", x.where, SLUICE_FUNCTION(reshape), x, shape);
}
inline Array view(ArrayArg x, Shape shape) { return detail::apply("view", x.where, SLUICE_FUNCTION(view), x, shape); }
inline Array flatten(ArrayArg x, std::int64_t start_dim = 0, std::int64_t end_dim = -1) {
  return detail::apply("flatten", x.where, SLUICE_FUNCTION(flatten), x, start_dim, end_dim);
}
inline Array permute(ArrayArg x, Axes dims) {
  return detail::apply("permute", x.where, SLUICE_FUNCTION(permute), x, dims);
}
inline Array transpose(ArrayArg x, std::int64_t dim0, std::int64_t dim1) {
  return detail::apply("transpose", x.where, SLUICE_FUNCTION(transpose), x, dim0, dim1);
}
inline Array squeeze(ArrayArg x, Axes dim = {}) {
  return detail::apply("squeeze", x.where, SLUICE_FUNCTION(squeeze), x, dim);
}
inline Array unsqueeze(ArrayArg x, std::int64_t dim) {
  return detail::apply("unsqueeze", x.where, SLUICE_FUNCTION(unsqueeze), x, dim);
}
inline Array expand(ArrayArg x, Shape shape) {
  return detail::apply("expand", x.where, SLUICE_FUNCTION(expand), x, shape);
}
inline Array slice(ArrayArg x, std::int64_t dim, std::int64_t start, std::int64_t end = Array::toEnd,
                   std::int64_t step = 1) {
  return detail::apply("slice", x.where, SLUICE_FUNCTION(slice), x, dim, start, end, step);
}
inline Array select(ArrayArg x, std::int64_t dim, std::int64_t index) {
  return detail::apply("select", x.where, SLUICE_FUNCTION(select), x, dim, index);
}
inline Array pad(ArrayArg x, std::vector<std::int64_t> pad, double value = 0.0) {
  return detail::apply("pad", x.where, SLUICE_FUNCTION(pad), x, pad, value);
}
inline Array cat(std::vector<Array> tensors, std::int64_t dim = 0,
                 std::source_location where = std::source_location::current()) {
  return detail::apply("cat", where, SLUICE_FUNCTION(cat), tensors, dim);
}
inline Array concat(std::vector<Array> tensors, std::int64_t dim = 0,
                    std::source_location where = std::source_location::current()) {
  return detail::apply("concat", where, SLUICE_FUNCTION(concat), tensors, dim);
}
inline Array stack(std::vector<Array> tensors, std::int64_t dim = 0,
                   std::source_location where = std::source_location::current()) {
  return detail::apply("stack", where, SLUICE_FUNCTION(stack), tensors, dim);
}
inline std::vector<Array> split(ArrayArg x, std::int64_t split_size, std::int64_t dim = 0) {
  return detail::applyAll("split", x.where, SLUICE_FUNCTION(split), x, split_size, dim);
}
inline std::vector<Array> split(ArrayArg x, std::vector<std::int64_t> split_sizes, std::int64_t dim = 0) {
  return detail::applyAll("split", x.where, SLUICE_FUNCTION(split), x, split_sizes, dim);
}
inline std::vector<Array> chunk(ArrayArg x, std::int64_t chunks, std::int64_t dim = 0) {
  return detail::applyAll("chunk", x.where, SLUICE_FUNCTION(chunk), x, chunks, dim);
}
inline Array tril(ArrayArg x, std::int64_t diagonal = 0) {
  return detail::apply("tril", x.where, SLUICE_FUNCTION(tril), x, diagonal);
}
inline Array triu(ArrayArg x, std::int64_t diagonal = 0) {
  return detail::apply("triu", x.where, SLUICE_FUNCTION(triu), x, diagonal);
}

// --- products

inline Array matmul(ArrayArg a, ArrayArg b) { return detail::apply("matmul", a.where, SLUICE_FUNCTION(matmul), a, b); }
inline Array einsum(const std::string &equation, ArrayArg a, ArrayArg b) {
  return detail::apply("einsum", a.where, SLUICE_FUNCTION(einsum), equation, a, b);
}
inline Array einsum(const std::string &equation, ArrayArg x) {
  return detail::apply("einsum", x.where, SLUICE_FUNCTION(einsum), equation, x);
}
inline Array linear(ArrayArg x, const Array &weight, const Array &bias = {}) {
  return detail::apply("linear", x.where, SLUICE_FUNCTION(linear), x, weight, bias);
}

/// Like AttentionOptions, with an array as the mask.
struct ArrayAttentionOptions {
  Array attn_mask = {};
  bool is_causal = false;
  std::optional<double> scale = {};
};
inline Array scaled_dot_product_attention(ArrayArg query, const Array &key, const Array &value,
                                          const ArrayAttentionOptions &options = {}) {
  return detail::apply(
      "scaled_dot_product_attention", query.where,
      [](Arg q, const Tensor &k, const Tensor &v, const Tensor &mask, bool causal, std::optional<double> scale) {
        return scaled_dot_product_attention(q, k, v, {mask, causal, scale});
      },
      query, key, value, options.attn_mask, options.is_causal, options.scale);
}

// --- indices

inline Array index_select(ArrayArg x, std::int64_t dim, const Array &index) {
  return detail::apply("index_select", x.where, SLUICE_FUNCTION(index_select), x, dim, index);
}
inline Array embedding(ArrayArg index, const Array &weight, std::optional<std::int64_t> padding_idx = {}) {
  return detail::apply("embedding", index.where, SLUICE_FUNCTION(embedding), index, weight, padding_idx);
}
inline Array one_hot(ArrayArg label, std::int64_t classes, DType dtype = f32) {
  return detail::apply("one_hot", label.where, SLUICE_FUNCTION(one_hot), label, classes, dtype);
}
inline Array gather(ArrayArg x, std::int64_t dim, const Array &index) {
  return detail::apply("gather", x.where, SLUICE_FUNCTION(gather), x, dim, index);
}
inline Array take_along_dim(ArrayArg x, const Array &index, std::int64_t dim) {
  return detail::apply("take_along_dim", x.where, SLUICE_FUNCTION(take_along_dim), x, index, dim);
}
inline Array narrow(ArrayArg x, std::int64_t dim, const Array &start, std::int64_t length) {
  return detail::apply("narrow", x.where, SLUICE_FUNCTION(narrow), x, dim, start, length);
}
inline Array slice_scatter(ArrayArg x, const Array &source, std::int64_t dim, const Array &start) {
  return detail::apply("slice_scatter", x.where, SLUICE_FUNCTION(slice_scatter), x, source, dim, start);
}

// --- order

inline Array cumsum(ArrayArg x, std::int64_t dim, CumsumOptions options = {}) {
  return detail::apply("cumsum", x.where, SLUICE_FUNCTION(cumsum), x, dim, options);
}
inline ArrayTopK topk(ArrayArg x, std::int64_t k, std::int64_t dim = -1, bool largest = true, bool sorted = true,
                      DType dtype = i32) {
  std::vector<Array> results =
      detail::applyAll("topk", x.where, SLUICE_FUNCTION(topk), x, k, dim, largest, sorted, dtype);
  return {std::move(results[0]), std::move(results[1])};
}
inline ArrayTopK sort(ArrayArg x, std::int64_t dim = -1, bool descending = false, DType dtype = i32) {
  std::vector<Array> results = detail::applyAll("sort", x.where, SLUICE_FUNCTION(sort), x, dim, descending, dtype);
  return {std::move(results[0]), std::move(results[1])};
}
inline Array argsort(ArrayArg x, std::int64_t dim = -1, bool descending = false, DType dtype = i32) {
  return detail::apply("argsort", x.where, SLUICE_FUNCTION(argsort), x, dim, descending, dtype);
}

// --- norms

inline Array layer_norm(ArrayArg x, Shape normalized_shape, const Array &weight = {}, const Array &bias = {},
                        double eps = 1e-5) {
  return detail::apply("layer_norm", x.where, SLUICE_FUNCTION(layer_norm), x, normalized_shape, weight, bias, eps);
}
inline Array rms_norm(ArrayArg x, Shape normalized_shape, const Array &weight = {}, std::optional<double> eps = {}) {
  return detail::apply("rms_norm", x.where, SLUICE_FUNCTION(rms_norm), x, normalized_shape, weight, eps);
}
inline Array group_norm(ArrayArg x, std::int64_t num_groups, const Array &weight = {}, const Array &bias = {},
                        double eps = 1e-5) {
  return detail::apply("group_norm", x.where, SLUICE_FUNCTION(group_norm), x, num_groups, weight, bias, eps);
}
/// Uses the running statistics, as in evaluation. Only modules of the graph API update them.
inline Array batch_norm(ArrayArg x, const Array &running_mean, const Array &running_var, const Array &weight = {},
                        const Array &bias = {}, double eps = 1e-5) {
  return detail::apply(
      "batch_norm", x.where,
      [](Arg its, const Tensor &mean, const Tensor &var, const Tensor &scale, const Tensor &shift, double epsilon) {
        return batch_norm(its, mean, var, scale, shift, {.eps = epsilon});
      },
      x, running_mean, running_var, weight, bias, eps);
}

// --- windows

inline Array conv2d(ArrayArg x, const Array &weight, const Array &bias = {}, ConvOptions options = {}) {
  return detail::apply("conv2d", x.where, SLUICE_FUNCTION(conv2d), x, weight, bias, options);
}
inline Array max_pool2d(ArrayArg x, Size2 kernel_size, MaxPoolOptions options = {}) {
  return detail::apply("max_pool2d", x.where, SLUICE_FUNCTION(max_pool2d), x, kernel_size, options);
}
inline Array avg_pool2d(ArrayArg x, Size2 kernel_size, AvgPoolOptions options = {}) {
  return detail::apply("avg_pool2d", x.where, SLUICE_FUNCTION(avg_pool2d), x, kernel_size, options);
}
inline Array conv1d(ArrayArg x, const Array &weight, const Array &bias = {}, ConvOptions1d options = {}) {
  return detail::apply("conv1d", x.where, SLUICE_FUNCTION(conv1d), x, weight, bias, options);
}
inline Array conv_transpose2d(ArrayArg x, const Array &weight, const Array &bias = {},
                              ConvTransposeOptions options = {}) {
  return detail::apply("conv_transpose2d", x.where, SLUICE_FUNCTION(conv_transpose2d), x, weight, bias, options);
}
inline Array adaptive_avg_pool2d(ArrayArg x, Size2 output_size) {
  return detail::apply("adaptive_avg_pool2d", x.where, SLUICE_FUNCTION(adaptive_avg_pool2d), x, output_size);
}
inline Array interpolate(ArrayArg x, Size2 scale_factor) {
  return detail::apply("interpolate", x.where, SLUICE_FUNCTION(interpolate), x, scale_factor);
}
inline Array interpolate(ArrayArg x, Size2 scale_factor, InterpolateOptions options) {
  return detail::apply("interpolate", x.where, SLUICE_FUNCTION(interpolate), x, scale_factor, options);
}

// --- losses

inline Array cross_entropy(ArrayArg logits, const Array &target, Reduction reduction = Reduction::mean) {
  return detail::apply("cross_entropy", logits.where, SLUICE_FUNCTION(cross_entropy), logits, target, reduction);
}
inline Array nll_loss(ArrayArg log_probabilities, const Array &label, Reduction reduction = Reduction::mean) {
  return detail::apply("nll_loss", log_probabilities.where, SLUICE_FUNCTION(nll_loss), log_probabilities, label,
                       reduction);
}
inline Array mse_loss(ArrayArg x, const Array &target, Reduction reduction = Reduction::mean) {
  return detail::apply("mse_loss", x.where, SLUICE_FUNCTION(mse_loss), x, target, reduction);
}
inline Array l1_loss(ArrayArg x, const Array &target, Reduction reduction = Reduction::mean) {
  return detail::apply("l1_loss", x.where, SLUICE_FUNCTION(l1_loss), x, target, reduction);
}
inline Array huber_loss(ArrayArg x, const Array &target, Reduction reduction = Reduction::mean, double delta = 1.0) {
  return detail::apply("huber_loss", x.where, SLUICE_FUNCTION(huber_loss), x, target, reduction, delta);
}
inline Array smooth_l1_loss(ArrayArg x, const Array &target, Reduction reduction = Reduction::mean, double beta = 1.0) {
  return detail::apply("smooth_l1_loss", x.where, SLUICE_FUNCTION(smooth_l1_loss), x, target, reduction, beta);
}
inline Array accuracy(ArrayArg logits, const Array &label, std::optional<std::int64_t> ignore_index = {}) {
  return detail::apply("accuracy", logits.where, SLUICE_FUNCTION(accuracy), logits, label, ignore_index);
}
inline Array top_k_accuracy(ArrayArg logits, const Array &label, std::int64_t k,
                            std::optional<std::int64_t> ignore_index = {}) {
  return detail::apply("top_k_accuracy", logits.where, SLUICE_FUNCTION(top_k_accuracy), logits, label, k, ignore_index);
}

/// Like CrossEntropyOptions, with an array of weights.
struct ArrayCrossEntropyOptions {
  Array weight = {};
  std::optional<std::int64_t> ignore_index = {};
  double label_smoothing = 0;
  Reduction reduction = Reduction::mean;
};
inline Array cross_entropy(ArrayArg logits, const Array &target, const ArrayCrossEntropyOptions &options) {
  return detail::apply(
      "cross_entropy", logits.where,
      [](Arg x, const Tensor &label, const Tensor &weight, std::optional<std::int64_t> ignored, double smoothing,
         Reduction reduction) { return cross_entropy(x, label, {weight, ignored, smoothing, reduction}); },
      logits, target, options.weight, options.ignore_index, options.label_smoothing, options.reduction);
}

/// Like NllLossOptions, with an array of weights.
struct ArrayNllLossOptions {
  Array weight = {};
  std::optional<std::int64_t> ignore_index = {};
  Reduction reduction = Reduction::mean;
};
inline Array nll_loss(ArrayArg log_probabilities, const Array &label, const ArrayNllLossOptions &options) {
  return detail::apply(
      "nll_loss", log_probabilities.where,
      [](Arg x, const Tensor &its, const Tensor &weight, std::optional<std::int64_t> ignored, Reduction reduction) {
        return nll_loss(x, its, {weight, ignored, reduction});
      },
      log_probabilities, label, options.weight, options.ignore_index, options.reduction);
}

/// Like BinaryCrossEntropyOptions, with arrays of weights.
struct ArrayBinaryCrossEntropyOptions {
  Array weight = {}, pos_weight = {};
  Reduction reduction = Reduction::mean;
};
inline Array binary_cross_entropy_with_logits(ArrayArg logits, const Array &target,
                                              const ArrayBinaryCrossEntropyOptions &options = {}) {
  return detail::apply(
      "binary_cross_entropy_with_logits", logits.where,
      [](Arg x, const Tensor &its, const Tensor &weight, const Tensor &positive, Reduction reduction) {
        return binary_cross_entropy_with_logits(x, its, {weight, positive, reduction});
      },
      logits, target, options.weight, options.pos_weight, options.reduction);
}

// --- formulas

inline Array prelu(ArrayArg x, const Array &weight) {
  return detail::apply("prelu", x.where, SLUICE_FUNCTION(prelu), x, weight);
}
inline Array masked_fill(ArrayArg x, const Array &mask, double value) {
  return detail::apply("masked_fill", x.where, SLUICE_FUNCTION(masked_fill), x, mask, value);
}
inline Array argmin(ArrayArg x, std::int64_t dim, bool keepdim = false, DType dtype = i32) {
  return detail::apply("argmin", x.where, SLUICE_FUNCTION(argmin), x, dim, keepdim, dtype);
}
inline Array norm(ArrayArg x, double p = 2, Axes dim = {}, bool keepdim = false) {
  return detail::apply("norm", x.where, SLUICE_FUNCTION(norm), x, p, dim, keepdim);
}
inline Array normalize(ArrayArg x, double p = 2, std::int64_t dim = 1, double eps = 1e-12) {
  return detail::apply("normalize", x.where, SLUICE_FUNCTION(normalize), x, p, dim, eps);
}
inline Array repeat(ArrayArg x, std::vector<std::int64_t> repeats) {
  return detail::apply("repeat", x.where, SLUICE_FUNCTION(repeat), x, repeats);
}
inline Array flip(ArrayArg x, Axes dims) { return detail::apply("flip", x.where, SLUICE_FUNCTION(flip), x, dims); }
inline Array roll(ArrayArg x, std::int64_t shifts, std::int64_t dim) {
  return detail::apply("roll", x.where, SLUICE_FUNCTION(roll), x, shifts, dim);
}
inline Array pad(ArrayArg x, std::vector<std::int64_t> pad, PadMode mode) {
  return detail::apply("pad", x.where, SLUICE_FUNCTION(pad), x, pad, mode);
}
inline Array pixel_shuffle(ArrayArg x, std::int64_t upscale_factor) {
  return detail::apply("pixel_shuffle", x.where, SLUICE_FUNCTION(pixel_shuffle), x, upscale_factor);
}
inline Array pixel_unshuffle(ArrayArg x, std::int64_t downscale_factor) {
  return detail::apply("pixel_unshuffle", x.where, SLUICE_FUNCTION(pixel_unshuffle), x, downscale_factor);
}
inline Array scatter_add(ArrayArg x, std::int64_t dim, const Array &index, const Array &src) {
  return detail::apply("scatter_add", x.where, SLUICE_FUNCTION(scatter_add), x, dim, index, src);
}
inline Array index_add(ArrayArg x, std::int64_t dim, const Array &index, const Array &source) {
  return detail::apply("index_add", x.where, SLUICE_FUNCTION(index_add), x, dim, index, source);
}
inline Array interpolate_to(ArrayArg x, Size2 size, InterpolateOptions options = {}) {
  return detail::apply("interpolate_to", x.where, SLUICE_FUNCTION(interpolate_to), x, size, options);
}
inline Array instance_norm(ArrayArg x, const Array &weight = {}, const Array &bias = {}, double eps = 1e-5) {
  return detail::apply("instance_norm", x.where, SLUICE_FUNCTION(instance_norm), x, weight, bias, eps);
}
inline Array local_response_norm(ArrayArg x, std::int64_t size, double alpha = 1e-4, double beta = 0.75,
                                 double k = 1.0) {
  return detail::apply("local_response_norm", x.where, SLUICE_FUNCTION(local_response_norm), x, size, alpha, beta, k);
}

inline Array isclose(ArrayArg a, const Array &b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) {
  return detail::apply("isclose", a.where, SLUICE_FUNCTION(isclose), a, b, rtol, atol, equal_nan);
}
/// Whether isclose holds for all elements. Waits.
inline bool allclose(ArrayArg a, const Array &b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) {
  return detail::apply("allclose", a.where, SLUICE_FUNCTION(allclose), a, b, rtol, atol, equal_nan).item<bool>(a.where);
}
inline Array trace(ArrayArg x) { return detail::apply("trace", x.where, SLUICE_FUNCTION(trace), x); }
inline Array tile(ArrayArg x, std::vector<std::int64_t> dims) {
  return detail::apply("tile", x.where, SLUICE_FUNCTION(tile), x, dims);
}
inline Array diag(ArrayArg x, std::int64_t diagonal = 0) {
  return detail::apply("diag", x.where, SLUICE_FUNCTION(diag), x, diagonal);
}
inline std::vector<Array> meshgrid(const std::vector<Array> &arrays, Indexing indexing = Indexing::ij,
                                   std::source_location where = std::source_location::current()) {
  return detail::applyAll("meshgrid", where, SLUICE_FUNCTION(meshgrid), arrays, indexing);
}

/// Like RopeOptions, with an array of positions.
struct ArrayRopeOptions {
  double base = 10000;
  bool interleaved = false;
  Array position = {};
};
inline Array rope(ArrayArg x, const ArrayRopeOptions &options = {}) {
  return detail::apply(
      "rope", x.where,
      [](Arg its, double base, bool interleaved, const Tensor &position) {
        return rope(its, {base, interleaved, position});
      },
      x, options.base, options.interleaved, options.position);
}

#undef SLUICE_FUNCTION

// --- methods

#define SLUICE_METHOD(name, op)                                                                                        \
  inline Array Array::name(Where where) const { return sluice::name(ArrayArg(*this, where)); }
SLUICE_UNARY_FUNCTIONS(SLUICE_METHOD)
#undef SLUICE_METHOD
inline Array Array::to(DType dtype, Where where) const { return sluice::cast(ArrayArg(*this, where), dtype); }
inline Array Array::clip(std::optional<double> min, std::optional<double> max, Where where) const {
  return sluice::clip(ArrayArg(*this, where), min, max);
}
inline Array Array::clamp(std::optional<double> min, std::optional<double> max, Where where) const {
  return sluice::clamp(ArrayArg(*this, where), min, max);
}
inline Array Array::sum(Axes dim, bool keepdim, Where where) const {
  return sluice::sum(ArrayArg(*this, where), std::move(dim), keepdim);
}
inline Array Array::mean(Axes dim, bool keepdim, Where where) const {
  return sluice::mean(ArrayArg(*this, where), std::move(dim), keepdim);
}
inline Array Array::max(Axes dim, bool keepdim, Where where) const {
  return sluice::max(ArrayArg(*this, where), std::move(dim), keepdim);
}
inline Array Array::min(Axes dim, bool keepdim, Where where) const {
  return sluice::min(ArrayArg(*this, where), std::move(dim), keepdim);
}
inline Array Array::prod(Axes dim, bool keepdim, Where where) const {
  return sluice::prod(ArrayArg(*this, where), std::move(dim), keepdim);
}
inline Array Array::any(Axes dim, bool keepdim, Where where) const {
  return sluice::any(ArrayArg(*this, where), std::move(dim), keepdim);
}
inline Array Array::all(Axes dim, bool keepdim, Where where) const {
  return sluice::all(ArrayArg(*this, where), std::move(dim), keepdim);
}
inline Array Array::var(Axes dim, std::int64_t correction, bool keepdim, Where where) const {
  return sluice::var(ArrayArg(*this, where), std::move(dim), correction, keepdim);
}
inline Array Array::std(Axes dim, std::int64_t correction, bool keepdim, Where where) const {
  return sluice::std(ArrayArg(*this, where), std::move(dim), correction, keepdim);
}
inline Array Array::norm(double p, Axes dim, bool keepdim, Where where) const {
  return sluice::norm(ArrayArg(*this, where), p, std::move(dim), keepdim);
}
inline Array Array::logsumexp(Axes dim, bool keepdim, Where where) const {
  return sluice::logsumexp(ArrayArg(*this, where), std::move(dim), keepdim);
}
inline Array Array::argmax(std::int64_t dim, bool keepdim, DType dtype, Where where) const {
  return sluice::argmax(ArrayArg(*this, where), dim, keepdim, dtype);
}
inline Array Array::softmax(std::int64_t dim, Where where) const {
  return sluice::softmax(ArrayArg(*this, where), dim);
}
inline Array Array::log_softmax(std::int64_t dim, Where where) const {
  return sluice::log_softmax(ArrayArg(*this, where), dim);
}
inline Array Array::reshape(Shape shape, Where where) const {
  return sluice::reshape(ArrayArg(*this, where), std::move(shape));
}
inline Array Array::view(Shape shape, Where where) const {
  return sluice::view(ArrayArg(*this, where), std::move(shape));
}
inline Array Array::flatten(std::int64_t start_dim, std::int64_t end_dim, Where where) const {
  return sluice::flatten(ArrayArg(*this, where), start_dim, end_dim);
}
inline Array Array::permute(Axes dims, Where where) const {
  return sluice::permute(ArrayArg(*this, where), std::move(dims));
}
inline Array Array::transpose(std::int64_t dim0, std::int64_t dim1, Where where) const {
  return sluice::transpose(ArrayArg(*this, where), dim0, dim1);
}
inline Array Array::squeeze(Axes dim, Where where) const {
  return sluice::squeeze(ArrayArg(*this, where), std::move(dim));
}
inline Array Array::unsqueeze(std::int64_t dim, Where where) const {
  return sluice::unsqueeze(ArrayArg(*this, where), dim);
}
inline Array Array::expand(Shape shape, Where where) const {
  return sluice::expand(ArrayArg(*this, where), std::move(shape));
}
inline Array Array::slice(std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step,
                          Where where) const {
  return sluice::slice(ArrayArg(*this, where), dim, start, end, step);
}
inline Array Array::select(std::int64_t dim, std::int64_t index, Where where) const {
  return sluice::select(ArrayArg(*this, where), dim, index);
}
inline std::vector<Array> Array::split(std::int64_t split_size, std::int64_t dim, Where where) const {
  return sluice::split(ArrayArg(*this, where), split_size, dim);
}
inline std::vector<Array> Array::split(std::vector<std::int64_t> split_sizes, std::int64_t dim, Where where) const {
  return sluice::split(ArrayArg(*this, where), std::move(split_sizes), dim);
}
inline std::vector<Array> Array::chunk(std::int64_t chunks, std::int64_t dim, Where where) const {
  return sluice::chunk(ArrayArg(*this, where), chunks, dim);
}
inline Array Array::tril(std::int64_t diagonal, Where where) const {
  return sluice::tril(ArrayArg(*this, where), diagonal);
}
inline Array Array::triu(std::int64_t diagonal, Where where) const {
  return sluice::triu(ArrayArg(*this, where), diagonal);
}
inline Array Array::index_select(std::int64_t dim, const Array &index, Where where) const {
  return sluice::index_select(ArrayArg(*this, where), dim, index);
}
inline Array Array::gather(std::int64_t dim, const Array &index, Where where) const {
  return sluice::gather(ArrayArg(*this, where), dim, index);
}
inline Array Array::matmul(const Array &other, Where where) const {
  return sluice::matmul(ArrayArg(*this, where), ArrayArg(other, where));
}
inline Array Array::t(Where where) const {
  if (dim(where) != 2)
    throw Error("t: the array has " + std::to_string(dim(where)) + " dimensions, not 2", where);
  return transpose(0, 1, where);
}

/// Replaces the elements of x, for all its handles, by the result, which must have the shape, dtype and device of x.
/// Returns x.
#define SLUICE_ASSIGNMENT(symbol)                                                                                      \
  inline Array &operator symbol##=(AssignedArray x, ArrayArg y) {                                                      \
    return detail::assign(x, ArrayArg(x.array, x.where) symbol y);                                                     \
  }                                                                                                                    \
  inline Array &operator symbol##=(AssignedArray x, double y) {                                                        \
    return detail::assign(x, ArrayArg(x.array, x.where) symbol y);                                                     \
  }
SLUICE_ASSIGNMENT(+)
SLUICE_ASSIGNMENT(-)
SLUICE_ASSIGNMENT(*)
SLUICE_ASSIGNMENT(/)
#undef SLUICE_ASSIGNMENT

} // namespace sluice
