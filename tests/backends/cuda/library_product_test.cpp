// Products as matrices for a library: plain loops over the matched matrices give the reference results.
#include "backends/cuda/compiler/library/LibraryProduct.h"
#include "sluice/backend/halves.h"
#include "tests/backends/cuda/GridRun.h"
#include <fmt/format.h>

#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;

namespace sluice::cuda::test {

namespace {

/// An element of memory as a number, and a number as one.
template <typename T> struct Stored {
  static double read(T stored) { return stored; }
  static T write(double number) { return T(number); }
};
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
template <> struct Stored<F16> {
  static double read(F16 stored) { return sluice_float_of_f16(stored.bits); }
  static F16 write(double number) { return {sluice_f16_of_float(float(number))}; }
};
template <> struct Stored<BF16> {
  static double read(BF16 stored) { return sluice_float_of_bf16(stored.bits); }
  static BF16 write(double number) { return {sluice_bf16_of_float(float(number))}; }
};

/// Of x S(2u), where S is the logistic function.
double derivativeOfGelu(double x) {
  double logistic = 1 / (1 + std::exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)));
  return logistic + x * logistic * (1 - logistic) * 2 * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

class LibraryRun : public GridRun {
public:
  explicit LibraryRun(const Body &body, bool isTimed = false)
      : GridRun("k", body.operands, body.text, body.yields), tolerance(body.tolerance) {
    loops::Formulas formulas;
    SmallVector<Operation *> ops = this->ops();
    const auto *itsSum = llvm::find_if(ops, llvm::IsaPred<ir::SumOp>);
    auto sum = itsSum == ops.end() ? ir::SumOp() : cast<ir::SumOp>(*itsSum);
    llvm::erase(ops, sum.getOperation());
    auto product = llvm::find_if(ops, llvm::IsaPred<ir::ContractionOp>);
    if (std::optional<loops::Product> found = loops::findProduct(formulas, *product, kCapacity))
      library = findLibraryProduct(*found, ArrayRef(product, ops.end()), kCapacity, isTimed, sum);
  }

  /// The largest error of the loops over the matrices.
  double multiply(int64_t rows) {
    randomize(-2, 2);
    std::vector<void *> buffers = begin(rows, 0);
    if (library->type == "f64")
      multiply<double>(rows, buffers);
    else if (library->type == "f16")
      multiply<F16>(rows, buffers);
    else if (library->type == "bf16")
      multiply<BF16>(rows, buffers);
    else
      multiply<float>(rows, buffers);
    return error();
  }

