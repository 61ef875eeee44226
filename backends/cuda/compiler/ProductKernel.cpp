#include "backends/cuda/compiler/ProductKernel.h"

#include "backends/cuda/compiler/IndexText.h"
#include "backends/cuda/compiler/Prelude.h"
#include "backends/loops/Elements.h"
#include "backends/loops/Product.h"
#include "ir/Layout.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>
#include <numeric>

namespace sluice::cuda {

using namespace mlir;
using namespace loops;

// A block's threads lie as a square over its tile, and each has every 16th element of some rows and columns.
static constexpr int64_t kSide = 16, kThreads = kSide * kSide;
static constexpr int64_t kDepth = 16;       // of the tiles in shared memory: terms of a sum
static constexpr int64_t kLargestTile = 64; // rows or columns
// Terms that are added in one chain, before their sum is added to that of those before.
static constexpr int64_t kChain = 256;
// Terms of a sum over rows that a block adds; other blocks add others.
static constexpr int64_t kTermsOfChunk = 4096;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

/// The two parts of an index: of a row or column (and the batch), and of the place in the sum.
struct Parts {
  AffineExpr side, depth;
};

/// The dimensions of one role, flattened: rows of the call outermost.
struct Flat {
  SmallVector<Product::Dim> dims;
  int64_t inner = 1; // elements, of each row where there are rows
  bool hasRows = false;

  int64_t atCapacity() const { return hasRows ? inner * dims.front().size : inner; }
  std::string count() const { return hasRows ? fmt::format("(rows * {})", inner) : std::to_string(inner); }
};

class ProductWriter {
public:
  ProductWriter(const Product &product, Operation *op, int64_t capacity);

  bool isTileable() const { return tileable; }
  GridKernel write(StringRef name);

private:
  struct Operand {
    std::string name; // of what is its own in the text
    Value value;
    Parts offset;
    SmallVector<Parts> nonNegative; // besides those of the sum's place alone
    bool alongSide;                 // neighbouring rows or columns are neighbours in memory
  };

  Flat flatten(Product::Role role) const;
  bool isAlong(const Flat &side, AffineExpr offset) const;
  Operand operandFor(const char *name, const Product::Operand &its, const Flat &side);
  Parts partsOf(AffineExpr index);
  std::string textOf(AffineExpr index) const;
  const char *typeFor(const Parts &parts) const;
  std::string decode(const Flat &flat, const std::string &place, const std::string &indent) const;
  std::string conjunction(ArrayRef<std::string> conditions) const;

  int64_t tileOf(const Flat &flat) const;
  void planTasks();
  std::string places() const;
  std::string prepareOperand(const Operand &operand, const Flat &flat, int64_t tile,
                             const std::string &tileNumber) const;
  std::string tables() const;
  std::string fillTable() const;
  std::string loadTile(const Operand &operand, int64_t tile) const;
  std::string elementPlace(const Operand &operand, int64_t tile) const;
  std::string multiply() const;
  std::string store() const;
  std::string mainFunction(const std::string &name) const;
  std::string sumFunction(const std::string &name) const;

  Product product;
  Operation *op;
  int64_t capacity;
  int64_t result; // the number of its buffer; the workspace is the next
  RankedTensorType type;
  int64_t elements;   // in that buffer
  std::string scalar; // "float"
  Flat m, n, batch, k;
  Operand operands[2];
  AffineExpr resultOffset;
  SmallVector<AffineExpr> always; // conditions of the sum's place alone
  int64_t tileM = 0, tileN = 0;
  int64_t termsOfChunk = 0; // 0: sums are in one piece
  int64_t maxChunks = 1;
  bool tileable = true;
  GridFunction main;
};

} // namespace

