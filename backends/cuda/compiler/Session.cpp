#include "backends/cuda/compiler/Session.h"

#include "backends/cuda/compiler/emit/Prelude.h"
#include "backends/cuda/compiler/product/ProductKernel.h"
#include "backends/loops/LoopKernel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ThreadPool.h"
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace sluice::cuda {

using namespace mlir;

// One text with many kernels compiles faster than many texts, and several texts use several threads.
static constexpr size_t kKernelsOfUnit = 16;

// The default architectures. The last is PTX, for devices newer than the others.
static constexpr const char *kShipped[] = {"sm_80", "sm_90", "sm_100", "compute_80"};

static bool readSetting(StringRef name, StringRef value, Settings &settings) {
  bool isShare = value == "all" || value == "large" || value == "none";
  if (name == "arch")
    for (StringRef architecture : llvm::split(value, '+'))
      settings.architectures.push_back(architecture.str());
  else if (name == "library" && isShare)
    settings.libraryFlops = value == "all" ? 0 : value == "none" ? INFINITY : Settings::kLargeProduct;
  else if (name == "algorithms" && (value == "timed" || value == "fixed"))
    settings.timed = value == "timed";
  else
    return false;
  return true;
}

llvm::Expected<Settings> readSettings(StringRef text) {
  Settings settings;
  if (text.empty())
    return settings;
  auto refuse = [](const char *why, StringRef which) {
    return llvm::createStringError(std::errc::invalid_argument, why, which.str().c_str());
  };
  llvm::StringSet<> given;
  for (StringRef one : llvm::split(text, ',')) {
    auto [name, value] = one.split('=');
    if (!one.contains('=') || !readSetting(name, value, settings))
      return refuse("there is no setting '%s'; there are arch=sm_80+sm_90, library=all and "
                    "algorithms=timed",
                    one);
    if (!given.insert(name).second)
      return refuse("the setting '%s' is given twice", name);
  }
  for (const std::string &architecture : settings.architectures)
    if (!given.insert(architecture).second)
      return refuse("the architecture '%s' is given twice", architecture);
  return settings;
}

/// Whether the architecture lacks the tensor core instructions that products use: sm_75 and before.
static bool lacksTensorCores(StringRef architecture) {
  constexpr int kFirst = 80;
  int number = 0;
  return !architecture.drop_front(architecture.find('_') + 1).consumeInteger(10, number) && number < kFirst;
}

llvm::Expected<Session> Session::begin(Settings settings, int64_t capacity, sluice_math math, std::string kernelTexts) {
  llvm::Expected<Nvrtc> nvrtc = Nvrtc::load();
  if (!nvrtc)
    return llvm::createStringError(std::errc::not_supported, "%s", llvm::toString(nvrtc.takeError()).c_str());
  if (settings.architectures.empty())
    llvm::copy_if(kShipped, std::back_inserter(settings.architectures),
                  [&](const char *shipped) { return nvrtc->has(shipped); });
  for (const std::string &wanted : settings.architectures) {
    if (!nvrtc->has(wanted))
      return llvm::createStringError(std::errc::invalid_argument, "NVRTC %s has no architecture '%s'; it has %s",
                                     nvrtc->version().c_str(), wanted.c_str(),
                                     llvm::join(nvrtc->architectures(), ", ").c_str());
    if (math != SLUICE_MATH_STRICT && lacksTensorCores(wanted))
      return llvm::createStringError(std::errc::invalid_argument,
                                     "architecture %s has no TF32 tensor cores; use --math strict", wanted.c_str());
  }
  return Session(std::move(*nvrtc), std::move(settings), capacity, math, std::move(kernelTexts));
}

GridOptions Session::options() const {
  return {.math = math, .halfCores = llvm::none_of(settings.architectures, lacksTensorCores)};
}

/// Removes from the ops the sum that is kept in addition to another result, and returns it; null if there is none.
static ir::SumOp takeSum(SmallVectorImpl<Operation *> &ops, ValueRange kept) {
  ir::SumOp sum;
  for (Value value : kept)
    if (auto found = value.getDefiningOp<ir::SumOp>(); found && kept.size() == 2)
      sum = found;
  llvm::erase(ops, sum.getOperation());
  return sum;
}

std::optional<LibraryProduct> Session::libraryProductOf(ArrayRef<Operation *> all, ValueRange kept) const {
  SmallVector<Operation *> ops(all);
  ir::SumOp sum = takeSum(ops, kept);
  const auto *place = llvm::find_if(ops, llvm::IsaPred<ir::ContractionOp>);
  bool keepsLast = kept.size() == (sum ? 2 : 1) && llvm::is_contained(kept, ops.back()->getResult(0));
  if (place == ops.end() || !keepsLast)
    return std::nullopt;
  Operation *op = *place;
  ArrayRef<Operation *> moves(ops.begin(), place), onwards(place, ops.end());
  if (sum && !llvm::all_of(moves, ir::isInjective))
    return std::nullopt;
  auto contraction = cast<ir::ContractionOp>(op);
  auto [flops, flopsPerRow] = contraction.getFlops();
  if (double(flops) + double(flopsPerRow) * double(capacity_) < settings.libraryFlops)
    return std::nullopt;
  if (hasFewLongSums(op, capacity_, options()))
    return std::nullopt;
  loops::Formulas formulas;
  if (!loops::readsMemory(formulas, op, moves))
    return std::nullopt;
  std::optional<loops::Product> product = loops::findProduct(formulas, op, capacity_, moves);
  if (!product)
    return std::nullopt;
  product->gatherUnits();
  std::optional<LibraryProduct> found = findLibraryProduct(*product, onwards, capacity_, settings.timed, sum, moves);
  if (found && found->type == "f32" && usesTf32(op, options()))
    found->type = "tf32";
  return found;
}

/// A CUDA C++ name that no library function has.
static std::string functionName(size_t number, StringRef kernel) {
  std::string name = fmt::format("k{}_", number);
  for (char letter : kernel)
    name += llvm::isAlnum(letter) ? letter : '_';
  return name;
}

FailureOr<Session::Prepared> Session::prepare(ir::KernelOp kernel, StringRef textName) {
  if (failed(loops::checkLayouts(kernel)))
    return failure();
  std::string name = functionName(texts.size(), kernel.getName());
  FailureOr<GridKernel> written = writeGridKernel(kernel, name, capacity_, options());
  if (failed(written))
    return failure();
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops(llvm::make_pointer_range(body.without_terminator()));
  std::optional<LibraryProduct> product = libraryProductOf(ops, body.getTerminator()->getOperands());
  if (product && product->input && failed(addActivation(kernel, name, capacity_, *written)))
    return failure();
  kernelTexts.add(textName, *written, product ? "library: cublasLt, if it supports the product\n" : "");
  texts.push_back(std::move(written->text));
  for (const GridFunction &function : written->functions)
    sharedBytes[function.name] = int(function.sharedBytes);
  image.addKernel(name, kernel.getNumOperands() + kernel.getNumResults() + 1, written->functions);
  int64_t workspaceBytes = written->workspaceBytes;
  if (product) {
    image.addProduct(*product);
    workspaceBytes = std::max(workspaceBytes, kLibraryWorkspaceBytes);
  }
  return Prepared{name, workspaceBytes, written->lanes};
}

std::vector<std::string> Session::units() const {
  std::vector<std::string> units;
  for (auto [number, text] : llvm::enumerate(texts)) {
    if (number % kKernelsOfUnit == 0)
      units.emplace_back(kPrelude);
    units.back() += text;
  }
  return units;
}

llvm::Expected<std::string> Session::lower() {
  struct Job {
    const std::string *architecture, *text;
    bool hasText;
    std::string code, ptx, error;
    std::vector<KernelResources> functions;
  };
  std::vector<std::string> units = this->units();
  std::vector<Job> jobs;
  for (const std::string &architecture : settings.architectures)
    for (const std::string &unit : units)
      jobs.push_back({&architecture, &unit, kernelTexts.areWanted() && jobs.size() < units.size(), "", "", "", {}});
  llvm::DefaultThreadPool threads;
  for (Job &job : jobs)
    threads.async([&] {
      llvm::Expected<DeviceCode> made = nvrtc.compile(*job.text, *job.architecture, {}, job.hasText);
      if (made)
        job.code = std::move(made->bytes), job.ptx = std::move(made->ptx), job.functions = std::move(made->kernels);
      else
        job.error = llvm::toString(made.takeError());
    });
  threads.wait();
  std::vector<UnitText> unitTexts; // for the first architecture
  for (Job &job : jobs) {
    if (!job.error.empty())
      return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", job.error.c_str());
    for (KernelResources &function : job.functions)
      function.shared += sharedBytes.lookup(function.name);
    compiled_.push_back({*job.architecture, std::move(job.functions)});
    if (job.hasText)
      unitTexts.push_back({std::move(job.ptx), StringRef(*job.architecture).starts_with("sm_") ? job.code : ""});
    image.addCode(*job.architecture, std::move(job.code));
  }
  if (llvm::Error error = kernelTexts.write(unitTexts, kKernelsOfUnit))
    return std::move(error);
  return image.write();
}

} // namespace sluice::cuda