  std::optional<LibraryProduct> library;
  double tolerance;

private:
  template <typename T> void multiply(int64_t rows, const std::vector<void *> &buffers) {
    auto count = [&](const LibraryProduct::Extent &extent) { return extent.perRow ? extent.size * rows : extent.size; };
    auto at = [&](const LibraryProduct::Matrix &matrix, int64_t batch, int64_t row, int64_t column) -> T & {
      if (matrix.isTransposed)
        std::swap(row, column);
      return static_cast<T *>(
          buffers[size_t(matrix.buffer)])[batch * matrix.batchStride + column * matrix.leading + row];
    };
    auto read = Stored<T>::read;
    for (int64_t i = 0; library->sums && i < count(library->sumsSecond ? library->q : library->p); ++i) {
      double sum = 0;
      for (int64_t k = 0; k < count(library->k); ++k)
        sum += read(library->sumsSecond ? at(library->second, 0, k, i) : at(library->first, 0, i, k));
      static_cast<T *>(buffers[size_t(*library->sums)])[i] = Stored<T>::write(sum);
    }
    for (int64_t batch = 0; batch < count(library->batch); ++batch)
      for (int64_t p = 0; p < count(library->p); ++p)
        for (int64_t q = 0; q < count(library->q); ++q) {
          double sum = 0;
          for (int64_t k = 0; k < count(library->k); ++k)
            sum += read(at(library->first, batch, p, k)) * read(at(library->second, batch, k, q));
          if (library->bias)
            sum += read(static_cast<T *>(buffers[size_t(*library->bias)])[p]);
          if (library->activation == "relu")
            sum = std::max(sum, 0.0);
          if (library->activation == "gelu_gradient")
            sum *= derivativeOfGelu(read(static_cast<T *>(
                buffers[size_t(*library->input)])[&at(library->result, batch, p, q) - &at(library->result, 0, 0, 0)]));
          if (library->activation == "gelu")
            sum *= 0.5 * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
          at(library->result, batch, p, q) = Stored<T>::write(sum);
        }
  }
};

constexpr const char *kRelu = "relu", *kGelu = "gelu {tanh}";

/// A product times the derivative of a GELU at another operand, of the result's type if it has no other, as ops' gradients have
/// it, but for the text that is replaced.
Body timesDerivative(Body body, const std::string &replaced = "", const std::string &by = "", std::string input = "") {
  const std::string y = body.yields.substr(body.yields.find(": ") + 2);
  std::string ops = R"(
%c0 = full 0.134145
%a1 = mul %c0, %2
%a2 = mul %a1, %2
%c1 = full 1.0
%a3 = add %c1, %a2
%c2 = full 0.044715
%b1 = mul %c2, %2
%b2 = mul %b1, %2
%b3 = mul %b2, %2
%b4 = add %2, %b3
%c3 = full 0.7978845608028654
%b5 = mul %c3, %b4
%t = tanh %b5
%d1 = add %c1, %t
%c4 = full 0.5
%d2 = mul %c4, %d1
%e1 = mul %t, %t
%e2 = sub %c1, %e1
%e3 = mul %c4, %2
%e4 = mul %e3, %e2
%e5 = mul %e4, %c3
%e6 = mul %e5, %a3
%f = add %d2, %e6
%g = mul %a, %f
)";
  if (!replaced.empty())
    ops.replace(ops.find(replaced), replaced.size(), by);
  body.text += "\n";
  if (input.empty())
    input = y;
  body.operands.push_back(input);
  SmallVector<StringRef> lines;
  StringRef(ops).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    auto [result, formula] = line.split(" = ");
    auto [name, operands] = formula.split(' ');
    bool isConstant = name == "full";
    std::string types;
    for (StringRef operand : llvm::split(operands, ", "))
      types += (types.empty() ? "" : ", ") + (operand == "%2" ? input : y);
    std::string attributes =
        isConstant ? fmt::format("{{type = {}, value = {} : f64}}", y, operands.str()) : operands.str();
    body.text += fmt::format("{} = sluice.{} {} : ({}) -> {}\n", result.str(), name.str(), attributes,
                             isConstant ? "" : types, y);
  }
  body.yields = "%g : " + y;
  return body;
}

/// A product with a bias along `dim` behind it, if that is not negative, and an activation such as "gelu {tanh}", if that is not
/// "".
Body followed(Body body, int dim, const std::string &activation) {
  const std::string y = body.yields.substr(body.yields.find(": ") + 2);
  std::string last = "%a";
  body.text += "\n";
  if (dim >= 0) {
    auto [shape, element] =
        llvm::StringRef(y).drop_front(strlen("tensor<")).split('>').first.split(',').first.rsplit('x');
    SmallVector<StringRef> sizes;
    shape.split(sizes, 'x');
    std::string expanded;
    for (StringRef size : sizes)
      expanded += (expanded.empty() ? "" : ", ") + size.str();
    std::string bias = ("tensor<" + sizes[size_t(dim)] + "x" + element + ">").str(), dims = std::to_string(dim);
    body.operands.push_back(bias);
    body.text += "%e = sluice.expand %2 {dims = array<i64: " + dims + ">, shape = array<i64: " + expanded + ">} : (" +
                 bias + ") -> " + y + "\n%b = sluice.add %a, %e : (" + y + ", " + y + ") -> " + y + "\n";
    last = "%b";
  }
  if (!activation.empty()) {
    auto [name, attributes] = StringRef(activation).split(' ');
    body.text += ("%r = sluice." + name + " " + last + " " + attributes + " : (" + y + ") -> " + y + "\n").str();
    last = "%r";
  }
  body.yields = last + " : " + y;
  return body;
}

std::string oneByOne(const char *stride, const char *padding) {
  return std::string("{stride = array<i64: ") + stride + ">, padding = array<i64: " + padding +
         ">, dilation = array<i64: 1, 1>, groups = 1 : i64}";
}