ProductWriter::ProductWriter(const Product &given, Operation *op, int64_t capacity)
    : product(given), op(op), capacity(capacity), result(op->getBlock()->getNumArguments()),
      type(typeOf(op->getResult(0))),
      elements(ir::getBufferBytes(type, capacity) / ir::getElementBytes(type.getElementType())),
      scalar(type.getElementType().isF32() ? "float" : "double") {
  auto hasRows = [&](Product::Role role) {
    return llvm::any_of(product.dims, [&](const Product::Dim &dim) { return dim.role == role && dim.hasRows; });
  };
  if (hasRows(Product::N)) { // rows of the call are rows of the tile
    std::swap(product.a, product.b);
    for (Product::Dim &dim : product.dims)
      dim.role = dim.role == Product::M ? Product::N : dim.role == Product::N ? Product::M : dim.role;
  }
  m = flatten(Product::M), n = flatten(Product::N), batch = flatten(Product::Batch), k = flatten(Product::K);
  operands[0] = operandFor("a", product.a, m);
  operands[1] = operandFor("b", product.b, n);
  for (AffineExpr condition : product.nonNegative) {
    bool byM = product.uses(condition, Product::M), byN = product.uses(condition, Product::N);
    tileable &= !(byM && byN);
    if (byM || byN)
      operands[byM ? 0 : 1].nonNegative.push_back(partsOf(condition));
    else
      always.push_back(condition);
  }
  resultOffset = product.space.normalize(offsetIn(type, product.result, capacity));
  tileM = tileOf(m), tileN = tileOf(n);
}

Flat ProductWriter::flatten(Product::Role role) const {
  Flat flat;
  for (const Product::Dim &dim : product.dims) {
    if (dim.role != role)
      continue;
    flat.dims.insert(dim.hasRows ? flat.dims.begin() : flat.dims.end(), dim);
    flat.hasRows |= dim.hasRows;
    flat.inner *= dim.hasRows ? 1 : dim.size;
  }
  return flat;
}

int64_t ProductWriter::tileOf(const Flat &flat) const {
  int64_t tile = kSide;
  while (tile < kLargestTile && tile < flat.atCapacity())
    tile *= 2;
  return tile;
}

ProductWriter::Operand ProductWriter::operandFor(const char *name, const Product::Operand &its, const Flat &side) {
  Value value = op->getOperand(its.number);
  AffineExpr offset = product.space.normalize(offsetIn(typeOf(value), its.index, capacity));
  return {name, value, partsOf(offset), {}, isAlong(side, offset)};
}

/// Whether the innermost of these dimensions is the innermost in memory.
bool ProductWriter::isAlong(const Flat &side, AffineExpr offset) const {
  return !side.dims.empty() && product.space.analyze(offset).coefficientOf(side.dims.back().variable) == 1;
}

/// There are no tiles where one term of the index hangs on both.
Parts ProductWriter::partsOf(AffineExpr index) {
  LinearIndex linear = product.space.analyze(index), side, depth;
  side.constant = linear.constant;
  for (const LinearIndex::Term &term : linear.terms) {
    bool bySide = product.uses(term.atom, Product::M) || product.uses(term.atom, Product::N);
    bool byDepth = product.uses(term.atom, Product::K);
    tileable &= !(bySide && byDepth);
    (byDepth ? depth : side).terms.push_back(term);
  }
  return {product.space.toExpr(side), product.space.toExpr(depth)};
}

//===- texts of indices -------------------------------------------------------------------------------------------===//

static std::string nameOf(AffineExpr variable) {
  return "d" + std::to_string(cast<AffineDimExpr>(variable).getPosition());
}

std::string ProductWriter::textOf(AffineExpr index) const {
  return indexText(product.space, index,
                   [](AffineExpr variable, bool isWide) { return (isWide ? "(Index)" : "") + nameOf(variable); });
}

/// Of the parts of an index, and of their sum.
const char *ProductWriter::typeFor(const Parts &parts) const {
  auto isShort = [&](AffineExpr part) { return product.space.range(part).within(INT32_MIN / 2, INT32_MAX / 2); };
  return isShort(parts.side) && isShort(parts.depth) ? "int" : "Index";
}

/// The dimensions of `place`.
std::string ProductWriter::decode(const Flat &flat, const std::string &place, const std::string &indent) const {
  std::string text, rest = place;
  for (const Product::Dim &dim : llvm::reverse(flat.dims)) {
    bool isOutermost = &dim == &flat.dims.front();
    std::string name = nameOf(dim.variable);
    if (isOutermost) {
      text += fmt::format("{}const int {} = (int)({});\n", indent, name, rest);
      break;
    }
    text +=
        fmt::format("{0}const int {1} = (int)({2} - quotient({2}, (Index){3}) * {3});\n", indent, name, rest, dim.size);
    text += fmt::format("{0}const Index r{1} = quotient({2}, (Index){3});\n", indent, name, rest, dim.size);
    rest = "r" + name;
  }
  return text;
}

