#include "tests/e2e/torch/MixedGraph.h"
#include "sluice/sluice.h"
#include <random>

namespace sluice::test {

namespace {

class MixedGrower {
public:
  MixedGrower(uint32_t seed, DType dtype, int64_t batch) : seed(seed), random(seed), dtype(dtype) {
    graph.set_capacity(batch);
    graph.set_dtype(dtype);
    auto [channels, height, width] = kMixedImage;
    Tensor image = graph.input("image", dtype, {rows, channels, height, width});
    label = graph.input("label", i32, {rows});
    // Multiplying by a parameter makes the image's gradient observable.
    add(image * parameter({channels, height, width}));
    add(linear(use(0).flatten(1), 12));
    add(use(0).flatten(2));
  }

  std::string run(uint32_t most) {
    add(unary(any(), seed / 2)); // a few graphs cover all functions, with even and odd seeds alike
    for (uint32_t i = 0, ops = 3 + below(most - 2); i < ops; ++i)
      add(small(grow(any())));
    Tensor last = use(tensors.size() - 1), logits = linear(last.flatten(1), kMixedClasses);
    Tensor loss = lossOf(logits);
    for (auto [tensor, used] : tensors) // a plain mean would not detect errors in softmax and batch norm
      if (!used)
        loss = loss + square(tensor + abs(tensor) * 0.5).mean() * 0.1;
    graph.output("last", last);
    graph.output("probabilities", softmax(logits, 1));
    graph.minimize(loss, optim::SGD{.lr = 0, .momentum = 0.9});
    return graph.str();
  }

private:
  uint32_t below(int64_t limit) { return uint32_t(random() % uint32_t(limit)); }
  bool coin() { return below(2) != 0; }
  void add(const Tensor &x) { tensors.push_back({x}); }
  const Tensor &use(size_t index) {
    tensors[index].used = true;
    return tensors[index].tensor;
  }
  Tensor any() { return use(below(int64_t(tensors.size()))); }
  /// Any dimension but the batch.
  int64_t anyDim(const Tensor &x) { return 1 + below(x.dim() - 1); }
  static int64_t sizeOf(const Tensor &x, int64_t dim) { return x.size(dim).size; }
  std::string newName() { return std::string("p").append(std::to_string(names++)); }

  Tensor parameter(Shape shape) { return net.parameter(newName(), shape, init::uniform(-1, 1)); }
  template <typename Layer, typename... Arguments> Layer &layer(Arguments... arguments) {
    auto made = std::make_unique<Layer>(&net, newName(), arguments...);
    Layer &result = *made;
    layers.push_back(std::move(made));
    return result;
  }
  Tensor linear(const Tensor &x, int64_t width) {
    return layer<nn::Linear>(sizeOf(x, -1), width, nn::LinearOptions{.bias = coin()})(x);
  }

  /// Bounds the size of tensors.
  Tensor small(Tensor x) {
    for (int64_t dim = 1; dim < x.dim(); ++dim)
      if (sizeOf(x, dim) > 16)
        x = x.slice(dim, below(3), 16);
    return x;
  }

  /// A tensor of x's shape: another value, or a broadcast parameter.
  Tensor partnerOf(const Tensor &x) {
    for (int tries = 0; tries < 4; ++tries)
      if (size_t index = below(int64_t(tensors.size())); tensors[index].tensor.shape() == x.shape())
        return use(index);
    std::vector<Dim> shape;
    for (int64_t dim = 1; dim < x.dim(); ++dim)
      shape.push_back(coin() ? sizeOf(x, dim) : 1);
    return parameter(Shape(shape));
  }

  Tensor grow(const Tensor &x) {
    switch (below(9)) {
    case 0:
      return unary(x, below(1000));
    case 1:
      return binary(x, partnerOf(x));
    case 2:
      return casts(x, partnerOf(x));
    case 3:
      return reduction(x);
    case 4:
      return product(x);
    case 5:
      return movement(x);
    case 6:
      return normalised(x);
    default:
      return window(x);
    }
  }