/// Runs these, whose type, bias and activation are found.
void expectTheReference(const std::vector<Body> &bodies, bool isTimed = false) {
  for (const Body &body : bodies) {
    LibraryRun run(body, isTimed);
    ASSERT_TRUE(run.library) << run.diagnostics() << body.text;
    EXPECT_EQ(run.library->bias.has_value(), StringRef(body.text).contains("expand")) << body.text;
    StringRef text = body.text;
    EXPECT_EQ(run.library->activation, text.contains("relu")   ? "relu"
                                       : text.contains("gelu") ? "gelu"
                                       : text.contains("tanh") ? "gelu_gradient"
                                                               : "none")
        << body.text;
    EXPECT_EQ(run.library->input.has_value(), text.contains("sluice.tanh")) << body.text;
    for (int64_t rows : {7, 3, 1}) {
      double error = run.multiply(rows);
      EXPECT_TRUE(error <= run.tolerance) << error << " with " << rows << " rows of\n" << body.text;
    }
  }
}

std::vector<Body> matrices() {
  return {
      einsum("ab,bc->ac", "tensor<?x20xf32>", "tensor<20x9xf32>", "tensor<?x9xf32>"),
      einsum("ab,cb->ac", "tensor<?x20xf64>", "tensor<9x20xf64>", "tensor<?x9xf64>"),
      einsum("ab,ac->bc", "tensor<?x20xf32>", "tensor<?x9xf32>", "tensor<20x9xf32>"),
      einsum("ab,cb->ac", "tensor<9x20xf32>", "tensor<?x20xf32>", "tensor<9x?xf32>"),
      einsum("ab,bc->ac", "tensor<?x1xf32>", "tensor<1x9xf32>", "tensor<?x9xf32>"),
      einsum("ab,bc->ac", "tensor<1x20xf32>", "tensor<20x1xf32>", "tensor<1x1xf32>"),
      einsum("abc,adc->abd", "tensor<?x4x6xf32>", "tensor<?x5x6xf32>", "tensor<?x4x5xf32>"),
      einsum("abcd,abde->abce", "tensor<3x4x2x6xf64>", "tensor<3x4x6x5xf64>", "tensor<3x4x2x5xf64>"),
      einsum("abc,dc->abd", "tensor<?x4x6xf32>", "tensor<5x6xf32>", "tensor<?x4x5xf32>"),
      einsum("abc,abd->cd", "tensor<?x4x6xf32>", "tensor<?x4x5xf32>", "tensor<6x5xf32>"),
      product("conv2d", "tensor<?x5x4x3xf32, #nhwc>", "tensor<8x5x1x1xf32>", "tensor<?x8x4x3xf32, #nhwc>",
              oneByOne("1, 1", "0, 0, 0, 0")),
  };
}

} // namespace

TEST(LibraryProduct, IsWhatTheOpIs) {
  std::vector<Body> all = matrices();
  for (const Body &body : matrices())
    if (body.text.find("f64") == std::string::npos)
      all.push_back(all.size() % 2 ? as("f16", body, 0x1p-10) : as("bf16", body, 0x1p-7));
  expectTheReference(all);
}

TEST(LibraryProduct, ReadsThroughWhatMovesElements) {
  std::vector<Body> all = productsOfHeads();
  for (const Body &body : productsOfHeads())
    all.push_back(as("bf16", body, 0x1p-7));
  expectTheReference(all);
}

TEST(LibraryProduct, LeavesSumsOfAnOperandBesideIt) {
  std::vector<Body> all = productsWithSums();
  for (const Body &body : productsWithSums())
    all.push_back(all.size() % 2 ? as("f16", body, 0x1p-9) : as("bf16", body, 0x1p-6));
  // As what is read through has it.
  Body heads = productsOfHeads()[1];
  heads.text += "\n%s = sluice.sum %rows {axes = array<i64: 0, 1>} : (tensor<?x10x24xf32>) -> tensor<24xf32>";
  heads.yields = "%a, %s : tensor<24x16xf32>, tensor<24xf32>";
  all.push_back(heads);
  expectTheReference(all);
  for (const Body &body : all)
    EXPECT_TRUE(LibraryRun(body).library->sums) << body.text;
}

