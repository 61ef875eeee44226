#include "backends/cuda/runtime/Context.h"

#include "backends/cuda/runtime/Error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace sluice::cuda {

static constexpr int64_t kThreadsOfBlock = 128; // a block has several tasks if a task has fewer threads

std::string text(const Device &device) { return "cuda:" + std::to_string(device.ordinal); }

/// The alignment of the driver's allocations, which the compile half requires (compiler/Plugin.cpp).
static constexpr size_t kAlignment = 256;

static DeviceAddress addressOf(const void *pointer) { return reinterpret_cast<DeviceAddress>(pointer); }

//===- devices ----------------------------------------------------------------------------------------------------===//

Context::Context(Products products, std::shared_ptr<Clock> clock, std::shared_ptr<FastestAlgorithms> fastest)
    : driver_(Driver::get()), products_(products), clock_(std::move(clock)), fastest_(std::move(fastest)) {
  int count = 0;
  driver_.check(driver_.deviceCount(&count), "the number of devices");
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    Device &device = devices_.emplace_back();
    device.ordinal = ordinal;
    driver_.check(driver_.deviceGet(&device.number, ordinal), text(device));
    char name[256] = "";
    driver_.check(driver_.deviceName(name, sizeof name, device.number), text(device));
    device.name = name;
    device.identity = identityOf(device);
  }
}

/// "GPU-" and the digits of its UUID, as nvidia-smi prints it.
std::string Context::identityOf(const Device &device) const {
  unsigned char bytes[16] = {};
  driver_.check(driver_.deviceIdentity(&bytes, device.number), text(device));
  std::string identity = "GPU";
  for (size_t i = 0; i < sizeof bytes; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    bool beginsGroup = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    identity += std::string(beginsGroup ? "-" : "") + digits;
  }
  return identity;
}

Context::~Context() {
  for (Device &device : devices_) {
    if (!device.context)
      continue;
    driver_.contextSetCurrent(device.context);
    if (device.blas)
      BlasLt::find()->destroy(device.blas);
    driver_.streamDestroy(device.stream);
    driver_.contextRelease(device.number);
  }
}

Device &Context::device(int32_t ordinal) {
  if (ordinal < 0 || ordinal >= deviceCount())
    throw Error(SLUICE_UNSUPPORTED,
                "there is no device cuda:" + std::to_string(ordinal) + "; there are " + std::to_string(deviceCount()));
  Device &device = devices_[size_t(ordinal)];
  if (!device.context) { // an unused device costs nothing
    driver_.check(driver_.contextRetain(&device.context, device.number), text(device));
    makeCurrent(device);
    driver_.check(driver_.streamCreate(&device.stream, kStreamNonBlocking), text(device));
  }
  return device;
}

void Context::makeCurrent(const Device &device) const {
  driver_.check(driver_.contextSetCurrent(device.context), text(device));
}

int Context::attribute(const Device &device, DeviceAttribute attribute) const {
  int value = 0;
  driver_.check(driver_.deviceAttribute(&value, attribute, device.number), text(device));
  return value;
}

std::pair<size_t, size_t> Context::freeAndTotal(const Device &device) const {
  size_t free = 0, total = 0;
  makeCurrent(device);
  driver_.check(driver_.memoryInfo(&free, &total), text(device));
  return {free, total};
}

/// Multiply-adds in f32 that a multiprocessor begins each cycle, by compute capability (CUDA C++ Programming Guide,
/// "Throughput of Native Arithmetic Instructions").
static double lanesOf(int major, int minor) { return major == 8 && minor == 0 ? 64 : 128; }

void Context::describe(Device &device, sluice_device_info &info) const {
  auto [free, total] = freeAndTotal(device);
  info.name = device.name.c_str();
  info.memory_bytes = int64_t(total);
  info.free_bytes = int64_t(free);
  info.cores = attribute(device, DeviceAttribute::Multiprocessors);
  info.clock_hz = 1e3 * attribute(device, DeviceAttribute::ClockKilohertz);
  double lanes = lanesOf(attribute(device, DeviceAttribute::Major), attribute(device, DeviceAttribute::Minor));
  info.peak_flops = 2 * lanes * info.cores * info.clock_hz;
  double transfersPerSecond = 2e3 * attribute(device, DeviceAttribute::MemoryClockKilohertz);
  info.memory_bandwidth = transfersPerSecond * attribute(device, DeviceAttribute::MemoryBusBits) / 8;
  info.host_accessible = 0;
  if (SLUICE_HAS_MEMBER(sluice_device_info, &info, alignment))
    info.alignment = kAlignment;
  if (SLUICE_HAS_MEMBER(sluice_device_info, &info, compute_minor)) {
    info.compute_major = attribute(device, DeviceAttribute::Major);
    info.compute_minor = attribute(device, DeviceAttribute::Minor);
  }
  if (SLUICE_HAS_MEMBER(sluice_device_info, &info, identity))
    info.identity = device.identity.c_str();
}

