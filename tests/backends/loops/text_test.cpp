// What ops mean as loop nests, through the emitter of CUDA C++: the text, run by emulated threads, against the reference
// functions of every op with an element formula or a body.
#include "backends/cuda/compiler/emit/Prelude.h"
#include "backends/cuda/compiler/emit/ThreadEmitter.h"
#include "backends/loops/Elements.h"
#include "ir/Layout.h"
#include "ir/text/ParseGuard.h"
#include "tests/backends/Bytes.h"
#include "tests/cuda_emu/EmulatedLibrary.h"
#include "tests/cuda_emu/PinnedNvrtc.h"
#include "tests/ir/op_instance.h"
#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;
using namespace sluice::ir;
using namespace sluice::loops;
using sluice::cuda::ThreadEmitter;
using sluice::cuda::ThreadGroup;

namespace sluice::test {

/// More rows than there are: what lies behind them must stay as it was.
static constexpr int64_t kCapacity = kRows + 2;

namespace {

/// How a nest is laid on threads.
struct Way {
  ThreadGroup group;
  bool overElements; // of the innermost dimension; else each fold has all lanes
};
constexpr Way kWays[] = {{{1, 1}, false}, {{4, 1}, false}, {{4, 1}, true},
                         {{2, 4}, false}, {{32, 1}, true}, {{32, 4}, true}};

/// Functions as text, then compiled together.
class Program {
public:
  /// The function that computes `results` from `inputs`; buffers are inputs, results, workspace.
  std::string add(ValueRange inputs, ValueRange results, Way way);
  /// The two functions that do so for a reduction of rows in chunks.
  std::pair<std::string, std::string> addInChunks(const SplitFold &split, Way way);
  /// The function of an elementwise op on a matrix, lanes over whole groups of columns; others are left out.
  std::string addWholeGroups(Operation *op, ThreadGroup group);
  const std::string &text() const { return kernels; }
  /// For the CPU.
  void compile();
  /// For a device.
  void compile(const cuda::Nvrtc &nvrtc, const std::string &architecture) const;
  using Function = void (*)(void *const *buffers, int64_t rows);
  Function function(const std::string &name) const {
    auto found = reinterpret_cast<Function>(library.find(name));
    EXPECT_TRUE(found) << name;
    return found;
  }

private:
  /// A kernel, and a function that runs it in one group of threads.
  std::string take(const ThreadEmitter &emitter, Way way, size_t buffers) {
    std::string name = "f" + std::to_string(count++), arguments;
    for (size_t i = 0; i < buffers; ++i)
      arguments += "(Byte *)buffers[" + std::to_string(i) + "], ";
    kernels += emitter.kernel("kernel_" + name, int64_t(buffers));
    calls += "extern \"C\" void " + name + "(void *const *buffers, Index rows) { cuda_emu::launch({}, {" +
             std::to_string(way.group.threads) + "}, [&] { kernel_" + name + "(" + arguments + "rows, 1); }); }\n";
    return name;
  }
  void emit(ThreadEmitter &emitter, Elements &elements, ValueRange inputs, ValueRange results, Way way);

