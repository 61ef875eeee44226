// Products as calls of cublasLt: which parts they are done in, and that these give what one sum in double precision gives.
#include "backends/cuda/runtime/Error.h"
#include "backends/cuda/runtime/PreparedProduct.h"
#include "sluice/backend/halves.h"
#include "tests/cuda_emu/Doubles.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace sluice::cuda::test {

namespace {

constexpr int64_t kCapacity = 8, kBatch = 2, kWorkspaceBytes = 1 << 16;

using Algorithm = std::array<uint64_t, 8>;
constexpr size_t kWorkspaceOfAlgorithm = 5; // the double's: that of its first choice is not 0

/// The double, which records scalars and algorithms of products, and rejects what it is told to.
struct Watched {
  static inline std::vector<float> betas;                             // of the calls
  static inline std::set<Algorithm> algorithms;                       // that calls had
  static inline int checks = 0;                                       // so far
  static inline std::set<int> checksToRefuse;                         // by their numbers
  static inline int choiceToRefuse, settingToRefuse, productToRefuse; // the next is 0

  static void forget() {
    betas.clear(), algorithms.clear(), checksToRefuse.clear();
    checks = 0;
    choiceToRefuse = settingToRefuse = productToRefuse = -1;
  }

  static BlasLt library() {
    BlasLt watched = *BlasLt::find();
#define REFUSED_IN_TURN(member)                                                                                        \
  watched.member = [](auto... arguments) {                                                                             \
    return settingToRefuse-- == 0 ? kNotSupported : BlasLt::find()->member(arguments...);                              \
  };
    REFUSED_IN_TURN(createDescription)
    REFUSED_IN_TURN(createLayout)
    REFUSED_IN_TURN(createPreference)
    REFUSED_IN_TURN(setDescription)
    REFUSED_IN_TURN(setLayout)
    REFUSED_IN_TURN(setPreference)
#undef REFUSED_IN_TURN
    watched.choose = [](auto... arguments) {
      return choiceToRefuse-- == 0 ? kNotSupported : BlasLt::find()->choose(arguments...);
    };
    watched.checkAlgorithm = [](auto... arguments) {
      return checksToRefuse.count(checks++) ? kNotSupported : BlasLt::find()->checkAlgorithm(arguments...);
    };
    watched.multiply = [](BlasHandle handle, BlasDescription description, const void *alpha, const void *a,
                          BlasLayout layoutA, const void *b, BlasLayout layoutB, const void *beta, const void *c,
                          BlasLayout layoutC, void *d, BlasLayout layoutD, const BlasAlgorithm *algorithm,
                          void *workspace, size_t workspaceBytes, DriverStream stream) {
      if (productToRefuse-- == 0)
        return kNotSupported;
      betas.push_back(*static_cast<const float *>(beta));
      algorithms.insert(std::to_array(algorithm->data));
      return BlasLt::find()->multiply(handle, description, alpha, a, layoutA, b, layoutB, beta, c, layoutC, d, layoutD,
                                      algorithm, workspace, workspaceBytes, stream);
    };
    return watched;
  }

private:
  static constexpr int kNotSupported = 15;
};

/// A double of a device, with the library begun on it.
struct EmulatedDevice {
  EmulatedDevice() {
    driver.contextRetain(&context, 0);
    driver.contextSetCurrent(context);
    driver.streamCreate(&stream, kStreamNonBlocking);
    blas.create(&handle);
  }
  ~EmulatedDevice() {
    blas.destroy(handle);
    driver.streamDestroy(stream);
    driver.contextRelease(0);
  }

  size_t freeBytes() const {
    size_t free = 0, total = 0;
    driver.memoryInfo(&free, &total);
    return free;
  }

  Driver driver = Driver::get();
  BlasLt blas = Watched::library();
  DriverContext context = nullptr;
  DriverStream stream = nullptr;
  BlasHandle handle = nullptr;
  FastestAlgorithms fastest;
  TimingPlace timing() { return {driver, stream, "a device", fastest}; }
};

/// Numbers in the memory of the host and of a device; NaN until they are set.
class Numbers {
public:
  Numbers(EmulatedDevice &device, const std::string &type, int64_t count)
      : device(device), type(type), bytes(size_t(count) * elementBytes(), '\xff') {
    device.driver.allocate(&address, bytes.size());
  }
  ~Numbers() { device.driver.release(address); }