//===- memory -----------------------------------------------------------------------------------------------------===//

void *Context::allocate(Device &device, size_t bytes) {
  makeCurrent(device);
  DeviceAddress address = 0;
  size_t taken = std::max<size_t>(bytes, 1);
  if (int status = driver_.allocate(&address, taken); status != 0) {
    size_t free = freeAndTotal(device).first;
    driver_.check(status, text(device) + " has no memory: " + std::to_string(bytes) + " bytes were asked for, " +
                              std::to_string(free) + " are free");
  }
  device.allocated[address] = taken;
  driver_.check(driver_.fill(address, 0, taken, device.stream), text(device));
  driver_.check(driver_.streamSynchronize(device.stream), text(device));
  return reinterpret_cast<void *>(address);
}

void Context::release(Device &device, void *address) {
  if (device.allocated.erase(addressOf(address)) == 0)
    throw Error(SLUICE_USAGE, "what is released is no allocation of " + text(device));
  makeCurrent(device);
  driver_.check(driver_.release(addressOf(address)), text(device));
}

void Context::clear(Device &device, void *address) const {
  auto found = device.allocated.find(addressOf(address));
  if (found == device.allocated.end())
    throw Error(SLUICE_USAGE, "cannot clear memory that is no allocation of " + text(device));
  makeCurrent(device);
  driver_.check(driver_.fill(found->first, 0, found->second, device.stream), text(device));
  driver_.check(driver_.streamSynchronize(device.stream), text(device));
}

void *Context::allocateOnHost(size_t bytes) {
  device(0); // the driver requires any context
  makeCurrent(devices_.front());
  void *address = nullptr;
  driver_.check(driver_.hostAllocate(&address, std::max<size_t>(bytes, 1), kHostMemoryOfAllContexts),
                "cuda: " + std::to_string(bytes) + " bytes of host memory for copies");
  hostMemory_.insert(address);
  std::memset(address, 0, bytes);
  return address;
}

void Context::releaseOnHost(void *address) {
  if (hostMemory_.erase(address) == 0)
    throw Error(SLUICE_USAGE, "cuda: what is released is no host memory that it gave");
  makeCurrent(devices_.front());
  driver_.check(driver_.hostRelease(address), "cuda: host memory");
}

bool Context::reaches(const Device &from, const Device &to) const {
  int can = 1;
  if (&from != &to)
    driver_.check(driver_.canAccessPeer(&can, to.number, from.number), text(to));
  return can != 0;
}

/// Enables direct copies, if possible; another library of the process may have enabled them already.
void Context::connect(const Device &from, const Device &to) {
  if (!connected_.insert({from.ordinal, to.ordinal}).second || !reaches(from, to))
    return;
  makeCurrent(to);
  driver_.enablePeerAccess(from.context, 0);
}

//===- sequences: graphs of the driver ----------------------------------------------------------------------------===//

void Context::beginCapture(Queue &queue) {
  checkCapturesNot(queue, "begin another capture");
  makeCurrent(*queue.device);
  driver_.check(driver_.captureBegin(queue.stream, kCaptureOfThread), text(*queue.device));
  queue.captures = true;
  queue.captured.clear();
}

Sequence Context::endCapture(Queue &queue) {
  if (!queue.captures)
    throw Error(SLUICE_USAGE, text(*queue.device) + ": the queue does not capture");
  queue.captures = false;
  makeCurrent(*queue.device);
  DriverGraph graph = nullptr;
  Sequence sequence{queue.device, nullptr, std::move(queue.captured)};
  driver_.check(driver_.captureEnd(queue.stream, &graph), text(*queue.device) + ": the end of a capture");
  int status = driver_.graphInstantiate(&sequence.executable, graph, 0);
  driver_.graphDestroy(graph); // the executable has its own copy
  driver_.check(status, text(*queue.device) + ": a graph that was captured");
  return sequence;
}

void Context::abandonCapture(Queue &queue) {
  if (!std::exchange(queue.captures, false))
    return;
  DriverGraph graph = nullptr; // null if the driver detected the error
  driver_.contextSetCurrent(queue.device->context);
  if (driver_.captureEnd(queue.stream, &graph) == 0 && graph)
    driver_.graphDestroy(graph);
}

static void add(CopyCounts &counts, const CopyCounts &more) {
  for (const auto &[ends, count] : more) {
    auto &[copies, bytes] = counts[ends];
    copies += count.first;
    bytes += count.second;
  }
}

