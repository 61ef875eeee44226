#include "tools/gpu_check/runner/PackedKernels.h"

#include "tests/conformance/Larger.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice::gpu_check {

using conformance::Bytes;
using conformance::Failed;

static constexpr size_t kGuardBytes = 1024; // before and after every buffer; addresses stay multiples of 256
static constexpr unsigned char kGuardByte = 0x5a;
static constexpr unsigned char kPoison = 0xff;   // NaN, and -1
static constexpr double kUnequalIntegers = 1e-2; // results of float comparisons, a few of which tie

namespace {

/// Memory of the current context, allocated from the driver, for the lifetime of this object.
class DriverMemory {
public:
  DriverMemory() = default;
  DriverMemory(const DriverMemory &) = delete;
  ~DriverMemory() {
    for (cuda::DeviceAddress block : blocks)
      driver.release(block);
  }

  void *allocate(size_t bytes) {
    cuda::DeviceAddress &block = blocks.emplace_back();
    driver.check(driver.allocate(&block, std::max<size_t>(bytes, 1)), std::to_string(bytes) + " bytes");
    return reinterpret_cast<void *>(block);
  }

private:
  const cuda::Driver &driver = cuda::Driver::get();
  std::vector<cuda::DeviceAddress> blocks;
};

} // namespace

template <typename T> static void writeAs(unsigned char *at, double value) {
  T typed = static_cast<T>(value);
  std::memcpy(at, &typed, sizeof typed);
}

static void writeElement(DType dtype, unsigned char *at, double value) {
#define SLUICE_GPU_CHECK_WRITE(name, number, type, ...)                                                                \
  case DType::name:                                                                                                    \
    return writeAs<type>(at, value);
  switch (dtype) { SLUICE_FOR_EACH_DTYPE(SLUICE_GPU_CHECK_WRITE) }
#undef SLUICE_GPU_CHECK_WRITE
}

static double readElement(DType dtype, const Bytes &bytes, int64_t place) {
  return runtime::elementAsDouble(dtype, reinterpret_cast<const std::byte *>(bytes.data()), place);
}

PackedKernels::PackedKernels(conformance::RunHalf &half, const std::string &folder, const std::string &model, bool bare)
    : half(half), pack_(readPack(folder + "/" + model + ".json")), figures(readFile(folder + "/" + model + ".bin")),
      bare(bare), guardBytes(bare ? 0 : kGuardBytes) {
  if (figures.size() < size_t(pack_.imageBytes))
    throw Failed("the pack of " + model + " lacks its code");
  image = cuda::readModuleImage(std::string_view(figures).substr(0, size_t(pack_.imageBytes)));
  half.check(half.table().module_load(half.get(), 0, figures.data(), size_t(pack_.imageBytes), &module), "module_load");
  queue = half.queue(0, SLUICE_QUEUE_COMPUTE);
  driver.check(driver.streamCreate(&stream, cuda::kStreamNonBlocking), "cuStreamCreate");
}

PackedKernels::~PackedKernels() {
  if (stream)
    driver.streamDestroy(stream);
  if (module)
    half.table().module_unload(module);
}

bool PackedKernels::isProduct(size_t number) const {
  auto isIt = [&](const cuda::ImageKernel &kernel) { return kernel.name == pack_.kernels[number].function; };
  auto found = std::find_if(image.kernels.begin(), image.kernels.end(), isIt);
  return found != image.kernels.end() && found->product.has_value();
}

/// Rows beyond those of the call are NaN, padding is zero.
Bytes PackedKernels::drawOperand(size_t kernel, size_t operand, int64_t rows) const {
  const PackedBuffer &buffer = pack_.kernels[kernel].operands[operand];
  size_t size = runtime::sizeOf(buffer.dtype);
  Bytes bytes(size_t(buffer.bytes), 0);
  Places all(buffer, pack_.capacity, pack_.capacity), places(buffer, rows, pack_.capacity);
  for (int64_t i = 0; places.elements() < all.elements() && i < all.elements(); ++i)
    std::fill_n(&bytes[size_t(all[i]) * size], size, kPoison);
  DrawnElements drawn(kernel, operand, buffer);
  for (int64_t i = 0; i < places.elements(); ++i)
    writeElement(buffer.dtype, &bytes[size_t(places[i]) * size], drawn[i]);
  return bytes;
}