  std::byte *place() const { return reinterpret_cast<std::byte *>(address); }
  void forget() { std::fill(bytes.begin(), bytes.end(), '\xff'); }
  void send() { device.driver.copyUp(address, bytes.data(), bytes.size(), device.stream); }
  void fetch() {
    device.driver.copyDown(bytes.data(), address, bytes.size(), device.stream);
    device.driver.streamSynchronize(device.stream);
  }
  double get(int64_t i) const {
    if (elementBytes() == 4)
      return reinterpret_cast<const float *>(bytes.data())[i];
    uint16_t half = reinterpret_cast<const uint16_t *>(bytes.data())[i];
    return type == "f16" ? sluice_float_of_f16(half) : sluice_float_of_bf16(half);
  }
  void set(int64_t i, float number) {
    if (elementBytes() == 4)
      reinterpret_cast<float *>(bytes.data())[i] = number;
    else
      reinterpret_cast<uint16_t *>(bytes.data())[i] =
          type == "f16" ? sluice_f16_of_float(number) : sluice_bf16_of_float(number);
  }
  /// How many have been set.
  int64_t known() const {
    int64_t count = 0;
    for (size_t i = 0; i < bytes.size() / elementBytes(); ++i)
      count += !std::isnan(get(int64_t(i)));
    return count;
  }

private:
  size_t elementBytes() const { return type == "f16" || type == "bf16" ? 2 : 4; }