void Context::replay(const Queue &queue, const Sequence &sequence) {
  checkCapturesNot(queue, "replay");
  if (sequence.device != queue.device)
    throw Error(SLUICE_USAGE, "cuda: what was captured for " + text(*sequence.device) + " is replayed in a queue of " +
                                  text(*queue.device));
  makeCurrent(*queue.device);
  driver_.check(driver_.graphLaunch(sequence.executable, queue.stream), text(*queue.device) + ": a replay");
  add(counts_, sequence.copies);
}

void Context::remove(const Sequence &sequence) {
  driver_.contextSetCurrent(sequence.device->context);
  driver_.executableDestroy(sequence.executable);
}

//===- modules ----------------------------------------------------------------------------------------------------===//

/// How well code for an architecture suits a device of this compute capability, 90 for 9.0; 0: it does not run there.
/// Machine code runs on its major version only. PTX runs on all newer devices, after compilation by the driver. The
/// newest code is the best, and machine code precedes all PTX.
static int suitability(const std::string &architecture, int capability) {
  static constexpr std::string_view kMachine = "sm_", kPtx = "compute_";
  constexpr int kBeforePtx = 10000;
  if (architecture.starts_with(kPtx)) {
    int version = std::atoi(architecture.c_str() + kPtx.size());
    return version <= capability ? version : 0;
  }
  int version = architecture.starts_with(kMachine) ? std::atoi(architecture.c_str() + kMachine.size()) : 0;
  return version / 10 == capability / 10 && version <= capability ? kBeforePtx + version : 0;
}

/// The codes of the architecture that suits the device best.
std::vector<std::string_view> Context::codeFor(const Device &device, const ModuleImage &image) const {
  int major = attribute(device, DeviceAttribute::Major), minor = attribute(device, DeviceAttribute::Minor), best = 1;
  std::vector<std::string_view> codes;
  std::string known;
  for (const ImageCode &code : image.codes) {
    int suits = suitability(code.architecture, 10 * major + minor);
    known += (known.empty() ? "" : ", ") + code.architecture;
    if (suits < best)
      continue;
    if (suits > best)
      codes.clear();
    best = suits;
    codes.push_back(code.bytes);
  }
  if (codes.empty() && !image.kernels.empty())
    throw Error(SLUICE_UNSUPPORTED, text(device) + ", " + device.name + ", has architecture sm_" +
                                        std::to_string(10 * major + minor) + ", and the code is for " + known);
  return codes;
}

const BlasLt *Context::libraryOn(Device &device) const {
  if (products_ == Products::Own)
    return nullptr;
  const BlasLt *blas = BlasLt::find();
  if (!blas && products_ == Products::Library)
    throw Error(SLUICE_UNSUPPORTED,
                "there is no cublasLt here, which products=library asks for; SLUICE_CUBLASLT may name it");
  if (blas && !device.blas) {
    blas->check(blas->create(&device.blas),
                text(device) + ": cublasLt " + blas->version + " does not begin, and products=own does without it");
    device.name += ", products by cublasLt " + blas->version;
  }
  return blas;
}

LoadedModule Context::load(Device &device, std::string_view bytes) {
  makeCurrent(device);
  LoadedModule loaded;
  loaded.device = &device;
  try {
    fill(loaded, readModuleImage(bytes));
  } catch (...) {
    unload(loaded);
    throw;
  }
  return loaded;
}

void Context::fill(LoadedModule &loaded, ModuleImage image) {
  Device &device = *loaded.device;
  for (std::string_view code : codeFor(device, image)) {
    std::string aligned(code); // a copy, because code in the image is not aligned
    DriverModule module = nullptr;
    driver_.check(driver_.moduleLoad(&module, aligned.data()), text(device) + " refuses its code");
    loaded.modules.push_back(module);
  }
  auto find = [&](const std::string &name) {
    DriverFunction function = nullptr;
    for (DriverModule module : loaded.modules)
      if (driver_.moduleFunction(&function, module, name.c_str()) == 0)
        return function;
    throw Error(SLUICE_INVALID, "the code for " + text(device) + " has no function " + name);
  };
  for (ImageKernel &kernel : image.kernels) {
    LoadedModule::Kernel &its = loaded.kernels[kernel.name];
    its.buffers = kernel.buffers;
    if (const BlasLt *blas = kernel.product ? libraryOn(device) : nullptr)
      its.product =
          PreparedProduct::prepare(*blas, device.blas, *kernel.product, text(device) + ": kernel " + kernel.name,
                                   {driver_, device.stream, device.name, *fastest_});
    for (ImageFunction &function : kernel.functions) {
      DriverFunction code = find(function.name);
      if (function.sharedBytes > 0)
        driver_.check(driver_.setAttribute(code, FunctionAttribute::MostSharedBytes, int(function.sharedBytes)),
                      text(device) + ": shared memory of " + function.name);
      its.functions.push_back({code, std::move(function)});
    }
  }
}