PackedKernels::Placed PackedKernels::place(size_t bytes) {
  auto *block = static_cast<unsigned char *>(half.allocate(bytes + 2 * guardBytes));
  return {block, block + guardBytes, bytes, {}};
}

/// Writes guards around a buffer and poison into it.
void PackedKernels::poison(const Placed &placed) {
  auto fill = [&](unsigned char *at, unsigned char value, size_t bytes) {
    if (bytes > 0)
      driver.check(driver.fill(reinterpret_cast<cuda::DeviceAddress>(at), value, bytes, stream), "poison");
  };
  fill(placed.block, kGuardByte, placed.bytes + 2 * guardBytes);
  fill(placed.address, kPoison, placed.bytes);
}

Bytes PackedKernels::read(const unsigned char *from, size_t bytes) {
  Bytes found(bytes);
  half.download(queue, from, found);
  half.finish(queue);
  return found;
}

void PackedKernels::checkGuards(const Placed &placed, const std::string &what) {
  const Bytes untouched(guardBytes, kGuardByte);
  if (read(placed.block, guardBytes) != untouched)
    throw Failed(what + ": bytes before it were written");
  if (read(placed.address + placed.bytes, guardBytes) != untouched)
    throw Failed(what + ": bytes behind it were written");
}

void PackedKernels::launch(const PackedKernel &kernel, int64_t rows, const std::vector<Placed> &placed) {
  std::vector<conformance::Larger<sluice_buffer>> buffers;
  std::vector<void *> addresses;
  for (const Placed &buffer : placed) {
    bool isOperand = buffers.size() < kernel.operands.size();
    buffers.push_back({{buffer.bytes, isOperand ? SLUICE_READ : SLUICE_READ_WRITE}});
    addresses.push_back(buffer.address);
  }
  sluice_call call{sizeof(call), rows, 0, rows};
  sluice_launch launch = conformance::launchOf(kernel.name.c_str(), call);
  launch.addresses = addresses.data();
  launch.buffers = conformance::firstOf(buffers);
  launch.num_buffers = buffers.size();
  launch.module = module;
  launch.function = kernel.function.c_str();
  launch.parameters = kernel.parameters.data();
  launch.parameters_bytes = kernel.parameters.size();
  half.check(half.table().launch(queue, &launch), "launch");
  half.finish(queue);
}

std::vector<PackedKernels::Placed> PackedKernels::placeOperands(size_t number, int64_t rows) {
  std::vector<Placed> placed;
  for (size_t operand = 0; operand < pack_.kernels[number].operands.size(); ++operand) {
    Bytes contents = drawOperand(number, operand, rows);
    placed.push_back(place(contents.size()));
    placed.back().contents = std::move(contents);
  }
  return placed;
}

/// One call without comparison, because parts of the results' memory are uninitialized.
void PackedKernels::runBare(size_t number, const PackedCall &call) {
  const PackedKernel &kernel = pack_.kernels[number];
  std::vector<Placed> placed = placeOperands(number, call.rows);
  for (const Placed &operand : placed)
    half.upload(queue, operand.contents, operand.address);
  DriverMemory memory;
  auto add = [&](int64_t bytes) {
    auto *block = static_cast<unsigned char *>(memory.allocate(size_t(bytes)));
    placed.push_back({block, block, size_t(bytes), {}});
  };
  for (const PackedBuffer &result : kernel.results)
    add(result.bytes);
  if (kernel.workspaceBytes > 0)
    add(kernel.workspaceBytes);
  half.finish(queue); // uploads are freed if a launch fails
  launch(kernel, call.rows, placed);
  for (size_t operand = 0; operand < kernel.operands.size(); ++operand)
    half.release(placed[operand].block);
}