  Tensor unary(const Tensor &x, size_t number) {
    static const std::vector<Tensor (*)(const Tensor &)> functions{
        [](const Tensor &x) { return relu(x); },
        [](const Tensor &x) { return tanh(x); },
        [](const Tensor &x) { return sigmoid(x); },
        [](const Tensor &x) { return silu(x); },
        [](const Tensor &x) { return softplus(x); },
        [](const Tensor &x) { return gelu(x); },
        [](const Tensor &x) { return gelu(x, Gelu::tanh); },
        [](const Tensor &x) { return hardswish(x); },
        [](const Tensor &x) { return hardsigmoid(x * 3.0); },
        [](const Tensor &x) { return leaky_relu(x, 0.1); },
        [](const Tensor &x) { return elu(x, 0.7); },
        [](const Tensor &x) { return relu6(x * 5.0); },
        [](const Tensor &x) { return clip(x, -0.7, 0.9); },
        [](const Tensor &x) { return sin(x) + cos(x * 0.7); },
        [](const Tensor &x) { return erf(x); },
        [](const Tensor &x) { return asin(x * 0.9 / (1.0 + abs(x))) + acos(sin(x) * 0.7); },
        [](const Tensor &x) { return atan(x * 2.0) * cosh(tanh(x)); },
        [](const Tensor &x) { return sinh(tanh(x)) + asinh(x * 3.0); },
        [](const Tensor &x) { return acosh(1.5 + square(x)) + atanh(sin(x) * 0.7); },
        [](const Tensor &x) { return exp(tanh(x)); },
        [](const Tensor &x) { return log(square(x) + 0.5); },
        [](const Tensor &x) { return log1p(abs(x)); },
        [](const Tensor &x) { return expm1(tanh(x)); },
        [](const Tensor &x) { return remainder(x * 3.0, 0.7); },
        [](const Tensor &x) { return sqrt(square(x) + 0.3); },
        [](const Tensor &x) { return x * rsqrt(square(x) + 0.3); },
        [](const Tensor &x) { return reciprocal(1.5 + sin(x)); },
        [](const Tensor &x) { return pow(abs(x) + 0.5, 1.5) - x; },
        [](const Tensor &x) { return -x + sign(x) * 0.2; },
        [](const Tensor &x) { return x - floor(x) + ceil(x * 2.0) * 0.1 + round(x * 3.0) * x * 0.1; },
    };
    return functions[number % functions.size()](x);
  }

  Tensor binary(const Tensor &x, const Tensor &y) {
    switch (below(7)) {
    case 0:
      return x + y;
    case 1:
      return x - y * 0.5;
    case 2:
      return x * tanh(y);
    case 3:
      return x / (1.0 + abs(y));
    case 4:
      return maximum(x, y);
    case 5:
      return minimum(x, y);
    default:
      return pow(square(x) + 0.5, tanh(y));
    }
  }

  Tensor casts(const Tensor &x, const Tensor &y) {
    DType wider = dtype == f32 ? f64 : f32;
    switch (below(6)) {
    case 0:
      return where(gt(x, y), x, y * 0.5);
    case 1:
      return dtype != f64 ? tanh(x.to(wider)).to(dtype) : x * gt(x.detach(), 0.25).to(dtype);
    case 2:
      return x * where(logical_xor(lt(x, 0.1), logical_and(le(x, 1.5), logical_not(ge(x, y)))), 0.5, x);
    case 3:
      return where(logical_or(isnan(x), isinf(y)), 1.0, x * y);
    case 4: {
      Tensor whole = (x * 8.0).to(i32);
      return x + (((whole & 12) ^ (~whole << 1)) | (whole >> 2)).to(dtype) * 0.02;
    }
    default:
      return x + (x * 4.0).to(i32).to(dtype) * 0.25 + x.detach() * le(x, y).to(dtype);
    }
  }

