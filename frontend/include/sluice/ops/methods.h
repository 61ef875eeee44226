// Definitions of the methods of Tensor (tensor.h), each by the function of the same name.
#pragma once

#include "sluice/ops/elementwise.h"
#include "sluice/ops/indexing.h"
#include "sluice/ops/products.h"
#include "sluice/ops/reductions.h"
#include "sluice/ops/shape.h"

#include <utility>

namespace sluice {

/// Each function of SLUICE_UNARY_FUNCTIONS as a method.
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