/// The results of one call, whose buffers were poisoned before.
std::vector<Bytes> PackedKernels::runCall(size_t number, const PackedCall &call) {
  const PackedKernel &kernel = pack_.kernels[number];
  std::vector<Placed> placed = placeOperands(number, call.rows);
  for (const PackedBuffer &result : kernel.results)
    placed.push_back(place(size_t(result.bytes)));
  if (kernel.workspaceBytes > 0)
    placed.push_back(place(size_t(kernel.workspaceBytes)));
  for (const Placed &buffer : placed)
    poison(buffer);
  driver.check(driver.streamSynchronize(stream), "poison");
  for (size_t operand = 0; operand < kernel.operands.size(); ++operand)
    half.upload(queue, placed[operand].contents, placed[operand].address);
  half.finish(queue); // uploads are freed if a launch fails
  launch(kernel, call.rows, placed);
  std::vector<Bytes> results;
  for (size_t i = 0; i < placed.size(); ++i) {
    bool isOperand = i < kernel.operands.size(),
         isResult = !isOperand && i < kernel.operands.size() + kernel.results.size();
    std::string what = isOperand  ? "operand " + std::to_string(i)
                       : isResult ? "result " + std::to_string(i - kernel.operands.size())
                                  : "the workspace";
    checkGuards(placed[i], what);
    if (isOperand && read(placed[i].address, placed[i].bytes) != placed[i].contents)
      throw Failed(what + " was written");
    if (isResult)
      results.push_back(read(placed[i].address, placed[i].bytes));
    half.release(placed[i].block);
  }
  return results;
}

void PackedKernels::compare(const PackedBuffer &buffer, const Expected &expected, int64_t rows, const Bytes &found,
                            const std::string &what, KernelResult &result) const {
  Places places(buffer, rows, pack_.capacity);
  int64_t elements = places.elements();
  size_t end = size_t(expected.offset) + size_t(expected.count) * 2 * sizeof(double);
  if (expected.count != sampleSize(elements) || end > figures.size())
    throw Failed(what + ": the pack's figures are not those of this result");
  int64_t unequal = 0;
  for (int64_t i = 0; i < expected.count; ++i) {
    double figure[2]; // expected value, and allowed error
    std::memcpy(figure, &figures[size_t(expected.offset) + size_t(i) * sizeof figure], sizeof figure);
    int64_t element = sampledElement(elements, i);
    if ((size_t(places[element]) + 1) * runtime::sizeOf(buffer.dtype) > found.size())
      throw Failed(what + ": the pack's buffer is too small for it");
    double have = readElement(buffer.dtype, found, places[element]), want = figure[0];
    if (have == want || (std::isnan(have) && std::isnan(want)))
      continue;
    double share = std::fabs(have - want) / figure[1];
    unequal += !runtime::isFloat(buffer.dtype);
    if (runtime::isFloat(buffer.dtype) && !(share <= 1))
      throw Failed(what + ": element " + std::to_string(element) + " is " + std::to_string(have) + " instead of " +
                   std::to_string(want) + ", off by " + std::to_string(share) + " times what is allowed");
    result.largestShare = std::max(result.largestShare, runtime::isFloat(buffer.dtype) ? share : 0);
  }
  if (double(unequal) > kUnequalIntegers * double(expected.count))
    throw Failed(what + ": " + std::to_string(unequal) + " of " + std::to_string(expected.count) +
                 " elements are others");
  result.compared += expected.count;
}

KernelResult PackedKernels::check(size_t number) {
  const PackedKernel &kernel = pack_.kernels[number];
  KernelResult result;
  for (const PackedCall &call : kernel.calls) {
    try {
      if (bare) {
        runBare(number, call);
        continue;
      }
      std::vector<Bytes> found = runCall(number, call);
      for (size_t i = 0; i < found.size(); ++i)
        compare(kernel.results[i], call.results[i], call.rows, found[i], "result " + std::to_string(i), result);
    } catch (const Failed &failed) {
      throw Failed("with " + std::to_string(call.rows) + " rows: " + failed.what());
    }
  }
  return result;
}

} // namespace sluice::gpu_check