TEST(LibraryProduct, LeavesNoOtherSums) {
  const std::string x = "tensor<?x4x6xf32>", dy = "tensor<?x4x5xf32>";
  const Body one = einsum("abc,abd->cd", x, dy, "tensor<6x5xf32>");
  auto finds = [](const Body &body) { return LibraryRun(body).library.has_value(); };
  EXPECT_TRUE(finds(withSum(one, 1, "0, 1", "tensor<5xf32>")));
  EXPECT_FALSE(finds(as("f64", withSum(one, 1, "0, 1", "tensor<5xf32>"), 0)));
  for (auto [axes, sum] : {std::pair("0", "tensor<4x5xf32>"),
                           {"1", "tensor<?x5xf32>"},
                           {"2", "tensor<?x4xf32>"},
                           {"0, 2", "tensor<4xf32>"},
                           {"0, 1, 2", "tensor<f32>"}})
    EXPECT_FALSE(finds(withSum(one, 1, axes, sum))) << "over " << axes;
  EXPECT_FALSE(finds(withSum(einsum("abc,dc->abd", x, "tensor<5x6xf32>", dy), 0, "2", "tensor<?x4xf32>")))
      << "a number for each row";
  EXPECT_TRUE(finds(withSum(einsum("abc,dc->abd", x, "tensor<5x6xf32>", dy), 1, "1", "tensor<5xf32>")));
  EXPECT_FALSE(finds(withSum(einsum("abc,abd->bcd", x, dy, "tensor<4x6x5xf32>"), 1, "0", "tensor<4x5xf32>")))
      << "of a batch";
  Body part = einsum("abc,abd->cd", "tensor<8x4x6xf32>", "tensor<8x4x5xf32>", "tensor<6x5xf32>");
  EXPECT_TRUE(finds(withSum(part, 1, "0, 1", "tensor<5xf32>")));
  part.text =
      "%t = sluice.slice %1 {start = array<i64: 0, 0, 0>, end = array<i64: 3, 4, 5>, step = array<i64: 1, 1, 1>} : "
      "(tensor<8x4x5xf32>) -> tensor<3x4x5xf32>\n"
      "%s = sluice.sum %t {axes = array<i64: 0, 1>} : (tensor<3x4x5xf32>) -> tensor<5xf32>\n" +
      part.text;
  part.yields = "%s, %a : tensor<5xf32>, tensor<6x5xf32>";
  EXPECT_FALSE(finds(part)) << "of a part of the rows";
  Body other = withSum(one, 1, "0, 1", "tensor<5xf32>");
  other.operands.push_back(dy);
  other.text.replace(other.text.find("%1"), 2, "%2");
  EXPECT_FALSE(finds(other)) << "of another matrix";
  Body behind = withSum(one, 1, "0, 1", "tensor<5xf32>");
  behind.text += "\n%r = sluice.relu %a : (tensor<6x5xf32>) -> tensor<6x5xf32>";
  behind.yields = "%s, %r : tensor<5xf32>, tensor<6x5xf32>";
  EXPECT_FALSE(finds(behind)) << "with an activation";
}

TEST(LibraryProduct, TakesBiasAndActivationBehindIt) {
  std::vector<Body> all;
  for (const Body &body : matrices()) {
    bool isWide = StringRef(body.text).contains("f64"), isImage = StringRef(body.text).contains("conv2d");
    int last = int(StringRef(body.yields).count('x')) - 1;
    if (isWide || StringRef(body.yields).contains("9x?")) // a library adds none to doubles, nor along rows of the call
      continue;
    for (const char *activation : {"", kRelu, kGelu})
      all.push_back(followed(body, isImage ? 1 : last, activation));
    all.push_back(followed(body, -1, kRelu));
  }
  all.push_back(followed(matrices()[0], -1, kGelu));
  all.push_back(followed(as("bf16", matrices()[0], 0x1p-7), -1, kRelu));
  expectTheReference(all);
}

TEST(LibraryProduct, TakesWhatIsRoundedOtherwiseIfItIsTimed) {
  std::vector<Body> all;
  for (const char *activation : {"", kRelu, kGelu})
    for (int bias : {-1, 1}) {
      all.push_back(followed(as("bf16", matrices()[0], 0x1p-6), bias, activation));
      all.push_back(followed(as("f16", matrices()[0], 0x1p-9), bias, activation));
    }
  expectTheReference(all, /*isTimed=*/true);
  auto finds = [](const Body &body) { return LibraryRun(body, /*isTimed=*/true).library.has_value(); };
  EXPECT_FALSE(finds(followed(matrices()[1], 1, ""))) << "there are no epilogues for doubles";
  EXPECT_FALSE(finds(followed(matrices()[0], -1, "gelu"))) << "erf";
}