void Context::unload(const LoadedModule &module) {
  driver_.contextSetCurrent(module.device->context);
  for (DriverModule its : module.modules)
    driver_.moduleUnload(its);
}

//===- work -------------------------------------------------------------------------------------------------------===//

void Context::copy(Queue &queue, const sluice_copy &copy) {
  if (copy.from_device == SLUICE_HOST && copy.to_device == SLUICE_HOST)
    throw Error(SLUICE_UNSUPPORTED, "cuda: copies within the host's memory are the host's");
  if (copy.from_device != queue.device->ordinal || copy.to_device != queue.device->ordinal)
    checkCapturesNot(queue, "copy from one memory to another");
  std::string what = text(*queue.device) + ": copy of " + (copy.label ? copy.label : "");
  DeviceAddress from = addressOf(copy.from), to = addressOf(copy.to);
  auto put = [&] {
    if (copy.from_device == SLUICE_HOST)
      return driver_.copyUp(to, copy.from, copy.bytes, queue.stream);
    if (copy.to_device == SLUICE_HOST)
      return driver_.copyDown(copy.to, from, copy.bytes, queue.stream);
    if (copy.from_device == copy.to_device)
      return driver_.copyWithin(to, from, copy.bytes, queue.stream);
    return driver_.copyAcross(to, device(copy.to_device).context, from, device(copy.from_device).context, copy.bytes,
                              queue.stream);
  };
  if (copy.bytes > 0) {
    if (copy.from_device != copy.to_device && copy.from_device != SLUICE_HOST && copy.to_device != SLUICE_HOST)
      connect(device(copy.from_device), device(copy.to_device));
    makeCurrent(*queue.device);
    driver_.check(put(), what);
  }
  add(queue.captures ? queue.captured : counts_, {{{copy.from_device, copy.to_device}, {1, int64_t(copy.bytes)}}});
}

void Context::launch(const Queue &queue, const LoadedModule &module, const sluice_launch &launch) {
  auto kernel = module.kernels.find(launch.function);
  if (kernel == module.kernels.end())
    throw Error(SLUICE_UNSUPPORTED, text(*queue.device) + ": there is no kernel " + launch.function);
  // The workspace follows the other buffers of a function, even if it is empty.
  size_t buffers = kernel->second.buffers;
  if (launch.num_buffers != buffers && launch.num_buffers + 1 != buffers)
    throw Error(SLUICE_INTERNAL, text(*queue.device) + ": kernel " + launch.name + " takes " + std::to_string(buffers) +
                                     " buffers, and was given " + std::to_string(launch.num_buffers));
  std::vector<void *> addresses(launch.addresses, launch.addresses + launch.num_buffers);
  addresses.resize(buffers);
  int64_t rows = launch.call->rows, tasks = 0;
  makeCurrent(*queue.device);
  PreparedProduct *product = kernel->second.product.get();
  ProductMaker maker = product ? product->makerOf(rows, addresses.data()) : ProductMaker::Functions;
  if (maker != ProductMaker::Functions)
    product->launch(rows, addresses.data(), addresses.back(), queue.stream);
  std::vector<void *> arguments(buffers);
  std::transform(addresses.begin(), addresses.end(), arguments.begin(),
                 [](void *&address) { return static_cast<void *>(&address); });
  arguments.insert(arguments.end(), {&rows, &tasks});
  for (const LoadedModule::Function &function : kernel->second.functions) {
    tasks = function.image.tasksFor(rows);
    if (tasks == 0 || !function.image.runsWith(maker))
      continue;
    int64_t tasksOfBlock = std::max<int64_t>(kThreadsOfBlock / function.image.threads, 1);
    int64_t blocks = (tasks + tasksOfBlock - 1) / tasksOfBlock;
    if (blocks > std::numeric_limits<int32_t>::max())
      throw Error(SLUICE_INVALID, text(*queue.device) + ": kernel " + launch.name + " has " + std::to_string(blocks) +
                                      " blocks, more than devices take");
    unsigned threads = unsigned(tasksOfBlock * function.image.threads);
    driver_.check(driver_.launch(function.function, unsigned(blocks), 1, 1, threads, 1, 1,
                                 unsigned(function.image.sharedBytes), queue.stream, arguments.data(), nullptr),
                  text(*queue.device) + ": kernel " + launch.name);
  }
}

} // namespace sluice::cuda