std::string ProductWriter::conjunction(ArrayRef<std::string> conditions) const {
  return conditions.empty() ? "true" : llvm::join(conditions, " && ");
}

//===- tasks ------------------------------------------------------------------------------------------------------===//

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

void ProductWriter::planTasks() {
  main.threads = kThreads;
  main.tasks = ceilDiv(n.inner, tileN);
  if (k.hasRows && k.atCapacity() > kTermsOfChunk) {
    int64_t rows = std::max<int64_t>(1, kTermsOfChunk / k.inner);
    termsOfChunk = rows * k.inner;
    maxChunks = ceilDiv(k.dims.front().size, rows);
    main.rowsPerTask = rows;
  }
  if (batch.hasRows)
    main.rowsPerTask = 1;
  main.tasks *= batch.inner;
  if (m.hasRows) // tiles of as many rows as fill whole ones
    main.rowsPerTask = tileM / std::gcd(tileM, m.inner);
  main.tasks *= m.hasRows ? main.rowsPerTask * m.inner / tileM : ceilDiv(m.inner, tileM);
}

/// Which tile, element of the batch and chunk a block has: what the rows decide comes last.
std::string ProductWriter::places() const {
  std::string text = "  Index place = blockIdx.x;\n  if (place >= tasks) return;\n";
  auto take = [&](const char *name, int64_t count) {
    text += fmt::format(
        "  const Index {0} = place - quotient(place, (Index){1}) * {1};\n  place = quotient(place, (Index){1});\n",
        name, count);
  };
  take("tileOfN", ceilDiv(n.inner, tileN));
  if (!m.hasRows)
    take("tileOfM", ceilDiv(m.inner, tileM));
  if (!batch.hasRows)
    take("element", batch.inner);
  text += fmt::format("  const Index {} = place;\n", m.hasRows ? "tileOfM" : batch.hasRows ? "element" : "chunk");
  text += decode(batch, "element", "  ");
  if (termsOfChunk)
    text += fmt::format("  const Index begin = chunk * {0}, end = begin + {0} < {1} ? begin + {0} : {1};\n",
                        termsOfChunk, k.count());
  else
    text += fmt::format("  const Index begin = 0, end = {};\n", k.count());
  return text;
}

//===- tiles of operands ------------------------------------------------------------------------------------------===//

/// Which element of a tile a thread loads: neighbours load neighbours in memory.
std::string ProductWriter::elementPlace(const Operand &operand, int64_t tile) const {
  const char *form = operand.alongSide ? "const int side = (thread + {0} * l) % {1}, depth = (thread + {0} * l) / {1};"
                                       : "const int depth = (thread + {0} * l) % {2}, side = (thread + {0} * l) / {2};";
  return fmt::format(fmt::runtime(form), kThreads, tile, kDepth);
}

/// What the rows or columns that a thread loads say.
std::string ProductWriter::prepareOperand(const Operand &operand, const Flat &flat, int64_t tile,
                                          const std::string &tileNumber) const {
  int64_t each = tile * kDepth / kThreads;
  const std::string &name = operand.name;
  std::string text = fmt::format("  {0} {1}Side[{2}];\n  bool {1}Exists[{2}];\n", typeFor(operand.offset), name, each);
  for (auto [i, condition] : llvm::enumerate(operand.nonNegative))
    text += fmt::format("  {} {}If{}[{}];\n", typeFor(condition), name, i, each);
  text += fmt::format("  EACH({}) {{\n    {}\n    const Index at = {} * {} + side;\n", each,
                      elementPlace(operand, tile), tileNumber, tile);
  text += decode(flat, "at", "    ");
  // Of an element that the result does not have, the operand may have none either.
  SmallVector<std::string> exists{fmt::format("at < {}", flat.count())};
  for (AffineExpr condition : product.inResult)
    if (product.uses(condition, &operand == &operands[0] ? Product::M : Product::N))
      exists.push_back(textOf(condition) + " >= 0");
  text += fmt::format("    {}Exists[l] = {};\n", name, conjunction(exists));
  text += fmt::format("    {}Side[l] = {};\n", name, textOf(operand.offset.side));
  for (auto [i, condition] : llvm::enumerate(operand.nonNegative))
    text += fmt::format("    {}If{}[l] = {};\n", name, i, textOf(condition.side));
  return text + "    (void)depth;\n  }\n";
}