TEST(LibraryProduct, TakesTheGradientOfAGelu) {
  std::vector<Body> all;
  for (const char *columns : {"8", "16"})
    for (const char *of : {"ab,bc->ac", "ab,cb->ac"}) {
      std::string n = columns, weight = of[3] == 'b' ? "20x" + n : n + "x20";
      all.push_back(
          timesDerivative(einsum(of, "tensor<?x20xf32>", "tensor<" + weight + "xf32>", "tensor<?x" + n + "xf32>")));
    }
  all.push_back(timesDerivative(einsum("abc,adc->abd", "tensor<?x4x6xf32>", "tensor<?x8x6xf32>", "tensor<?x4x8xf32>")));
  expectTheReference(all);
}

TEST(LibraryProduct, LeavesOutOtherGradients) {
  auto bodyOf = [](const std::string &columns) {
    return einsum("ab,bc->ac", "tensor<?x20xf32>", "tensor<20x" + columns + "xf32>", "tensor<?x" + columns + "xf32>");
  };
  auto finds = [](const Body &body, bool isTimed = false) { return LibraryRun(body, isTimed).library.has_value(); };
  const Body one = bodyOf("8");
  EXPECT_TRUE(finds(timesDerivative(one)));
  EXPECT_FALSE(finds(timesDerivative(bodyOf("9")))) << "columns lie 9 elements apart";
  EXPECT_FALSE(finds(timesDerivative(as("bf16", one, 0)), /*isTimed=*/true)) << "halves are rounded before it";
  EXPECT_FALSE(finds(timesDerivative(as("f64", one, 0))));
  for (auto [replaced, by] : {std::pair("0.134145", "0.134"), {"tanh", "sigmoid"}, {"sub %c1", "add %c1"}})
    EXPECT_FALSE(finds(timesDerivative(one, replaced, by))) << by;
  EXPECT_FALSE(finds(timesDerivative(one, "mul %e3, %e2", "mul %a, %e2"))) << "of the product";
  EXPECT_FALSE(finds(timesDerivative(one, "%g = mul %a, %f", "%h = mul %a, %f\n%g = neg %h"))) << "more behind it";
  EXPECT_FALSE(finds(timesDerivative(one, "%g = mul %a, %f", "%h = neg %a\n%g = mul %a, %f"))) << "beside it";
  EXPECT_FALSE(finds(timesDerivative(one, "%g = mul %a, %f", "%g = mul %f, %f"))) << "of no product";
  const Body heads = einsum("abcd,ed->abce", "tensor<?x3x4x6xf32>", "tensor<8x6xf32>", "tensor<?x3x4x8xf32>");
  EXPECT_TRUE(finds(timesDerivative(heads)));
  EXPECT_FALSE(finds(timesDerivative(heads, "", "", "tensor<?x3x4x8xf32, #bthd>"))) << "it lies otherwise than D";
}

// Kernels may read one buffer twice.
TEST(LibraryProduct, NumbersTheBuffersOfItsKernel) {
  std::string x = "tensor<9x20xf32>", y = "tensor<9x9xf32>";
  expectTheReference({{{x}, "%a = sluice.einsum \"ab,cb->ac\" %0, %0 : (" + x + ", " + x + ") -> " + y, "%a : " + y}});
}

TEST(LibraryProduct, LeavesOutWhatIsRoundedOtherwise) {
  Body one = matrices()[0], square = einsum("ab,bc->ac", "tensor<7x20xf32>", "tensor<20x7xf32>", "tensor<7x7xf32>");
  auto finds = [](const Body &body) { return LibraryRun(body).library.has_value(); };
  EXPECT_TRUE(finds(followed(square, 1, "")));
  EXPECT_FALSE(finds(followed(square, 0, ""))) << "a number for each column of D";
  EXPECT_FALSE(finds(followed(as("bf16", one, 0), 1, ""))) << "halves are rounded before they are added";
  EXPECT_FALSE(finds(followed(matrices()[1], 1, ""))) << "there are no epilogues for doubles";
  for (const char *activation : {kRelu, kGelu})
    EXPECT_FALSE(finds(followed(matrices()[1], -1, activation)));
  EXPECT_FALSE(finds(followed(as("bf16", one, 0), -1, kGelu))) << "halves are rounded before it";
  EXPECT_FALSE(finds(followed(one, -1, "gelu"))) << "erf";
  Body other = one;
  other.text += "\n%b = sluice.neg %a : (tensor<?x9xf32>) -> tensor<?x9xf32>";
  other.yields = "%b : tensor<?x9xf32>";
  EXPECT_FALSE(finds(other));
}

