#include "tests/e2e/torch/FunctionModel.h"
#include "sluice/sluice.h"
#include "tests/e2e/Portable.h"
#include <limits>

using nlohmann::json;

namespace sluice::test {

namespace {

using Sizes = std::vector<int64_t>;

/// A function's result compared with PyTorch's: sizes of x and of the index without rows, and of the weight.
struct FunctionCase {
  const char *torch;
  Tensor (*result)(const Tensor &x, const Tensor &w, const Tensor &index);
  Sizes x, w = {}, index = {};
  int64_t below = 0; ///< exclusive upper bound of indices
};

#define SLUICE_RESULT(expression)                                                                                      \
  []([[maybe_unused]] const Tensor &x, [[maybe_unused]] const Tensor &w, [[maybe_unused]] const Tensor &index) {       \
    return expression;                                                                                                 \
  }

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const FunctionCase kFunctions[] = {
    {"torch.remainder(x, w)", SLUICE_RESULT(remainder(x, w)), {5}, {5}},
    {"torch.remainder(x, -0.3)", SLUICE_RESULT(remainder(x, -0.3)), {5}},
    {"F.prelu(x, w)", SLUICE_RESULT(prelu(x, w)), {3, 4}, {1}},
    {"F.prelu(x, w)", SLUICE_RESULT(prelu(x, w)), {3, 4}, {3}},
    {"x.masked_fill(x > 0.2, 0.5)", SLUICE_RESULT(masked_fill(x, gt(x, 0.2), 0.5)), {7}},
    {"x * x.argmin(2, keepdim=True)", SLUICE_RESULT(x *argmin(x, 2, true).to(x.dtype())), {3, 5}},
    {"torch.linalg.vector_norm(x, 1, 1)", SLUICE_RESULT(norm(x, 1, 1)), {3, 5}},
    {"torch.linalg.vector_norm(x, 2, (1, 2), keepdim=True)", SLUICE_RESULT(norm(x, 2, {1, 2}, true)), {3, 5}},
    {"torch.linalg.vector_norm(x, torch.inf, 2)", SLUICE_RESULT(norm(x, kInfinity, 2)), {3, 5}},
    {"torch.linalg.vector_norm(torch.relu(x - 0.4), 2, 1)", SLUICE_RESULT(norm(relu(x - 0.4), 2, 1)), {2, 30}},
    {"F.normalize(x)", SLUICE_RESULT(normalize(x)), {6, 2}},
    {"F.normalize(x, 1, 2, 2.0)", SLUICE_RESULT(normalize(x, 1, 2, 2.0)), {6, 5}},
    {"x.repeat(1, 2, 3)", SLUICE_RESULT(repeat(x, {1, 2, 3})), {2, 3}},
    {"x.repeat(2, 1, 1, 2).sum(0)", SLUICE_RESULT(repeat(x, {2, 1, 1, 2}).sum(0)), {2, 3}},
    {"torch.tile(x, (2,)) + 1", SLUICE_RESULT(tile(x, {2}) + 1), {2, 3}},
    {"x @ torch.diag(w, 1)", SLUICE_RESULT(matmul(x, diag(w, 1))), {4}, {3}},
    {"x @ torch.diag(w, -2)", SLUICE_RESULT(matmul(x, diag(w, -2))), {5}, {3}},
    {"x * torch.diag(w, -1)", SLUICE_RESULT(x *diag(w, -1)), {3}, {4, 5}},
    {"x * torch.diag(w, 2)", SLUICE_RESULT(x *diag(w, 2)), {2}, {3, 4}},
    {"x * torch.trace(w)", SLUICE_RESULT(x *trace(w)), {3}, {2, 4}},
    {"x * torch.meshgrid(w, torch.sin(w[:2]), indexing='xy')[0]",
     SLUICE_RESULT(x *meshgrid({w, sin(w.slice(0, 0, 2))}, Indexing::xy)[0]),
     {2, 3},
     {3}},
    {"x * torch.meshgrid(w[:2], torch.sin(w), indexing='ij')[1]",
     SLUICE_RESULT(x *meshgrid({w.slice(0, 0, 2), sin(w)})[1]),
     {2, 3},
     {3}},
    {"x * torch.isclose(x, w, 0.3, 0.1)", SLUICE_RESULT(x *isclose(x, w, 0.3, 0.1).to(x.dtype())), {20}, {20}},
    {"x.flip(1, 2) * x", SLUICE_RESULT(flip(x, {1, -1}) * x), {4, 3}},
    {"x.roll(2, 1) * x", SLUICE_RESULT(roll(x, 2, 1) * x), {5, 3}},
    {"x.roll(-7, 2) * x", SLUICE_RESULT(roll(x, -7, 2) * x), {2, 4}},
    {"F.pad(x, (1, 2, 2, 0), 'reflect')", SLUICE_RESULT(pad(x, {1, 2, 2, 0}, PadMode::reflect)), {2, 4, 5}},
    {"F.pad(x, (1, 2, 7, 0), 'replicate')", SLUICE_RESULT(pad(x, {1, 2, 7, 0}, PadMode::replicate)), {2, 4, 5}},
    {"F.pad(x, (1, 5, 2, 0), 'circular')", SLUICE_RESULT(pad(x, {1, 5, 2, 0}, PadMode::circular)), {2, 4, 5}},
    {"F.pixel_shuffle(x, 2)", SLUICE_RESULT(pixel_shuffle(x, 2)), {12, 3, 2}},
    {"F.pixel_unshuffle(x, 3)", SLUICE_RESULT(pixel_unshuffle(x, 3)), {2, 6, 3}},
    {"x.scatter_add(1, index, torch.sin(x[:, :3]))",
     SLUICE_RESULT(scatter_add(x, 1, index, sin(x.slice(1, 0, 3)))),
     {5, 2},
     {},
     {3, 2},
     5},
    {"x.index_add(1, w.argsort()[:3], torch.sin(x[:, :3]))",
     SLUICE_RESULT(index_add(x, 1, argsort(w, 0).slice(0, 0, 3), sin(x.slice(1, 0, 3)))),
     {5, 2},
     {5}},
    {"rope(x)", SLUICE_RESULT(rope(x)), {3, 7, 6}},
    {"rope(x, base=100.0, interleaved=True)", SLUICE_RESULT(rope(x, {.base = 100, .interleaved = true})), {7, 6}},
    {"rope(x, position=index)", SLUICE_RESULT(rope(x, {.position = index})), {3, 5, 4}, {}, {1, 5}, 900},
    {"F.interpolate(x, (7, 4), mode='bilinear')",
     SLUICE_RESULT(interpolate_to(x, {7, 4}, {.mode = Interpolation::bilinear})),
     {2, 5, 6}},
    {"F.interpolate(x, (7, 1), mode='bilinear', align_corners=True)",
     SLUICE_RESULT(interpolate_to(x, {7, 1}, {Interpolation::bilinear, true})),
     {2, 5, 6}},
    {"F.interpolate(x, scale_factor=2, mode='bilinear')",
     SLUICE_RESULT(interpolate(x, 2, {.mode = Interpolation::bilinear})),
     {2, 3, 4}},
    {"F.interpolate(x, (7, 4))", SLUICE_RESULT(interpolate_to(x, {7, 4})), {2, 5, 6}},
    {"F.adaptive_avg_pool2d(x, (3, 4))", SLUICE_RESULT(adaptive_avg_pool2d(x, {3, 4})), {2, 5, 7}},
    {"F.adaptive_avg_pool2d(x, (2, 3))", SLUICE_RESULT(adaptive_avg_pool2d(x, {2, 3})), {2, 4, 7}},
    {"F.instance_norm(x, weight=w, eps=0.1)", SLUICE_RESULT(instance_norm(x, w, {}, 0.1)), {3, 4, 5}, {3}},
    {"F.local_response_norm(x, 3, 0.5, 0.6, 1.5)", SLUICE_RESULT(local_response_norm(x, 3, 0.5, 0.6, 1.5)), {5, 2, 3}},
    {"F.local_response_norm(x, 4, alpha=0.7)", SLUICE_RESULT(local_response_norm(x, 4, 0.7)), {5, 2, 3}},
    {"torch.einsum('...ij,jk->...ik', x, w)", SLUICE_RESULT(einsum("...ij,jk->...ik", x, w)), {3, 2, 4}, {4, 5}},
    {"torch.einsum('...ij,...kj', x, torch.sin(x))", SLUICE_RESULT(einsum("...ij,...kj", x, sin(x))), {3, 2, 4}},
    {"torch.einsum('n...j,...j->n', x, w)", SLUICE_RESULT(einsum("n...j,...j->n", x, w)), {3, 4}, {3, 4}},
    {"torch.einsum('i...j->ij', x)", SLUICE_RESULT(einsum("i...j->ij", x)), {3, 2, 4}},
};

class FunctionList {
public:
  FunctionList(FunctionModel &model, DType dtype, int64_t rows) : model(model), dtype(dtype), rows(rows) {
    graph.set_capacity(rows);
    graph.set_dtype(dtype);
  }