  EmulatedDevice &device;
  std::string type;
  std::vector<char> bytes;
  DeviceAddress address = 0;
};

int64_t padded(int64_t extent) { return (extent + 7) / 8 * 8; }

/// D[p, rows] of a batch, with padded matrices; buffers are the operands, the bias, D and what its activation reads.
ImageProduct productOf(const std::string &type, int64_t p, int64_t k, bool firstTransposed, bool secondTransposed,
                       bool hasBias = false, const std::string &activation = "none") {
  auto matrix = [](int64_t buffer, int64_t height, int64_t width, bool isTransposed) {
    int64_t neighbours = padded(isTransposed ? width : height), others = isTransposed ? height : width;
    return ImageProduct::Matrix{buffer, neighbours, neighbours * others, isTransposed};
  };
  ImageProduct product;
  product.type = type;
  product.p = {p, 0}, product.q = {1, 1}, product.k = {k, 0}, product.batch = {kBatch, 0};
  product.first = matrix(0, p, k, firstTransposed);
  product.second = matrix(1, k, kCapacity, secondTransposed);
  product.result = matrix(3, p, kCapacity, false);
  product.bias = hasBias ? 2 : -1;
  product.activation = activation;
  product.input = activation == "gelu_gradient" ? 4 : -1;
  product.capacity = kCapacity;
  product.workspaceBytes = kWorkspaceBytes;
  return product;
}

int64_t indexIn(const ImageProduct::Matrix &matrix, int64_t batch, int64_t row, int64_t column) {
  if (matrix.isTransposed)
    std::swap(row, column);
  return batch * matrix.batchStride + column * matrix.leading + row;
}

/// The error; "" if none.
template <typename Body> std::string errorOf(Body body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

/// A product of one matrix with an operand's sums.
ImageProduct withSums(ImageProduct product, bool ofSecond) {
  product.batch.size = 1;
  product.q = {kCapacity, 0}; // a number of its own for each row of a call would be no bias's gradient
  product.sums = 2, product.sumsSecond = ofSecond;
  return product;
}

/// A product on a device, whose operands are multiples of 1/4 that every type has.
class ProductRun {
public:
  ProductRun(EmulatedDevice &device, const ImageProduct &product)
      : prepared(PreparedProduct::prepare(device.blas, device.handle, product, "cuda:0: kernel k", device.timing())),
        device(device), product(product), first(device, product.type, kBatch * product.first.batchStride),
        second(device, product.type, kBatch * product.second.batchStride),
        vector(device, product.type, product.sideOfSums().with(kCapacity)),
        result(device, product.type, kBatch * product.result.batchStride),
        input(device, product.type, kBatch * product.result.batchStride),
        workspace(device, "f32", kWorkspaceBytes / int64_t(sizeof(float))) {
    fill(first, product.first, product.p.size, product.k.size);
    fill(second, product.second, product.k.size, kCapacity);
    for (int64_t p = 0; product.bias >= 0 && p < product.p.size; ++p)
      vector.set(p, next());
    fill(input, product.result, product.p.size, kCapacity);
    for (Numbers *numbers : {&first, &second, &vector, &input})
      numbers->send();
  }

  /// Compares what a call gives with sums in double precision. Gives beta of each call of the library.
  std::vector<float> call(int64_t rows) {
    EXPECT_TRUE(prepared->does(rows));
    result.forget();
    result.send();
    std::vector<void *> addresses = buffers();
    Watched::betas.clear();
    prepared->launch(rows, addresses.data(), workspace.place(), device.stream);
    result.fetch();
    int64_t columns = product.q.with(rows);
    EXPECT_EQ(result.known(), product.batch.size * product.p.size * columns);
    EXPECT_TRUE(largestError(columns) <= 1) << "of what rounding may do";
    if (product.sums >= 0)
      expectTheSums();
    return Watched::betas;
  }

  /// What a call says whose buffer of this number, or whose workspace behind them, lies so many bytes further on.
  std::string errorOfMoved(size_t buffer, size_t bytes) {
    std::vector<void *> addresses = buffers();
    addresses.push_back(workspace.place());
    addresses[buffer] = static_cast<std::byte *>(addresses[buffer]) + bytes;
    return errorOfCall(addresses, addresses.back());
  }

  std::string errorOfCall(const std::vector<void *> &addresses, void *space) {
    EXPECT_TRUE(prepared->does(1));
    return errorOf([&] { prepared->launch(1, addresses.data(), space, device.stream); });
  }

  std::vector<void *> buffers() const {
    return {first.place(), second.place(), vector.place(), result.place(), input.place()};
  }
  void *workspacePlace() const { return workspace.place(); }
  void expectWithoutActivation() { product.activation = "none"; }
  void expectWithoutSums() { product.sums = -1; }

  std::unique_ptr<PreparedProduct> prepared;

private:
  float next() { return float(int64_t(random() % 17) - 8) / 4; }

  void fill(Numbers &numbers, const ImageProduct::Matrix &matrix, int64_t height, int64_t width) {
    for (int64_t batch = 0; batch < kBatch; ++batch)
      for (int64_t row = 0; row < height; ++row)
        for (int64_t column = 0; column < width; ++column)
          numbers.set(indexIn(matrix, batch, row, column), next());
  }

  /// Of x S(2u), where S is the logistic function.
  static double derivativeOfGelu(double x) {
    double logistic = 1 / (1 + std::exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)));
    return logistic + x * logistic * (1 - logistic) * 2 * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
  }

  double sum(int64_t batch, int64_t p, int64_t row) const {
    double sum = product.bias >= 0 ? vector.get(p) : 0;
    for (int64_t k = 0; k < product.k.size; ++k)
      sum += first.get(indexIn(product.first, batch, p, k)) * second.get(indexIn(product.second, batch, k, row));
    if (product.activation == "gelu")
      return 0.5 * sum * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
    if (product.activation == "gelu_gradient")
      return sum * derivativeOfGelu(input.get(indexIn(product.result, batch, p, row)));
    return product.activation == "relu" ? std::max(sum, 0.0) : sum;
  }

  /// Of multiples of 1/4, which are exact but for one rounding.
  void expectTheSums() {
    vector.fetch();
    int64_t count = product.sideOfSums().size;
    EXPECT_EQ(vector.known(), count);
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < product.k.size; ++k)
        sum += product.sumsSecond ? second.get(indexIn(product.second, 0, k, i))
                                  : first.get(indexIn(product.first, 0, i, k));
      EXPECT_TRUE(std::abs(vector.get(i) - sum) <= half() * std::abs(sum)) << vector.get(i) << " is not " << sum;
    }
  }

  /// A unit in the last place of 1, halved.
  double half() const { return product.type == "f16" ? 0x1p-11 : product.type == "bf16" ? 0x1p-8 : 0x1p-24; }

  /// In terms of half a unit in the last place of the sum, and one of the few terms' that may be rounded by themselves.
  double largestError(int64_t rows) const {
    double largest = 0;
    constexpr double kLargestOfFewTerms = 7 * 2 * 2;
    for (int64_t batch = 0; batch < product.batch.size; ++batch)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t p = 0; p < product.p.size; ++p) {
          double wanted = sum(batch, p, row), found = result.get(indexIn(product.result, batch, p, row));
          double error = std::abs(found - wanted) / (half() * (std::abs(wanted) + kLargestOfFewTerms));
          largest = std::isnan(error) ? INFINITY : std::max(largest, error);
        }
    return largest;
  }

  EmulatedDevice &device;
  ImageProduct product;
  std::mt19937 random{5};
  Numbers first, second, vector, result, input, workspace; // a vector is the bias, or an operand's sums
};