  Tensor reduction(const Tensor &x) {
    int64_t dim = anyDim(x);
    Axes axes = coin() ? Axes(dim) : Axes{dim, x.dim() - 1 == dim ? 0 : x.dim() - 1};
    switch (below(11)) {
    case 0:
      return x - x.mean(axes, true);
    case 1:
      return x / (1.0 + abs(x).sum(axes, true));
    case 2:
      return x * sigmoid(x.sum({0}, true));
    case 3:
      return x - x.max(axes, true) * 0.5;
    case 4:
      return x * x.min(axes, true);
    case 5:
      return softmax(x, dim) * double(sizeOf(x, dim));
    case 6:
      return x * x.var(dim, sizeOf(x, dim) > 1 ? below(2) : 0, true);
    case 7:
      return coin() ? x - logsumexp(x, axes, true) * 0.5 : where(gt(x, 1.5).any(axes, true), x * 0.5, x);
    case 8:
      return coin() ? tanh(x) * prod(1.0 + tanh(x) * 0.3, dim, true) : where(lt(x, 1.0).all(dim, true), x, sin(x));
    case 9:
      return cumsum(x, dim, {.exclusive = coin(), .reverse = coin()}) * 0.3;
    default:
      return coin() ? log_softmax(x, dim) : x + argmax(x, dim, true).to(dtype) * 0.1;
    }
  }

  Tensor product(const Tensor &x) {
    int64_t rank = x.dim(), last = sizeOf(x, -1);
    switch (rank == 2 ? below(2) * 4 : below(rank == 3 ? 7 : 9)) {
    case 1:
      return matmul(x, x.transpose(rank - 1, rank - 2)) * (1.0 / double(last));
    case 2:
      return matmul(parameter({4, sizeOf(x, -2)}), x);
    case 3:
      return matmul(softmax(matmul(x, x.transpose(rank - 1, rank - 2)), rank - 1), x);
    case 4: // rows that are summed, and rows that remain
      if (rank == 2)
        return einsum("na,ab->nb", x, tanh(einsum("na,nb->ab", x, x * 0.25) * 0.1));
      return summedOverRows(rank == 3 ? x : x.flatten(2));
    case 5: // batch rows, and several letters with one role
      return rank == 3 ? einsum("nab,nb->nba", x, einsum("nab,cab->nbc", x, parameter({2, sizeOf(x, 1), last})).mean(2))
                       : einsum("nabc,dbc->nad", x, parameter({5, sizeOf(x, 2), last}));
    case 6: // separate letters, none of them free
      return rank == 3 ? x * einsum("nab,nab->n", x, tanh(x)).reshape({rows, 1, 1}) * 0.1
                       : einsum("nabc,cda->bdn", x, parameter({last, 3, sizeOf(x, 1)})).permute({2, 0, 1});
    case 7: // attention with heads after the positions
      return einsum("nhts,nshd->nthd", softmax(einsum("nthd,nshd->nhts", x, x * 0.5), 3), sigmoid(x));
    case 8: // an inner batch, which is innermost in the result
      return einsum("nabc,dac->nbda", x, parameter({3, sizeOf(x, 1), last}));
    default:
      return linear(x, 1 + below(20));
    }
  }

  Tensor summedOverRows(const Tensor &x) {
    Tensor all = einsum("nab,nac->bc", x, x * 0.25);
    return einsum("nab,bc->nac", x, tanh(all * 0.1).slice(1, 0, 7));
  }

  Tensor movement(const Tensor &x) {
    int64_t rank = x.dim(), dim = anyDim(x), size = sizeOf(x, dim);
    switch (below(10)) {
    case 0:
      return x.transpose(dim, anyDim(x));
    case 1:
      return size > 2 ? x.slice(dim, below(2), size, 1 + below(2)) : x.flatten(1);
    case 2:
      return pad(x, {int64_t(below(2)), int64_t(below(3))}, coin() ? 0.0 : 0.5);
    case 3:
      return cat({x, partnerOf(x) + x * 0.5}, dim);
    case 4:
      return rank > 2 ? x.flatten(1) : x.reshape({rows, size, 1});
    case 5:
      return rank > 2 ? x.select(dim, below(size)) : x.unsqueeze(1);
    case 6:
      return indexed(x, dim);
    case 7:
      return triangle(x.dim() == 2 ? x.unsqueeze(1) : x);
    case 8: {
      std::vector<Tensor> parts = coin() ? x.chunk(1 + below(3), dim) : x.split(1 + below(3), dim);
      return coin() ? cat({parts.back(), x * 0.5, parts.front()}, dim) : stack({x, tanh(x)}, dim).flatten(dim, dim + 1);
    }
    default:
      return rank == 3 ? x.unsqueeze(1 + below(3)) : rank == 2 ? expand(x.unsqueeze(1), {-1, 3, -1}) : x.flatten(2);
    }
  }