// Rows of a matrix are strided, as are columns.
TEST(LibraryProduct, LeavesOutWhatIsRepeated) {
  for (auto [from, dim] : {std::pair("tensor<20xf32>", 1), {"tensor<9xf32>", 0}}) {
    Body body = einsum("ab,bc->ac", "tensor<9x20xf32>", "tensor<20x7xf32>", "tensor<9x7xf32>");
    body.operands[0] = from;
    body.text =
        fmt::format(
            "%e = sluice.expand %0 {{dims = array<i64: {}>, shape = array<i64: 9, 20>}} : ({}) -> tensor<9x20xf32>\n",
            dim, from) +
        body.text.replace(body.text.find("%0"), 2, "%e");
    EXPECT_FALSE(LibraryRun(body).library) << body.text;
  }
}

// Of one image of one channel, windows of a column are found like a matrix's columns, and share elements.
TEST(LibraryProduct, LeavesOutWindowsThatOverlap) {
  auto finds = [](const char *w, const char *y, const char *stride) {
    return LibraryRun(product("conv2d", "tensor<1x1x12x1xf32>", w, y, oneByOne(stride, "0, 0, 0, 0")))
        .library.has_value();
  };
  EXPECT_FALSE(finds("tensor<8x1x4x1xf32>", "tensor<1x8x9x1xf32>", "1, 1"));
  EXPECT_FALSE(finds("tensor<8x1x4x1xf32>", "tensor<1x8x5x1xf32>", "2, 1"));
  EXPECT_TRUE(finds("tensor<8x1x4x1xf32>", "tensor<1x8x3x1xf32>", "4, 1")) << "these lie side by side";
  EXPECT_TRUE(finds("tensor<8x1x12x1xf32>", "tensor<1x8x1x1xf32>", "1, 1")) << "there is one";
}

// It would omit the elements between.
TEST(LibraryProduct, LeavesOutResultsWhosePaddingLiesApart) {
  auto finds = [](const std::string &layout) {
    return LibraryRun(product("conv2d", "tensor<?x5x4x3xf32, #nhwc>", "tensor<3x5x1x1xf32>",
                              "tensor<?x3x4x3xf32, #" + layout + ">", oneByOne("1, 1", "0, 0, 0, 0")))
        .library.has_value();
  };
  EXPECT_TRUE(finds("nhwc"));
  EXPECT_FALSE(finds("image"));
}

TEST(LibraryProduct, LeavesOutMoreMatricesThanALibraryCounts) {
  auto finds = [](const std::string &batch) {
    std::string x = "tensor<" + batch + "x2x2xf32>";
    return LibraryRun(einsum("abcd,abde->abce", x, x, x)).library.has_value();
  };
  EXPECT_TRUE(finds("1x2147483647"));
  EXPECT_FALSE(finds("1x2147483648"));
  EXPECT_FALSE(finds("?x2147483647"));
}

TEST(LibraryProduct, LeavesOutWhatDoesNotMerge) {
  auto finds = [](const char *x, const char *y, const std::string &attributes) {
    return LibraryRun(product("conv2d", x, "tensor<8x5x1x1xf32>", y, attributes)).library.has_value();
  };
  // Images whose channels lie apart, strides, padding: no matrices.
  EXPECT_FALSE(finds("tensor<?x5x4x3xf32>", "tensor<?x8x4x3xf32>", oneByOne("1, 1", "0, 0, 0, 0")));
  EXPECT_FALSE(finds("tensor<?x5x4x3xf32, #nhwc>", "tensor<?x8x2x2xf32, #nhwc>", oneByOne("2, 2", "0, 0, 0, 0")));
  EXPECT_FALSE(finds("tensor<?x5x4x3xf32, #nhwc>", "tensor<?x8x6x5xf32, #nhwc>", oneByOne("1, 1", "1, 1, 1, 1")));
}

} // namespace sluice::cuda::test