using Betas = std::vector<float>;
using Parts = std::vector<std::tuple<int64_t, int64_t, bool>>; // p, k, and whether it adds to the result

Parts partsFor(const ImageProduct &product) {
  Parts parts;
  for (const ProductPart &part : partsOf(product))
    parts.emplace_back(part.product.p.size, part.product.k.size, part.addsToResult);
  return parts;
}

class PreparedProducts : public testing::Test {
protected:
  static void SetUpTestSuite() { sluice::test::useCudaDoubles(1); }
  void SetUp() override { Watched::forget(); }

  /// Runs a product of each type for several numbers of rows, and, as what follows it is the same however operands lie,
  /// one of these with that.
  static void expectTheSums(int64_t p, int64_t k, bool firstTransposed, bool secondTransposed, const Betas &betas) {
    for (const char *type : {"f16", "bf16", "tf32"})
      for (bool hasBias : {false, true})
        for (const std::string activation : {"none", "relu", "gelu", "gelu_gradient"}) {
          if ((hasBias || activation != "none") && (!firstTransposed || secondTransposed))
            continue;
          if (hasBias && activation == "gelu_gradient") // there is no such epilogue
            continue;
          SCOPED_TRACE(testing::Message() << type << " " << p << " " << k << " " << firstTransposed << secondTransposed
                                          << (hasBias ? " bias " : " ") << activation);
          EmulatedDevice device;
          ProductRun run(device, productOf(type, p, k, firstTransposed, secondTransposed, hasBias, activation));
          ASSERT_TRUE(run.prepared);
          for (int64_t rows : {kCapacity, int64_t(3), int64_t(1)})
            EXPECT_EQ(run.call(rows), betas) << rows << " rows";
          EXPECT_FALSE(run.prepared->does(0));
        }
  }
};

} // namespace

TEST_F(PreparedProducts, HavePartsWhereTheirNeighboursAreNoMultiples) {
  EXPECT_EQ(partsFor(productOf("bf16", 1001, 64, true, false)), (Parts{{1, 64, false}, {1000, 64, false}}));
  EXPECT_EQ(partsFor(productOf("bf16", 1007, 64, true, false)), (Parts{{7, 64, false}, {1000, 64, false}}));
  EXPECT_EQ(partsFor(productOf("f16", 64, 1001, false, false)), (Parts{{64, 1, false}, {64, 1000, true}}));
  EXPECT_EQ(partsFor(productOf("f16", 64, 1001, true, true)), (Parts{{64, 1, false}, {64, 1000, true}}));
  EXPECT_EQ(partsFor(productOf("tf32", 1001, 1003, true, false)),
            (Parts{{1, 1003, false}, {1000, 3, false}, {1000, 1000, true}}));
}