  /// The part of x on one side of a diagonal, or indices along a dimension.
  Tensor triangle(const Tensor &x) {
    int64_t size = sizeOf(x, -1), diagonal = int64_t(below(5)) - 2;
    switch (below(3)) {
    case 0:
      return tril(x, diagonal);
    case 1:
      return triu(x * 0.5, diagonal);
    default:
      return x + graph.arange(0.5, 0.5 + double(size) * 0.125, 0.125, dtype) * 0.5;
    }
  }

  /// Slices at indices from another tensor: of an embedding of the labels, of weights of the largest elements, or of x
  /// itself. Or the largest elements, or elements ordered by parameters.
  Tensor indexed(const Tensor &x, int64_t dim) {
    int64_t size = sizeOf(x, dim), last = sizeOf(x, -1);
    switch (below(5)) {
    case 3:
      return topk(x, std::min<int64_t>(size, 1 + below(3)), dim, coin()).values;
    case 4: {
      Tensor order = topk(parameter({size}), std::min<int64_t>(size, 4), 0).indices;
      std::vector<Dim> shape(size_t(x.dim()), 1);
      shape[size_t(dim)] = sizeOf(order, 0);
      return take_along_dim(x, order.reshape(Shape(shape)), dim);
    }
    case 0: {
      std::optional<int64_t> padding = coin() ? std::optional<int64_t>(below(kMixedClasses)) : std::nullopt;
      std::vector<Dim> shape(size_t(x.dim()), 1);
      shape.front() = rows;
      shape.back() = last;
      return x * embedding(label, parameter({kMixedClasses, last}), padding).reshape(Shape(shape));
    }
    case 1:
      return x + index_select(parameter({size}), 0, argmax(x, dim, true)) * 0.5;
    default:
      return x.index_select(dim, argmax(parameter({5, size}), 1));
    }
  }

  Tensor normalised(const Tensor &x) {
    switch (below(x.dim() == 4 ? 4 : 3)) {
    case 0:
      return layer<nn::LayerNorm>(lastDims(x), nn::LayerNormOptions{0.3, coin(), coin()})(x);
    case 1:
      return layer<nn::RMSNorm>(lastDims(x), nn::RMSNormOptions{0.2, coin()})(x);
    case 2:
      return normalisedGroups(x);
    default: {
      Tensor y = layer<nn::BatchNorm2d>(sizeOf(x, 1), nn::BatchNorm2dOptions{.affine = coin()})(x);
      return coin() ? relu(y) : y;
    }
    }
  }

  Tensor normalisedGroups(const Tensor &x) {
    int64_t channels = sizeOf(x, 1), groups = 1 + below(channels);
    while (channels % groups)
      --groups;
    Tensor y = layer<nn::GroupNorm>(groups, channels, nn::GroupNormOptions{0.25, coin()})(x);
    Tensor scale = parameter({channels}), shift = parameter({channels}); // the layer's own parameters start as ones and
                                                                         // zeros
    return group_norm(y, groups, scale, coin() ? shift : Tensor(), 0.5);
  }

  /// One or several trailing dimensions without the batch.
  Shape lastDims(const Tensor &x) {
    std::vector<Dim> dims;
    for (int64_t dim = anyDim(x); dim < x.dim(); ++dim)
      dims.push_back(sizeOf(x, dim));
    return Shape(dims);
  }

  /// A convolution or a pool; other tensors are reshaped to images first.
  Tensor window(Tensor x) {
    if (x.dim() == 2)
      x = x.unsqueeze(1);
    if (x.dim() == 3)
      x = x.unsqueeze(coin() ? 1 : 3);
    switch (below(6)) {
    case 0:
      return transposedConvolution(x);
    case 1:
      return coin() ? pool(x) : small(interpolate(x, {1 + below(2), 1 + below(3)}));
    case 2:
      return coin() ? pool(x) : adaptive_avg_pool2d(x, {1, coin() ? 1 : sizeOf(x, 3)});
    default:
      return convolution(x);
    }
  }