/// Shared memory for what places in the sum say.
std::string ProductWriter::tables() const {
  std::string text = fmt::format("  __shared__ bool exists[{}];\n", kDepth);
  for (const Operand &operand : operands) {
    int64_t tile = &operand == &operands[0] ? tileM : tileN;
    text += fmt::format("  __shared__ {} {}[{}][{}];\n", scalar, operand.name, kDepth, tile + 1);
    text += fmt::format("  __shared__ {} {}Depth[{}];\n", typeFor(operand.offset), operand.name, kDepth);
    for (auto [i, condition] : llvm::enumerate(operand.nonNegative))
      text += fmt::format("  __shared__ {} {}DepthIf{}[{}];\n", typeFor(condition), operand.name, i, kDepth);
  }
  return text;
}

std::string ProductWriter::fillTable() const {
  std::string text = fmt::format("    if (thread < {}) {{\n      const Index at = from + thread;\n", kDepth);
  text += decode(k, "at", "      ");
  SmallVector<std::string> conditions{"at < end"};
  for (AffineExpr condition : always)
    conditions.push_back(textOf(condition) + " >= 0");
  text += fmt::format("      exists[thread] = {};\n", conjunction(conditions));
  for (const Operand &operand : operands) {
    text += fmt::format("      {}Depth[thread] = {};\n", operand.name, textOf(operand.offset.depth));
    for (auto [i, condition] : llvm::enumerate(operand.nonNegative))
      text += fmt::format("      {}DepthIf{}[thread] = {};\n", operand.name, i, textOf(condition.depth));
  }
  return text + "    }\n";
}

std::string ProductWriter::loadTile(const Operand &operand, int64_t tile) const {
  const std::string &name = operand.name;
  SmallVector<std::string> conditions{name + "Exists[l]", "exists[depth]"};
  for (size_t i = 0; i < operand.nonNegative.size(); ++i)
    conditions.push_back(fmt::format("{0}If{1}[l] + {0}DepthIf{1}[depth] >= 0", name, i));
  return fmt::format(
      "    EACH({}) {{\n      {}\n      {}[depth][side] = {} ? (({} *)b{})[{}Side[l] + {}Depth[depth]] : 0;\n    }}\n",
      tile * kDepth / kThreads, elementPlace(operand, tile), name, conjunction(conditions), scalar,
      cast<BlockArgument>(operand.value).getArgNumber(), name, name);
}

//===- sums -------------------------------------------------------------------------------------------------------===//

std::string ProductWriter::multiply() const {
  return fmt::format(R"(    _Pragma("unroll") for (int depth = 0; depth < {0}; ++depth)
      _Pragma("unroll") for (int i = 0; i < {1}; ++i)
        _Pragma("unroll") for (int j = 0; j < {2}; ++j)
          chain[i][j] = fma(a[depth][ofM + i * {3}], b[depth][ofN + j * {3}], chain[i][j]);
)",
                     kDepth, tileM / kSide, tileN / kSide, kSide);
}