TEST_F(PreparedProducts, AreWholeWherePartsWouldNotPay) {
  auto isWhole = [](const ImageProduct &product) {
    return partsFor(product) == Parts{{product.p.size, product.k.size, false}};
  };
  ImageProduct both = productOf("bf16", 1001, 1001, true, false);
  EXPECT_FALSE(isWhole(both));
  for (const char *type : {"f32", "f64"})
    EXPECT_TRUE(isWhole(productOf(type, 1001, 1001, true, false))) << type;
  EXPECT_TRUE(isWhole(productOf("bf16", 1000, 1000, true, false))) << "multiples already";
  EXPECT_TRUE(isWhole(productOf("tf32", 1004, 1004, true, false))) << "multiples of 16 bytes";
  EXPECT_TRUE(isWhole(productOf("bf16", 255, 255, true, false))) << "small";
  EXPECT_TRUE(isWhole(productOf("bf16", 64, 1001, false, true))) << "terms of a sum are no neighbours";
  ImageProduct perRow = productOf("bf16", 64, 1001, true, false);
  perRow.k.perRow = 1;
  EXPECT_TRUE(isWhole(perRow)) << "each call has another rest";
  for (ImageProduct::Matrix ImageProduct::*matrix :
       {&ImageProduct::first, &ImageProduct::second, &ImageProduct::result})
    for (int64_t ImageProduct::Matrix::*distance :
         {&ImageProduct::Matrix::leading, &ImageProduct::Matrix::batchStride}) {
      ImageProduct unaligned = both;
      unaligned.*matrix.*distance += 1;
      EXPECT_TRUE(isWhole(unaligned)) << "columns of no multiples";
    }
}

// The double rejects addresses that are less aligned than specified when an algorithm was chosen.
TEST_F(PreparedProducts, AddUpInParts) {
  for (bool firstTransposed : {false, true})
    for (bool secondTransposed : {false, true}) {
      bool sumsNeighbours = firstTransposed || !secondTransposed;
      expectTheSums(1001, 24, firstTransposed, secondTransposed, {0, 0});
      expectTheSums(24, 1001, firstTransposed, secondTransposed, sumsNeighbours ? Betas{0, 1} : Betas{0});
      expectTheSums(263, 267, firstTransposed, secondTransposed, sumsNeighbours ? Betas{0, 0, 1} : Betas{0, 0});
    }
}

TEST_F(PreparedProducts, AreWholeWhereAPartHasNoAlgorithm) {
  EmulatedDevice device;
  for (int part : {0, 1}) {
    Watched::choiceToRefuse = part;
    ProductRun run(device, productOf("bf16", 24, 1001, true, false, true, "relu"));
    ASSERT_TRUE(run.prepared);
    EXPECT_EQ(run.call(3), Betas{0});
  }
}

TEST_F(PreparedProducts, LeaveActivationsThatReadAMatrixToOthersIfTheyHaveTo) {
  EmulatedDevice device;
  const ImageProduct wanted = productOf("tf32", 263, 267, true, false, false, "gelu_gradient");
  auto makerOf = [](ProductRun &run, int64_t rows) { return run.prepared->makerOf(rows, run.buffers().data()); };
  ProductRun whole(device, wanted);
  EXPECT_EQ(makerOf(whole, 3), ProductMaker::Library);
  EXPECT_EQ(makerOf(whole, 0), ProductMaker::Functions);
  setenv("CUDA_EMU_BLAS", "no-input", 1);
  ProductRun plain(device, wanted);
  setenv("CUDA_EMU_BLAS", "none", 1);
  ProductRun none(device, wanted);
  unsetenv("CUDA_EMU_BLAS");
  EXPECT_FALSE(none.prepared);
  ASSERT_TRUE(plain.prepared);
  EXPECT_EQ(makerOf(plain, 3), ProductMaker::LibraryForProductAlone);
  EXPECT_EQ(makerOf(plain, 0), ProductMaker::Functions);
  plain.expectWithoutActivation();
  EXPECT_EQ(plain.call(3), (Betas{0, 0, 1}));
}

TEST_F(PreparedProducts, LeaveSumsOfAnOperandBesideThem) {
  for (const char *type : {"f32", "tf32", "f16", "bf16"})
    for (bool ofSecond : {false, true})
      for (bool firstTransposed : {false, true})
        for (bool secondTransposed : {false, true}) {
          SCOPED_TRACE(testing::Message() << type << ofSecond << firstTransposed << secondTransposed);
          EmulatedDevice device;
          ProductRun run(device, withSums(productOf(type, 24, 40, firstTransposed, secondTransposed), ofSecond));
          ASSERT_TRUE(run.prepared);
          EXPECT_EQ(run.prepared->makerOf(3, run.buffers().data()), ProductMaker::Library);
          EXPECT_EQ(run.call(3), Betas{0});
        }
}