  /// A window's extent along a dimension of `size` elements, padded on both sides.
  int64_t fitting(int64_t kernel, int64_t dilation, int64_t padding, int64_t size) {
    while (kernel > 1 && (kernel - 1) * dilation + 1 > size + 2 * padding)
      --kernel;
    return kernel;
  }

  Tensor convolution(const Tensor &x) {
    int64_t channels = sizeOf(x, 1), groups = channels;
    while (groups > 4 || (groups > 1 && (channels % groups || coin())))
      --groups;
    while (channels % groups)
      --groups;
    Size2 stride{1 + below(3), 1 + below(2)}, padding{below(3), below(3)}, dilation{1 + below(2), 1 + below(3)};
    Size2 kernel{fitting(1 + below(3), dilation.h, padding.h, sizeOf(x, 2)),
                 fitting(1 + below(4), dilation.w, padding.w, sizeOf(x, 3))};
    nn::Conv2dOptions options{
        .stride = stride, .padding = padding, .dilation = dilation, .groups = groups, .bias = coin()};
    return layer<nn::Conv2d>(channels, groups * (1 + below(6)), kernel, options)(x);
  }

  Tensor transposedConvolution(const Tensor &x) {
    int64_t channels = sizeOf(x, 1), groups = channels % 2 == 0 && coin() ? 2 : 1;
    Size2 stride{1 + below(3), 1 + below(2)}, padding{below(2), below(2)}, dilation{1 + below(2), 1};
    Size2 outputPadding{below(stride.h), below(stride.w)}, kernel{2 + 2 * padding.h + below(2), 2 + 2 * padding.w};
    nn::ConvTranspose2dOptions options{.stride = stride,
                                       .padding = padding,
                                       .output_padding = outputPadding,
                                       .groups = groups,
                                       .bias = coin(),
                                       .dilation = dilation};
    return layer<nn::ConvTranspose2d>(channels, groups * (1 + below(4)), kernel, options)(x);
  }

  Tensor pool(const Tensor &x) {
    Size2 kernel{fitting(1 + below(3), 1, 0, sizeOf(x, 2)), fitting(1 + below(3), 1, 0, sizeOf(x, 3))};
    Size2 padding{below(kernel.h / 2 + 1), below(kernel.w / 2 + 1)}, stride{1 + below(2), 1 + below(2)};
    bool ceil = coin();
    if (coin())
      return max_pool2d(x, kernel, {.stride = stride, .padding = padding, .ceil_mode = ceil});
    return avg_pool2d(x, kernel,
                      {.stride = stride, .padding = padding, .ceil_mode = ceil, .count_include_pad = coin()});
  }

  Tensor lossOf(const Tensor &logits) {
    switch (below(5)) {
    case 0:
      return cross_entropy(logits, label, coin() ? Reduction::mean : Reduction::sum);
    case 1:
      return nll_loss(log_softmax(logits, 1), label);
    case 2:
      return cross_entropy(logits, label, {.ignore_index = 2, .label_smoothing = coin() ? 0.2 : 0.0});
    case 3: // classes in another dimension
      return cross_entropy(logits.unsqueeze(1).transpose(1, 2), label.unsqueeze(1));
    default:
      return mse_loss(softmax(logits, 1), one_hot(label, kMixedClasses, dtype));
    }
  }

  uint32_t seed;
  std::mt19937 random;
  DType dtype;
  Graph graph{"mixed"};
  nn::Module net{graph};
  Dim rows{"batch"};
  std::vector<std::unique_ptr<nn::Module>> layers;
  struct Grown {
    Tensor tensor;
    bool used = false;
  };
  std::vector<Grown> tensors;
  Tensor label;
  int names = 0;
};

} // namespace

std::string mixedGraph(uint32_t seed, DType dtype, int64_t batch, uint32_t most) {
  return MixedGrower(seed, dtype, batch).run(most);
}

} // namespace sluice::test
