#include "tests/e2e/devices/RandomGraph.h"

#include "ir/Dialect.h"
#include "ir/Module.h"
#include "ir/Target.h"
#include "ir/Types.h"
#include "ir/text/ParseGuard.h"
#include "tests/e2e/devices/ReaderGraph.h"
#include <random>
#include <sluice/sluice.h>
#include <stdexcept>

using namespace mlir;

namespace sluice::test {

namespace {

/// Grows a graph op by op from its existing values; every tensor is [batch, width].
class GraphGrower {
public:
  GraphGrower(uint32_t seed, int64_t batch, std::vector<DrawnReader> *drawn = nullptr)
      : random(seed), seed(seed), drawn(drawn) {
    graph.set_capacity(batch);
    tensors.push_back(graph.input("image", f32, {Dim{"batch"}, kRandomFeatures}));
    label = graph.input("label", i32, {Dim{"batch"}});
    context.positions = tensors[0];
    context.start = graph.zeros({}, i32);
  }

  std::string run() {
    for (uint32_t i = 0, ops = 3 + below(drawn ? 3 : 6); i < ops; ++i)
      tensors.push_back(drawn && i < kTwiceReadValues ? growReadTwice(i) : grow());
    Tensor logits = dense(joined(), kRandomClasses);
    graph.output("logits", logits);
    graph.metric("accuracy", accuracy(logits, label));
    graph.minimize(cross_entropy(logits, label),
                   optim::SGD{.lr = 0.05, .momentum = below(2) ? 0.9 : 0.0, .weight_decay = below(2) ? 1e-3 : 0.0});
    return graph.str();
  }

private:
  uint32_t below(uint32_t limit) { return uint32_t(random() % limit); }
  Tensor any() { return tensors[below(uint32_t(tensors.size()))]; }
  int64_t widthOf(const Tensor &x) { return x.size(1).size; }
  std::string newName(const char *kind) { return std::string(kind) + std::to_string(names++); }

  Tensor dense(const Tensor &x, int64_t width) {
    nn::Linear &layer = *layers.emplace_back(std::make_unique<nn::Linear>(&net, newName("fc"), widthOf(x), width));
    return layer(x);
  }

  /// A tensor of the given width, computed from any tensor.
  Tensor ofWidth(int64_t width) {
    Tensor x = any();
    return widthOf(x) == width ? x : dense(x, width);
  }

  Tensor grow() {
    Tensor x = any();
    switch (below(10)) {
    case 0:
      return relu(x);
    case 1:
      return tanh(x) * 0.5 + x;
    case 2:
      return sigmoid(x - x.mean({1}, true));
    case 3:
      return dense(x, 8 + 8 * below(4));
    case 4:
      return relu(dense(x, 16 + below(20)));
    case 5:
      return x + ofWidth(widthOf(x));
    case 6:
      return cat({x, any()}, 1).slice(1, 0, 8 + below(uint32_t(widthOf(x))));
    case 7:
      return softmax(x, 1) * double(widthOf(x));
    case 8:
      return x / (1.0 + abs(ofWidth(widthOf(x))));
    default:
      return x * x.sum({0}, true).sigmoid();
    }
  }

  /// A value [batch, width] of a root that is read twice; the root reads any tensor. Successive values visit the
  /// combinations with a step that is coprime to their number, so that none repeats before all have been visited.
  Tensor growReadTwice(uint32_t number) {
    static const std::vector<std::string> roots = readerRoots(), readers = secondReaders();
    size_t combinations = roots.size() * readers.size() * kReaderForms, step = 1361;
    size_t at = (seed * kTwiceReadValues + number) * step % combinations;
    DrawnReader one{roots[at % roots.size()], int(at / roots.size() / readers.size()),
                    readers[at / roots.size() % readers.size()]};
    int64_t width = below(2) ? 1 + below(7) : 8 + below(29);
    Tensor x = any();
    if (widthOf(x) < 3)
      x = dense(x, 5);
    if (readsImages(one.root))
      context.images = dense(x, 2 * 3 * 3).reshape({x.size(0), 2, 3, 3});
    context.features = x;
    Tensor h = rootValue(context, one.root, width);
    std::optional<Tensor> y = readTwice(context, h, one.reader, width, one.form);
    if (!y) { // some readers require an even number of columns
      h = rootValue(context, one.root, 2 * width + 2);
      y = readTwice(context, h, one.reader, 2 * width + 2, one.form);
    }
    if (y)
      drawn->push_back(one);
    Tensor read = y.value_or(h);
    return read.dim() == 4 ? read.mean({2, 3}) : read;
  }

  /// A value that depends on all values, so that none is dead.
  Tensor joined() {
    Tensor sum = dense(tensors[0], 16);
    for (size_t i = 1; i < tensors.size(); ++i)
      sum = sum + dense(tensors[i], 16);
    return tanh(sum);
  }