// What is cut off along p has sums of its own of the first operand, and the same ones of the second. Sums are never cut.
TEST_F(PreparedProducts, LeaveSumsOnceWhereTheyAreInParts) {
  for (bool ofSecond : {false, true}) {
    const ImageProduct product = withSums(productOf("bf16", 263, 267, true, false), ofSecond);
    std::vector<ProductPart> parts = partsOf(product);
    ASSERT_EQ(partsFor(product), (Parts{{7, 267, false}, {256, 267, false}}));
    EXPECT_EQ(parts[0].product.sums, ofSecond ? -1 : 2);
    EXPECT_EQ(parts[1].product.sums, 2);
    EmulatedDevice device;
    ProductRun run(device, product);
    EXPECT_EQ(run.call(3), (Betas{0, 0}));
  }
}

TEST_F(PreparedProducts, LeaveSumsToOthersIfTheyHaveTo) {
  EmulatedDevice device;
  const ImageProduct wanted = withSums(productOf("f32", 24, 24, true, false), true);
  setenv("CUDA_EMU_BLAS", "no-sums", 1);
  ProductRun plain(device, wanted);
  unsetenv("CUDA_EMU_BLAS");
  ASSERT_TRUE(plain.prepared);
  EXPECT_EQ(plain.prepared->makerOf(3, plain.buffers().data()), ProductMaker::LibraryForProductAlone);
  plain.expectWithoutSums();
  EXPECT_EQ(plain.call(3), Betas{0});
}

TEST_F(PreparedProducts, LeaveActivationsToOthersWhoseInputTheLibraryDoesNotTake) {
  EmulatedDevice device;
  for (int64_t ImageProduct::Matrix::*distance : {&ImageProduct::Matrix::leading, &ImageProduct::Matrix::batchStride}) {
    ImageProduct product = productOf("f32", 24, 24, true, false, false, "gelu_gradient");
    product.result.batchStride += 2 * kCapacity * 4; // so that there is room
    product.result.*distance += 4;
    ProductRun run(device, product);
    ASSERT_TRUE(run.prepared);
    EXPECT_EQ(run.prepared->makerOf(3, run.buffers().data()), ProductMaker::LibraryForProductAlone);
  }
}

TEST_F(PreparedProducts, AreLeftToOthersInThePlaceOfWhatTheirActivationReads) {
  EmulatedDevice device;
  ProductRun run(device, productOf("f32", 24, 24, true, false, false, "gelu_gradient"));
  std::vector<void *> addresses = run.buffers();
  addresses[4] = addresses[3];
  EXPECT_EQ(run.prepared->makerOf(3, addresses.data()), ProductMaker::Functions);
  EXPECT_EQ(run.errorOfCall(addresses, run.workspacePlace()), "cuda:0: kernel k: CUBLAS_STATUS_INVALID_VALUE (7)");
  EXPECT_EQ(run.errorOfCall(run.buffers(), run.workspacePlace()), "");
  device.driver.streamSynchronize(device.stream);
}

// The double's second choice differs from its first, which it refuses for three rows.
TEST_F(PreparedProducts, HaveOneAlgorithmForAllRows) {
  EmulatedDevice device;
  std::vector<std::set<Algorithm>> algorithms;
  for (const std::set<int> &refused : {std::set<int>{}, {2}}) {
    Watched::forget();
    Watched::checksToRefuse = refused;
    ProductRun run(device, productOf("f32", 24, 24, true, false));
    for (int64_t rows = 1; rows <= kCapacity; ++rows)
      run.call(rows);
    algorithms.push_back(Watched::algorithms);
    EXPECT_EQ(Watched::algorithms.size(), 1U);
  }
  EXPECT_NE(algorithms[0], algorithms[1]);
}

TEST_F(PreparedProducts, AreLeftToOthersForAllRowsWhereSomeAreNotDone) {
  EmulatedDevice device;
  auto isPrepared = [&](const std::set<int> &refused, int64_t p) {
    Watched::forget();
    Watched::checksToRefuse = refused;
    return ProductRun(device, productOf("bf16", p, 24, true, false)).prepared != nullptr;
  };
  EXPECT_TRUE(isPrepared({2}, 24));
  EXPECT_FALSE(isPrepared({2, 5}, 24)) << "three rows, of both choices";
  EXPECT_TRUE(isPrepared({2, 5}, 1001)) << "a part, but not the whole";
}