  void run() {
    for (const FunctionCase &function : kFunctions)
      add(function);
    graph.minimize(total, optim::SGD{.lr = 0, .momentum = 0.9});
    model.text = graph.str();
  }

private:
  /// The name of this function's input, parameter or output.
  std::string named(const char *what) const { return what + std::to_string(model.functions.size()); }

  static Shape batched(const Sizes &sizes) {
    std::vector<Dim> dims{Dim{"batch"}};
    dims.insert(dims.end(), sizes.begin(), sizes.end());
    return Shape(dims);
  }
  size_t count(const Sizes &sizes) const {
    size_t elements = size_t(rows);
    for (int64_t size : sizes)
      elements *= size_t(size);
    return elements;
  }

  Tensor operand(const Sizes &sizes) {
    std::vector<float> values = portableUniform(named("x"), count(sizes), -2, 2);
    model.inputs[named("x")] = {values.begin(), values.end()};
    Shape scale(std::vector<Dim>(sizes.begin(), sizes.end()));
    return graph.input(named("x"), dtype, batched(sizes)) *
           net.parameter(named("scale"), scale, init::uniform(0.5, 1.5));
  }
  Tensor weight(const Sizes &sizes) {
    Shape shape(std::vector<Dim>(sizes.begin(), sizes.end()));
    return sizes.empty() ? Tensor() : net.parameter(named("w"), shape, init::uniform(0.2, 1.5));
  }
  Tensor indices(const Sizes &sizes, int64_t below) {
    if (sizes.empty())
      return {};
    std::vector<int64_t> values = portableIntegers(named("index"), count(sizes), uint64_t(below));
    model.inputs[named("index")] = {values.begin(), values.end()};
    return graph.input(named("index"), i32, batched(sizes));
  }

  void add(const FunctionCase &function) {
    Tensor x = operand(function.x), w = weight(function.w), index = indices(function.index, function.below);
    Tensor y = function.result(x, w, index);
    graph.output(named("y"), y);
    Tensor loss = square(y + 0.5).sum();
    total = total ? total + loss : loss;
    model.functions.push_back({{"number", model.functions.size()},
                               {"torch", function.torch},
                               {"x", function.x},
                               {"w", function.w},
                               {"index", function.index}});
  }

  FunctionModel &model;
  DType dtype;
  int64_t rows;
  Graph graph{"functions"};
  nn::Module net{graph};
  Tensor total;
};

} // namespace

FunctionModel::FunctionModel(DType dtype, int64_t rows) : functions(json::array()) {
  FunctionList(*this, dtype, rows).run();
}

} // namespace sluice::test