  std::string kernels = cuda::kPrelude, calls;
  int count = 0;
  EmulatedLibrary library;
};

} // namespace

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static int64_t sizeOf(int64_t size) { return ShapedType::isDynamic(size) ? kCapacity : size; }

static void bindInputs(Elements &elements, ValueRange inputs) {
  for (auto [number, input] : llvm::enumerate(inputs))
    elements.bind(input, {int64_t(number), 0, typeOf(input)});
}

/// Loops over `shape`, lanes over the last dimension if the way says so, around `body`.
static void walk(ThreadEmitter &emitter, Elements &elements, Way way, ArrayRef<int64_t> shape,
                 SmallVector<AffineExpr> &index, llvm::function_ref<void()> body) {
  if (index.size() == shape.size())
    return body();
  int64_t size = shape[index.size()];
  bool isLane = way.overElements && index.size() + 1 == shape.size();
  Count end = ShapedType::isDynamic(size) ? emitter.rows() : emitter.constant(size);
  Scopes &scopes = elements.scopes();
  scopes.loop(emitter.constant(0), end, isLane ? way.group.lanes() : 1, sizeOf(size), {}, [&](Count number, auto) {
    AffineExpr place = scopes.variable(number, {0, sizeOf(size) - 1});
    if (isLane)
      place = place + scopes.laneVariable(emitter.arithmetic(CountOp::Sub, end, number));
    index.push_back(place);
    walk(emitter, elements, way, shape, index, body);
    index.pop_back();
    return Scopes::Carried();
  });
}

void Program::emit(ThreadEmitter &emitter, Elements &elements, ValueRange inputs, ValueRange results, Way way) {
  bindInputs(elements, inputs);
  for (auto [number, result] : llvm::enumerate(results)) {
    SmallVector<AffineExpr> index;
    Memory memory{int64_t(inputs.size() + number), 0, typeOf(result)};
    walk(emitter, elements, way, memory.type.getShape(), index, [&, result = result] {
      Element element = elements.element(result, index);
      elements.store(memory, elements.offsetOf(memory.type, index), element);
    });
  }
  EXPECT_FALSE(elements.hasFailed());
}

std::string Program::add(ValueRange inputs, ValueRange results, Way way) {
  ThreadEmitter emitter(results[0].getContext(), way.group);
  Formulas formulas;
  Elements elements(emitter, formulas, kCapacity);
  emit(emitter, elements, inputs, results, way);
  return take(emitter, way, inputs.size() + results.size());
}

std::pair<std::string, std::string> Program::addInChunks(const SplitFold &split, Way way) {
  Operation *op = split.op;
  RankedTensorType type = typeOf(op->getResult(0));
  Formulas formulas;
  ThreadEmitter first(op->getContext(), way.group), second(op->getContext(), way.group);
  Elements partials(first, formulas, kCapacity), results(second, formulas, kCapacity);
  bindInputs(partials, op->getOperands());
  partials.bind(split);
  Count chunks = first.arithmetic(CountOp::CeilDiv, first.rows(), first.constant(split.chunk));
  partials.scopes().loop(first.constant(0), chunks, 1, split.maxChunks, {}, [&](Count number, auto) {
    AffineExpr chunk = partials.scopes().variable(number, {0, split.maxChunks - 1});
    SmallVector<AffineExpr> index;
    walk(first, partials, way, type.getShape(), index, [&] {
      SmallVector<Element> sums = partials.partial(op, chunk, index);
      AffineExpr offset = chunk * split.elements + partials.offsetOf(type, index);
      for (auto [sum, byteOffset, carried] : llvm::zip_equal(sums, split.byteOffsets, split.carried))
        partials.store({split.buffer, byteOffset, type.clone(carried)}, offset, sum);
    });
    return Scopes::Carried();
  });
  results.bind(split);
  emit(second, results, op->getOperands(), op->getResults(), way);
  size_t buffers = op->getNumOperands() + op->getNumResults() + 1;
  return {take(first, way, buffers), take(second, way, buffers)};
}

std::string Program::addWholeGroups(Operation *op, ThreadGroup group) {
  ThreadEmitter emitter(op->getContext(), group);
  Formulas formulas;
  Elements elements(emitter, formulas, kCapacity);
  bindInputs(elements, op->getOperands());
  RankedTensorType type = typeOf(op->getResult(0));
  int64_t rows = type.getDimSize(0), groups = type.getDimSize(1) / emitter.lanes();
  Scopes &scopes = elements.scopes();
  auto loop = [&](int64_t size, llvm::function_ref<void(AffineExpr)> body) {
    scopes.loop(emitter.constant(0), emitter.constant(size), 1, size, {}, [&](Count number, auto) {
      body(scopes.variable(number, {0, size - 1}));
      return Scopes::Carried();
    });
  };
  loop(rows, [&](AffineExpr row) {
    loop(groups, [&](AffineExpr number) {
      SmallVector<AffineExpr> index = {row, number * emitter.lanes() + scopes.laneVariable()};
      elements.store({1, 0, type}, elements.offsetOf(type, index), elements.element(op->getResult(0), index));
    });
  });
  return take(emitter, {group, true}, 2);
}

void Program::compile() { library.compile(kernels + calls); }

/// The text compiles as it is, and keeps what it computes with in registers.
void Program::compile(const cuda::Nvrtc &nvrtc, const std::string &architecture) const {
  llvm::Expected<cuda::DeviceCode> code = nvrtc.compile(kernels, architecture);
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  EXPECT_EQ(code->kernels.size(), size_t(count));
  EXPECT_FALSE(code->bytes.empty());
  for (const cuda::KernelResources &kernel : code->kernels) {
    EXPECT_GT(kernel.registers, 0) << kernel.name;
    EXPECT_EQ(kernel.spillStores + kernel.spillLoads, 0) << kernel.name;
  }
}

// Buffers.

using Buffers = std::vector<Bytes>;
constexpr char kUntouched = 0x5a;

static Bytes pack(Value value, const HostTensor &tensor) {
  RankedTensorType type = typeOf(value);
  Bytes bytes(getBufferBytes(type, kCapacity), kUntouched);
  forEachElement(type, kRows, kCapacity, [&](ArrayRef<int64_t> index, int64_t place) {
    writeElement(type.getElementType(), &bytes[place * getElementBytes(type.getElementType())], tensor.at(index));
  });
  return bytes;
}

static HostTensor unpack(Value value, const Bytes &bytes) {
  RankedTensorType type = typeOf(value);
  HostTensor tensor(runtimeShape(type, kRows));
  forEachElement(type, kRows, kCapacity, [&](ArrayRef<int64_t> index, int64_t place) {
    tensor.at(index) = readElement(type.getElementType(), &bytes[place * getElementBytes(type.getElementType())]);
  });
  return tensor;
}

/// The results' buffers after calls of these functions, one after the other.
static Buffers call(ArrayRef<Program::Function> functions, ValueRange inputs, ValueRange results,
                    ArrayRef<HostTensor> tensors, size_t workspace = 0) {
  Buffers buffers;
  for (auto [value, tensor] : llvm::zip_equal(inputs, tensors))
    buffers.push_back(pack(value, tensor));
  for (Value value : results)
    buffers.emplace_back(getBufferBytes(typeOf(value), kCapacity), kUntouched);
  buffers.emplace_back(workspace, char(0xff)); // no numbers
  std::vector<void *> pointers;
  for (Bytes &buffer : buffers)
    pointers.push_back(buffer.data());
  for (Program::Function function : functions)
    function(pointers.data(), kRows);
  buffers.erase(buffers.begin(), buffers.begin() + inputs.size());
  return buffers;
}

/// Nothing but the elements that there are has been written.
static void expectUntouchedElsewhere(Value value, Bytes bytes) {
  Type element = typeOf(value).getElementType();
  forEachElement(typeOf(value), kRows, kCapacity, [&](ArrayRef<int64_t>, int64_t place) {
    std::fill_n(bytes.begin() + place * getElementBytes(element), getElementBytes(element), kUntouched);
  });
  EXPECT_EQ(bytes, Bytes(bytes.size(), kUntouched));
}

// The formulas differ from the references in the order of sums only.
static void expectEqual(const HostTensor &actual, const HostTensor &expected, const std::string &what) {
  for (size_t i = 0; i < expected.data.size(); ++i) {
    double a = actual.data[i], b = expected.data[i];
    bool same = a == b || (std::isnan(a) && std::isnan(b));
    ASSERT_TRUE(same || std::fabs(a - b) <= 1e-12 * std::fmax(1, std::fabs(b)))
        << a << " != " << b << " in place " << i << " of\n"
        << what;
  }
}

namespace {

struct Case {
  std::unique_ptr<OpInstance> instance;
  std::vector<HostTensor> operands;
  std::string what;
  std::vector<std::string> functions; // one for each way
};

} // namespace

template <typename Interface> static std::vector<Case> getCases() {
  std::vector<Case> cases;
  for (const std::string &name : getOpsWith<Interface>())
    for (const Sample &sample : getSamples(name)) {
      auto instance = std::make_unique<OpInstance>(sample.op);
      EXPECT_TRUE(instance->op) << sample.op << "\n" << instance->error;
      std::vector<HostTensor> operands = drawOperands(*instance, sample);
      cases.push_back({std::move(instance), operands, sample.op, {}});
    }
  return cases;
}

template <typename Interface> static void checkAll() {
  std::vector<Case> cases = getCases<Interface>();
  EXPECT_GT(cases.size(), 20u);
  Program program;
  for (Case &each : cases)
    for (Way way : kWays)
      each.functions.push_back(program.add(each.instance->op->getOperands(), each.instance->op->getResults(), way));
  program.compile();
  for (Case &each : cases) {
    Operation *op = each.instance->op;
    std::vector<HostTensor> expected = each.instance->run(each.operands);
    for (auto [way, function] : llvm::zip_equal(kWays, each.functions)) {
      Buffers results = call(program.function(function), op->getOperands(), op->getResults(), each.operands);
      for (auto [value, bytes, wanted] : llvm::zip(op->getResults(), results, expected)) {
        expectEqual(unpack(value, bytes), wanted, each.what + " on " + std::to_string(way.group.threads) + " threads");
        expectUntouchedElsewhere(value, bytes);
      }
    }
  }
}

TEST(LoopsText, OfElementFormulasMatchesTheReference) { checkAll<ElementOp>(); }
TEST(LoopsText, OfBodiesMatchesTheReference) { checkAll<ElementwiseOp>(); }

template <typename Interface> static void compileAll(ArrayRef<ThreadGroup> groups) {
  llvm::Expected<cuda::Nvrtc> nvrtc = loadPinnedNvrtc();
  if (!nvrtc)
    GTEST_SKIP() << llvm::toString(nvrtc.takeError());
  std::vector<Case> cases = getCases<Interface>();
  Program program;
  for (Case &each : cases)
    for (ThreadGroup group : groups)
      program.add(each.instance->op->getOperands(), each.instance->op->getResults(), {group, true});
  program.compile(*nvrtc, "sm_90");
}

// Several elements a thread are for what moves bytes: a fold across lanes has a partial result for each of them.
TEST(LoopsText, OfElementFormulasCompilesForDevices) { compileAll<ElementOp>({{32, 1}}); }
TEST(LoopsText, OfBodiesCompilesForDevices) { compileAll<ElementwiseOp>({{32, 1}, {32, 4}}); }

// The elements of a thread are loaded and stored as one where that is aligned.
TEST(LoopsText, ThreadsMoveTheirElementsTogether) {
  for (auto [columns, perThread, isTogether] : {std::tuple(256, 4, true), {256, 1, false}, {257, 4, false}}) {
    std::string type = "tensor<3x" + std::to_string(columns) + "xf32>";
    OpInstance neg("\"sluice.neg\"(%0) : (" + type + ") -> " + type);
    ASSERT_TRUE(neg.op) << neg.error;
    Program program;
    std::string name = program.addWholeGroups(neg.op, {32, perThread});
    EXPECT_EQ(program.text().find("Pack<float, 4>") != std::string::npos, isTogether) << columns;
    program.compile();
    std::vector<HostTensor> operands = drawOperands(neg, {"", {{-2, 2}}});
    Buffers results = call(program.function(name), neg.op->getOperands(), neg.op->getResults(), operands);
    HostTensor actual = unpack(neg.op->getResult(0), results[0]), expected = neg.run(operands)[0];
    float untouched;
    std::memset(&untouched, kUntouched, sizeof untouched);
    for (int64_t i = 0; i < 3 * columns; ++i)
      ASSERT_EQ(actual.data[i], i % columns < 256 ? float(expected.data[i]) : untouched) << i;
  }
}

// Chunks of two rows, of which the last has one: each op's partial results are combined to what one fold gives.
TEST(LoopsText, OfChunksMatchesTheReference) {
  Program program;
  struct Chunked {
    OpInstance instance;
    std::vector<std::pair<std::string, std::string>> functions;
  };
  std::deque<Chunked> reductions;
  for (const char *op : {"\"sluice.sum\"(%0) {axes = array<i64: 0, 2>} : (tensor<?x5x9xf64>) -> tensor<5xf64>",
                         "\"sluice.mean\"(%0) {axes = array<i64: 0>} : (tensor<?x5x9xf64>) -> tensor<5x9xf64>",
                         "\"sluice.argmax\"(%0) {axis = 0 : i64} : (tensor<?x6xf64>) -> tensor<6xi32>"}) {
    Chunked &added = reductions.emplace_back(Chunked{OpInstance(op), {}});
    ASSERT_TRUE(added.instance.op) << added.instance.error;
    SplitFold split{added.instance.op, 2, 3, true, typeOf(added.instance.op->getResult(0)).getNumElements(), 2, {}, {}};
    Formulas formulas;
    for (Type carried : formulas.of(split.op, 0)->reductions[0]->types) {
      split.byteOffsets.push_back(int64_t(split.carried.size()) * 1024);
      split.carried.push_back(carried);
    }
    for (Way way : kWays)
      added.functions.push_back(program.addInChunks(split, way));
  }
  program.compile();
  for (Chunked &each : reductions) {
    Operation *op = each.instance.op;
    std::vector<HostTensor> operands = drawOperands(each.instance, {"", {{-2, 2}}});
    HostTensor expected = each.instance.run(operands)[0];
    for (auto &[first, second] : each.functions) {
      Buffers results = call({program.function(first), program.function(second)}, op->getOperands(), op->getResults(),
                             operands, 4096);
      expectEqual(unpack(op->getResult(0), results[0]), expected, op->getName().getStringRef().str());
    }
  }
}

/// Sums of rows in eight lanes, which are added up in a tree: the lanes that are so far apart, one distance after the other.
static std::vector<float> sumsInLanes(const HostTensor &x, int64_t columns, std::initializer_list<int> distances) {
  std::vector<float> sums;
  for (size_t row = 0; row < x.data.size(); row += size_t(columns)) {
    std::array<float, 8> lanes{};
    for (int64_t i = 0; i < columns; ++i)
      lanes[size_t(i) % lanes.size()] += float(x.data[row + size_t(i)]);
    for (int distance : distances) {
      std::array<float, 8> before = lanes;
      for (size_t i = 0; i < lanes.size(); ++i)
        lanes[i] = before[i] + before[(i + size_t(distance)) % lanes.size()];
    }
    sums.push_back(lanes[0]);
  }
  return sums;
}

// The same lanes give the same bits, whether a fold has all of them or each has a fold of its own; a thread adds its own lanes first, and other lanes give
// others: sums of single precision are never the same by chance here.
TEST(LoopsText, OrderOfSumsIsThatOfTheLanes) {
  OpInstance sum("\"sluice.sum\"(%0) {axes = array<i64: 1>} : (tensor<4x1001xf32>) -> tensor<4xf32>");
  ASSERT_TRUE(sum.op) << sum.error;
  Program program;
  ValueRange x = sum.op->getOperands(), y = sum.op->getResults();
  std::string along = program.add(x, y, {{8, 1}, false}), across = program.add(x, y, {{8, 1}, true}),
              together = program.add(x, y, {{2, 4}, false}), alone = program.add(x, y, {{1, 1}, false});
  program.compile();
  std::vector<HostTensor> operands = drawOperands(sum, {"", {{-2, 2}}});
  auto bytesOf = [&](const std::string &function) { return call(program.function(function), x, y, operands)[0]; };
  auto bytesInLanes = [&](std::initializer_list<int> distances) {
    std::vector<float> sums = sumsInLanes(operands[0], 1001, distances);
    auto bytes = reinterpret_cast<const char *>(sums.data());
    return std::vector<char>(bytes, bytes + sums.size() * sizeof(float));
  };
  auto isThatOf = [&](const std::string &function, std::initializer_list<int> distances) {
    auto found = bytesOf(function);
    return llvm::equal(found, bytesInLanes(distances), [](auto a, auto b) { return char(a) == b; });
  };
  EXPECT_TRUE(isThatOf(along, {4, 2, 1}));
  EXPECT_TRUE(isThatOf(across, {4, 2, 1}));
  EXPECT_TRUE(isThatOf(together, {2, 1, 4})) << "a thread adds its own lanes first";
  EXPECT_NE(bytesOf(along), bytesOf(alone));
}

// What an op asks for of an operand that is computed in the same nest: elements of a constant, spread apart in padding,
// and down their columns a softmax, of which each is added to its row's sum. Reads under a guard stay inside of
// operands.
TEST(LoopsText, OfChainsMatchesTheReference) {
  auto parsed = parseModuleText(R"(
      sluice.entry @test ["x"] -> ["s", "y"] (%x: tensor<?x8x3xf64>) {
        %c = sluice.constant {value = dense<[[1.0, -2.0, 3.5], [0.5, 4.0, -1.0]]> : tensor<2x3xf64>} : () -> tensor<2x3xf64>
        %t = sluice.transpose %c {permutation = array<i64: 1, 0>} : (tensor<2x3xf64>) -> tensor<3x2xf64>
        %p = sluice.pad %t {low = array<i64: 1, 0>, high = array<i64: 2, 1>, interior = array<i64: 1, 0>, value = 0.5 : f64} : (tensor<3x2xf64>) -> tensor<8x3xf64>
        %e = sluice.expand %p {dims = array<i64: 1, 2>, shape = array<i64: ?, 8, 3>} : (tensor<8x3xf64>) -> tensor<?x8x3xf64>
        %m = sluice.mul %e, %x : (tensor<?x8x3xf64>, tensor<?x8x3xf64>) -> tensor<?x8x3xf64>
        %s = sluice.softmax %m {axis = 1 : i64} : (tensor<?x8x3xf64>) -> tensor<?x8x3xf64>
        %y = sluice.sum %s {axes = array<i64: 2>} : (tensor<?x8x3xf64>) -> tensor<?x8xf64>
        sluice.return %s, %y : tensor<?x8x3xf64>, tensor<?x8xf64>
      })",
                                "test", getContext());
  ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
  auto entry = *(*parsed)->getBody()->getOps<EntryOp>().begin();
  ValueRange inputs = entry.getBody().getArguments(), results = entry.getBody().front().getTerminator()->getOperands();
  HostTensor x(runtimeShape(inputs[0].getType(), kRows));
  for (size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = std::sin(double(i));
  StateMap states;
  SmallVector<HostTensor> expected = *interpret(entry, {x}, states, kRows);

  Program program;
  std::vector<std::string> functions;
  for (Way way : kWays)
    functions.push_back(program.add(inputs, results, way));
  program.compile();
  for (const std::string &function : functions) {
    Buffers actual = call(program.function(function), inputs, results, x);
    for (auto [value, bytes, wanted] : llvm::zip(results, actual, expected))
      expectEqual(unpack(value, bytes), wanted, function);
  }
}

} // namespace sluice::test