std::string ProductWriter::store() const {
  std::string text;
  SmallVector<std::string> conditions{fmt::format("atM < {}", m.count()), fmt::format("atN < {}", n.count())};
  text += fmt::format(
      "  _Pragma(\"unroll\") for (int i = 0; i < {}; ++i) {{\n    const Index atM = tileOfM * {} + ofM + i * {};\n",
      tileM / kSide, tileM, kSide);
  text += decode(m, "atM", "    ");
  text += fmt::format(
      "    _Pragma(\"unroll\") for (int j = 0; j < {}; ++j) {{\n      const Index atN = tileOfN * {} + ofN + j * {};\n",
      tileN / kSide, tileN, kSide);
  text += decode(n, "atN", "      ");
  for (AffineExpr condition : product.inResult)
    conditions.push_back(textOf(condition) + " >= 0");
  std::string place =
      termsOfChunk ? fmt::format("(({} *)b{})[chunk * {} + {}]", scalar, result + 1, elements, textOf(resultOffset))
                   : fmt::format("(({} *)b{})[{}]", scalar, result, textOf(resultOffset));
  text += fmt::format("      if ({}) {} = sum[i][j];\n    }}\n  }}\n", conjunction(conditions), place);
  return text;
}

std::string ProductWriter::mainFunction(const std::string &name) const {
  // Neighbouring threads store neighbours of the result.
  bool acrossM = isAlong(m, resultOffset);
  std::string text = kernelHead(name, result + 2);
  text += tables() + "  const int thread = threadIdx.x;\n" + places();
  text += fmt::format("  const int ofM = {0}, ofN = {1};\n",
                      acrossM ? fmt::format("thread % {}", kSide) : fmt::format("thread / {}", kSide),
                      acrossM ? fmt::format("thread / {}", kSide) : fmt::format("thread % {}", kSide));
  text += prepareOperand(operands[0], m, tileM, "tileOfM") + prepareOperand(operands[1], n, tileN, "tileOfN");
  text += fmt::format("  {} sum[{}][{}] = {{}};\n", scalar, tileM / kSide, tileN / kSide);
  text += fmt::format("  for (Index chains = begin; chains < end; chains += {0}) {{\n  {1} chain[{2}][{3}] = {{}};\n"
                      "  const Index last = chains + {0} < end ? chains + {0} : end;\n"
                      "  for (Index from = chains; from < last; from += {4}) {{\n",
                      kChain, scalar, tileM / kSide, tileN / kSide, kDepth);
  text += fillTable() + "    __syncthreads();\n" + loadTile(operands[0], tileM) + loadTile(operands[1], tileN) +
          "    __syncthreads();\n" + multiply();
  text += fmt::format(
      "  }}\n  _Pragma(\"unroll\") for (int i = 0; i < {}; ++i)\n    _Pragma(\"unroll\") for (int j = 0; j < {}; ++j)\n"
      "      sum[i][j] += chain[i][j];\n  }}\n",
      tileM / kSide, tileN / kSide);
  return text + store() + "}\n";
}

/// Adds the chunks' sums: a thread has an element.
std::string ProductWriter::sumFunction(const std::string &name) const {
  std::string text = kernelHead(name, result + 2);
  text += fmt::format("  const Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x;\n  if (at >= {}) return;\n",
                      elements);
  text += fmt::format("  const Index chunks = quotient({} + {} - 1, (Index){});\n  {} sum = 0;\n", k.count(),
                      termsOfChunk, termsOfChunk, scalar);
  text += fmt::format("  for (Index chunk = 0; chunk < chunks; ++chunk) sum += (({} *)b{})[chunk * {} + at];\n", scalar,
                      result + 1, elements);
  return text + fmt::format("  (({} *)b{})[at] = sum;\n}}\n", scalar, result);
}

GridKernel ProductWriter::write(StringRef name) {
  planTasks();
  main.name = name.str();
  GridKernel kernel;
  kernel.text = mainFunction(main.name);
  kernel.functions.push_back(main);
  if (termsOfChunk) {
    kernel.workspaceBytes = maxChunks * ir::getBufferBytes(type, capacity);
    GridFunction sum{name.str() + "_sum", ceilDiv(elements, kWarp), 0, kWarp};
    kernel.text += sumFunction(sum.name);
    kernel.functions.push_back(sum);
  }
  return kernel;
}

std::optional<GridKernel> writeProductKernel(Operation *op, StringRef name, int64_t capacity) {
  Formulas formulas;
  std::optional<Product> product = findProduct(formulas, op, capacity);
  if (!product)
    return std::nullopt;
  ProductWriter writer(*product, op, capacity);
  return writer.isTileable() ? std::optional(writer.write(name)) : std::nullopt;
}

} // namespace sluice::cuda