  static constexpr uint32_t kTwiceReadValues = 3; // per graph

  std::mt19937 random;
  uint32_t seed;
  std::vector<DrawnReader> *drawn; // null: no value is read twice
  Graph graph{"random"};
  nn::Module net{graph};
  std::vector<std::unique_ptr<nn::Linear>> layers;
  std::vector<Tensor> tensors;
  Tensor label;
  int names = 0;
  ReaderContext context{graph, net, f32, RowKind::Batch, {}, {}, {}, {}};
};

/// The text of `model` after applying `change`.
std::string changed(const std::string &model, llvm::function_ref<void(ModuleOp)> change) {
  MLIRContext context;
  context.loadDialect<ir::SluiceDialect>();
  auto module = ir::parseModuleText(model, "random.mlir", context);
  if (!module)
    throw std::runtime_error(llvm::toString(module.takeError()));
  change(**module);
  std::string text;
  llvm::raw_string_ostream out(text);
  (*module)->getOperation()->print(out, OpPrintingFlags().enableDebugInfo());
  return text;
}

ir::Target parseTarget(const std::string &devices) {
  llvm::Expected<ir::Target> target = ir::Target::parse(devices);
  if (!target)
    throw std::runtime_error(llvm::toString(target.takeError()));
  return std::move(*target);
}

} // namespace

std::string smallGraph(uint32_t seed, uint32_t layers, bool isTrained) {
  std::mt19937 random(seed);
  auto below = [&](uint32_t limit) { return uint32_t(random() % limit); };
  Graph graph("small");
  graph.set_capacity(32 + 32 * int64_t(below(4)));
  nn::Module net{graph};
  std::vector<std::unique_ptr<nn::Linear>> dense;
  std::vector<Tensor> tensors{graph.input("x", f32, {Dim{"batch"}, 16 + 16 * int64_t(below(16))})};
  for (uint32_t i = 0; i < layers; ++i) {
    Tensor x = tensors[below(uint32_t(tensors.size()))];
    dense.push_back(std::make_unique<nn::Linear>(&net, std::string("l").append(std::to_string(i)), x.size(1).size,
                                                 16 + 16 * int64_t(below(24)), nn::LinearOptions{.bias = false}));
    Tensor y = (*dense.back())(x);
    tensors.push_back(below(2) ? relu(y) : tanh(y));
  }
  Tensor out = tensors.back().sum({1});
  for (size_t i = 1; i + 1 < tensors.size(); ++i)
    out = out + tensors[i].sum({1});
  graph.output("y", out);
  if (isTrained)
    graph.minimize((out * out).mean(), optim::SGD{.lr = 0.05});
  return graph.str();
}

std::string randomGraph(uint32_t seed, int64_t batch) { return GraphGrower(seed, batch).run(); }

std::string randomReaderGraph(uint32_t seed, int64_t batch, std::vector<DrawnReader> &drawn) {
  return GraphGrower(seed, batch, &drawn).run();
}

std::string forDevices(const std::string &model, const std::string &devices) {
  return changed(model, [&](ModuleOp module) { parseTarget(devices).record(module); });
}

/// `choose` returns a device number for each op and state; numbers above the device count leave the choice to the
/// compiler.
static std::string pinned(const std::string &model, const std::string &devices,
                          llvm::function_ref<size_t(size_t devices)> choose) {
  ir::Target target = parseTarget(devices);
  return changed(model, [&](ModuleOp module) {
    target.record(module);
    ir::getModel(module).setCopies(ir::CopyPolicy::Insert);
    auto anyDevice = [&] {
      size_t number = choose(target.devices().size());
      return number >= target.devices().size() ? StringAttr()
                                               : StringAttr::get(module.getContext(), target.devices()[number].name);
    };
    module.walk([&](Operation *op) {
      if (auto state = dyn_cast<ir::StateOp>(op)) {
        if (StringAttr device = anyDevice())
          state.setPhysicalAttr(TypeAttr::get(ir::withDevice(state.getStoredType(), device)));
      } else if (op->hasTrait<ir::SameDevice>()) {
        if (StringAttr device = anyDevice())
          op->setAttr(ir::kPinAttr, device);
      }
    });
  });
}

std::string randomlyPinned(const std::string &model, const std::string &devices, uint32_t seed) {
  std::mt19937 random(seed);
  return pinned(model, devices, [&](size_t count) { return random() % (count + 1); });
}

std::string sparselyPinned(const std::string &model, const std::string &devices, uint32_t seed, uint32_t oneIn) {
  std::mt19937 random(seed);
  return pinned(model, devices, [&](size_t count) { return random() % (count * oneIn); });
}

} // namespace sluice::test