TEST_F(PreparedProducts, AreCheckedForRowsOnce) {
  EmulatedDevice device;
  ImageProduct product = productOf("bf16", 1001, 24, true, false);
  product.capacity = 1000;
  ProductRun run(device, product);
  int atLoad = Watched::checks;
  EXPECT_LT(atLoad, 2 * 100) << "of two parts";
  for (int64_t rows : {1, 3, 64, 65, 127, 511, 512, 513, 999, 1000})
    EXPECT_TRUE(run.prepared->does(rows));
  EXPECT_EQ(Watched::checks, atLoad);
  for (int part : {0, 1}) {
    int before = Watched::checks;
    Watched::checksToRefuse = {before + part};
    for (int repeat = 0; repeat < 3; ++repeat) {
      EXPECT_FALSE(run.prepared->does(700 + part)) << part;
      EXPECT_TRUE(run.prepared->does(800 + part));
    }
    EXPECT_EQ(Watched::checks, before + 1 + part + 2) << "parts behind one that refuses are not asked";
  }
}

TEST_F(PreparedProducts, WithoutRowsAreCheckedOnce) {
  EmulatedDevice device;
  ImageProduct product = productOf("bf16", 24, 24, true, false);
  product.q = {kCapacity, 0};
  product.capacity = 1000;
  EXPECT_TRUE(ProductRun(device, product).prepared);
  EXPECT_EQ(Watched::checks, 1);
  Watched::forget();
  product = productOf("bf16", 24, 24, false, true);
  product.q = {kCapacity, 0}, product.k = {1, 1};
  EXPECT_TRUE(ProductRun(device, product).prepared);
  EXPECT_EQ(Watched::checks, 1) << "of sums over the rows";
}

TEST_F(PreparedProducts, SayWhatIsNotAligned) {
  EmulatedDevice device;
  ProductRun run(device, productOf("f32", 24, 24, true, false, true));
  for (size_t buffer : {0, 1, 2, 3})
    EXPECT_EQ(run.errorOfMoved(buffer, 36),
              "cuda:0: kernel k: buffer " + std::to_string(buffer) +
                  " lies 36 bytes behind a multiple of 256, where cublasLt was promised one");
  ProductRun withInput(device, productOf("f32", 24, 24, true, false, false, "gelu_gradient"));
  EXPECT_EQ(withInput.errorOfMoved(4, 8),
            "cuda:0: kernel k: buffer 4 lies 8 bytes behind a multiple of 256, where cublasLt was promised one");
  ProductRun ofSums(device, withSums(productOf("f32", 24, 24, true, false), true));
  EXPECT_EQ(ofSums.errorOfMoved(2, 8),
            "cuda:0: kernel k: buffer 2 lies 8 bytes behind a multiple of 256, where cublasLt was promised one");
  constexpr size_t kWorkspace = 5;
  EXPECT_EQ(run.errorOfMoved(kWorkspace, 8),
            "cuda:0: kernel k: the workspace lies 8 bytes behind a multiple of 16, where cublasLt was promised one");
  EXPECT_EQ(run.errorOfMoved(kWorkspace, 16), "cuda:0: kernel k: CUBLAS_STATUS_INVALID_VALUE (7)") << "it is too small";
  EXPECT_EQ(run.errorOfMoved(kWorkspace, 0), "");
  device.driver.streamSynchronize(device.stream);
}

TEST_F(PreparedProducts, SayWhatTheLibraryRefuses) {
  EmulatedDevice device;
  ProductRun run(device, productOf("f32", 24, 24, true, false));
  Watched::productToRefuse = 0;
  EXPECT_EQ(run.errorOfMoved(0, 0), "cuda:0: kernel k: CUBLAS_STATUS_NOT_SUPPORTED (15)");
  device.blas.statusName = nullptr;
  Watched::productToRefuse = 0;
  EXPECT_EQ(run.errorOfMoved(0, 0), "cuda:0: kernel k: cublasLt's status (15)");
}

