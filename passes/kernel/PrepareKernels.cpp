// The backend prepares every kernel, and the kernel bodies move out of the entry points. Kernels with equal bodies
// become launches of one function, on all devices of a backend.
//
//   %y = sluice.kernel "acc0_relu" (%a = %x) {...}
//     ==>  sluice.function @acc0_relu of "sim" cost <...> stage "acc0_relu_0" tasks 1 (%a) {...}
//          %y, %done = sluice.launch "acc0_relu" @acc0_relu on "acc0" in %x
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/ContentKey.h"
#include "passes/backend/DeviceBackends.h"
#include "passes/kernel/PreparedKernels.h"
#include "passes/kernel/SharedKernels.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// The name as part of a file name: names come from the model.
static std::string fileName(StringRef name) {
  std::string made = name.str();
  for (char &letter : made)
    letter = llvm::isAlnum(letter) || letter == '_' || letter == '-' ? letter : '_';
  return made;
}

static StringRef deviceOf(KernelOp kernel) { return getDevice(kernel->getResult(0).getType()); }

static std::string kindOf(KernelOp kernel, Backend &backend) {
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops(llvm::make_pointer_range(body.without_terminator()));
  return backend.cost(ops, body.getArguments(), body.getTerminator()->getOperands()).kind;
}

/// The kernel's ops, without devices.
static void cloneBody(KernelOp kernel, Region &into) {
  IRMapping mapping;
  kernel.getBody().cloneInto(&into, mapping);
  auto unplace = [](Value value) { value.setType(withDevice(value.getType(), StringAttr())); };
  Block &body = into.front();
  llvm::for_each(body.getArguments(), unplace);
  for (Operation &op : body)
    llvm::for_each(op.getResults(), unplace);
}

namespace {

/// Types without devices. Kernels share few types.
class TypesWithoutDevice {
public:
  Type of(Type type) {
    Type &found = known[type];
    return found ? found : found = withDevice(type, StringAttr());
  }

private:
  DenseMap<Type, Type> known;
};

} // namespace

namespace {

class Outlining {
public:
  Outlining(ModuleOp module, const DeviceBackends &backends, PreparedKernels *kept, SharedKernels *shared)
      : module(module), backends(backends), kept(kept), shared(shared), symbols(module) {
    if (auto entries = module.getOps<EntryOp>(); !entries.empty())
      firstEntry = *entries.begin();
  }

  LogicalResult run() {
    SmallVector<KernelOp> kernels;
    module.walk([&](KernelOp kernel) { kernels.push_back(kernel); });
    for (KernelOp kernel : kernels) {
      FailureOr<FunctionOp> function = functionFor(kernel);
      if (failed(function))
        return failure();
      launch(kernel, *function);
    }
    return success();
  }

private:
  /// The function of kernels with this body, created on first use.
  FailureOr<FunctionOp> functionFor(KernelOp kernel) {
    Backend &backend = backends.of(kernel);
    std::string key = contentKey(kernel.getBody().front(), [&](Type type) { return types.of(type); });
    if (FunctionOp known = functions.lookup((backend.name() + " " + key).str()))
      return known;
    OpBuilder builder(module.getContext());
    OperationState state(kernel.getLoc(), FunctionOp::getOperationName());
    cloneBody(kernel, *state.addRegion());
    auto function = cast<FunctionOp>(builder.create(state));
    function.setSymName(fileName(kernel.getName()));
    symbols.insert(function, Block::iterator(firstEntry)); // makes the name unique, for the backend
    if (failed(prepare(function, kernel, key))) {
      symbols.erase(function);
      return failure();
    }
    return functions[(backend.name() + " " + key).str()] = function;
  }

  /// Records the backend's description of a function. A description in `kept` is reused if the same backend made its
  /// kernel.
  LogicalResult prepare(FunctionOp function, KernelOp kernel, StringRef key) {
    Backend &backend = backends.of(kernel);
    std::string made = (backend.makerOfKernels() + " " + key).str();
    if (DictionaryAttr described = kept ? kept->functions.lookup(made) : DictionaryAttr()) {
      StringAttr name = function.getSymNameAttr();
      function->setAttrs(described);
      function.setSymNameAttr(name);
      function.setBackend(backend.name());
      return success();
    }
    function.setBackend(backend.name());
    if (failed(describe(function, kernel, backend)))
      return failure();
    if (kept)
      kept->functions[made] = function->getAttrDictionary();
    return success();
  }

  /// Describes the launch of a kernel, which its backend prepares unless the kernel is shared.
  LogicalResult describe(FunctionOp function, KernelOp kernel, Backend &backend) {
    bool isShared = shared && backend.lowersKernels();
    KernelKey key = isShared ? backend.keyOf(kernel) : KernelKey();
    if (const KernelLaunch *known = isShared ? shared->find(key) : nullptr) {
      known->describe(function);
      return success();
    }
    FailureOr<sluice_launch_info> info = backend.prepare(kernel, function.getSymName(), key.symbol);
    if (failed(info))
      return failure();
    KernelLaunch launch(*info, kindOf(kernel, backend));
    launch.describe(function);
    if (isShared)
      shared->add(key, backend, std::move(launch));
    return success();
  }

  /// Replaces a kernel. A device's compute queue has the device's name.
  static void launch(KernelOp kernel, FunctionOp function) {
    OpBuilder builder(kernel);
    auto launch = builder.create<LaunchOp>(
        kernel.getLoc(), kernel.getResultTypes(), builder.getType<EventType>(), kernel.getNameAttr(),
        FlatSymbolRefAttr::get(function.getSymNameAttr()), builder.getStringAttr(deviceOf(kernel)),
        builder.getI64IntegerAttr(function.getWorkspace()), kernel.getOperands(), /*after=*/ValueRange(),
        /*slots=*/ArrayAttr(), /*last_uses=*/ArrayAttr());
    kernel.replaceAllUsesWith(launch.getOutputs());
    kernel.erase();
  }

  ModuleOp module;
  const DeviceBackends &backends;
  PreparedKernels *kept;
  SharedKernels *shared;
  SymbolTable symbols;
  Operation *firstEntry = nullptr; // insertion point of functions
  TypesWithoutDevice types;
  llvm::StringMap<FunctionOp> functions;
};

} // namespace

LogicalResult prepareKernels(ModuleOp module, const DeviceBackends &backends, PreparedKernels *kept,
                             SharedKernels *shared) {
  return Outlining(module, backends, kept, shared).run();
}

} // namespace sluice::passes