/// The algorithm of a timed product, the first of the double's two choices or its last of which takes longer.
static Algorithm timed(EmulatedDevice &device, const char *slow,
                       ImageProduct product = productOf("f32", 8, 8, true, false)) {
  setenv("CUDA_EMU_BLAS", slow, 1);
  product.isTimed = 1;
  ProductRun run(device, product);
  Watched::algorithms.clear();
  run.call(3);
  unsetenv("CUDA_EMU_BLAS");
  EXPECT_EQ(Watched::algorithms.size(), 1U);
  return *Watched::algorithms.begin();
}

TEST_F(PreparedProducts, TakeTheFastestAlgorithmIfTheyAreTimed) {
  EmulatedDevice one, other;
  Algorithm last = timed(one, "slow-first"), first = timed(other, "slow-last");
  EXPECT_NE(first, last);
  ProductRun untimed(other, productOf("f32", 8, 8, true, false));
  Watched::algorithms.clear();
  untimed.call(3);
  EXPECT_EQ(Watched::algorithms, std::set<Algorithm>{first});
}

TEST_F(PreparedProducts, TakeWhatWasChosenFirst) {
  EmulatedDevice device;
  Algorithm chosen = timed(device, "slow-first");
  EXPECT_EQ(timed(device, "slow-last"), chosen);
  for (const ImageProduct &other :
       {productOf("f32", 8, 8, false, false), productOf("f32", 8, 8, true, false, true),
        productOf("f32", 8, 8, true, false, false, "relu"), productOf("f32", 8, 8, true, false, false, "gelu_gradient"),
        withSums(productOf("f32", 8, 8, true, false), false), withSums(productOf("f32", 8, 8, true, false), true),
        productOf("tf32", 8, 8, true, false), productOf("f32", 16, 8, true, false)})
    EXPECT_NE(timed(device, "slow-last", other)[kWorkspaceOfAlgorithm], chosen[kWorkspaceOfAlgorithm]);
}

TEST_F(PreparedProducts, AreTimedInParts) {
  for (bool hasInput : {false, true}) {
    EmulatedDevice device;
    Watched::forget();
    ImageProduct product = productOf("bf16", 263, 267, true, false, !hasInput, hasInput ? "gelu_gradient" : "gelu");
    product.isTimed = 1;
    size_t before = device.freeBytes();
    PreparedProduct::prepare(device.blas, device.handle, product, "cuda:0: kernel k", device.timing());
    EXPECT_EQ(device.freeBytes(), before);
    ProductRun run(device, product);
    EXPECT_EQ(Watched::betas.size(), 3U * 2 * 4) << "three parts, two algorithms, four times each";
    EXPECT_EQ(run.call(5), (Betas{0, 0, 1}));
  }
}

TEST_F(PreparedProducts, AreNotTimedWhereTheDeviceCannot) {
  for (auto refuse :
       {+[](Driver &driver) { driver.allocate = [](DeviceAddress *, size_t) { return kNotReady; }; },
        +[](Driver &driver) { driver.eventCreate = [](DriverEvent *, unsigned) { return kNotReady; }; }}) {
    EmulatedDevice device;
    Driver whole = device.driver;
    refuse(device.driver);
    ImageProduct product = productOf("f32", 8, 8, true, false);
    product.isTimed = 1;
    std::unique_ptr<PreparedProduct> prepared =
        PreparedProduct::prepare(device.blas, device.handle, product, "cuda:0: kernel k", device.timing());
    device.driver = whole;
    EXPECT_TRUE(prepared);
    EXPECT_TRUE(Watched::betas.empty());
  }
}

// Whichever of its attributes it is that the library does not know.
TEST_F(PreparedProducts, SayThatTheyCannotBeDescribed) {
  EmulatedDevice device;
  int refused = 0;
  for (bool isRefused = true; isRefused; ++refused) {
    Watched::settingToRefuse = refused;
    std::string error = errorOf([&] {
      ProductRun(device, productOf("f32", 24, 24, true, false, /*hasBias=*/true));
      ProductRun(device, productOf("f32", 24, 24, true, false, false, "gelu_gradient"));
      ProductRun(device, withSums(productOf("f32", 24, 24, true, false), true));
    });
    isRefused = Watched::settingToRefuse < 0;
    EXPECT_EQ(error, isRefused ? "cuda:0: kernel k: CUBLAS_STATUS_NOT_SUPPORTED (15)" : "");
  }
  EXPECT_GT(refused, 60);
}

} // namespace sluice::cuda::test
