// The top of a module.
#include "ir/Module.h"
#include "ir/RowOrder.h"
#include "ir/text/Names.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace sluice::ir {

static LogicalResult verifyImportedFrom(ModelOp model) {
  Attribute facts = model->getAttr(kImportedFromAttr);
  auto dictionary = dyn_cast_or_null<DictionaryAttr>(facts);
  if (facts && (!dictionary || dictionary.size() > kMostImportedFacts))
    return model.emitOpError() << "has the attribute " << kImportedFromAttr
                               << ", which must be a dictionary of at most " << kMostImportedFacts << " strings";
  for (NamedAttribute fact : dictionary ? dictionary.getValue() : ArrayRef<NamedAttribute>()) {
    auto text = dyn_cast<StringAttr>(fact.getValue());
    if (!text || text.size() > kMostImportedBytes || !llvm::json::isUTF8(text.getValue()) ||
        !problemOfName(fact.getName()).empty())
      return model.emitOpError() << "has the attribute " << kImportedFromAttr << ", in which "
                                 << quoteName(fact.getName()) << " must be UTF-8 of at most " << kMostImportedBytes
                                 << " bytes";
  }
  return success();
}

LogicalResult ModelOp::verify() {
  if (failed(verifyImportedFrom(*this)))
    return failure();
  if (int64_t(getFormat()) != kTextFormat)
    return emitOpError("is of format ") << getFormat() << ", not " << kTextFormat;
  if (Attribute shuffle = (*this)->getAttr(kShuffleAttr); shuffle && !isa<BoolAttr>(shuffle))
    return emitOpError() << "has the attribute " << kShuffleAttr << ", which must be true or false, but is " << shuffle;
  int64_t rows = int64_t(getCapacity());
  if (rows < 0 || rows > INT32_MAX)
    return emitOpError("capacity must be a number of rows from 0 to ") << INT32_MAX << ", but is " << rows;
  if (int64_t calls = int64_t(getInFlight().value_or(kCallsInFlight)); calls < 1 || calls > kMostCallsInFlight)
    return emitOpError("in_flight must be a number of calls from 1 to ") << kMostCallsInFlight << ", but is " << calls;
  if (int64_t replicas = int64_t(getReplicas()); replicas < 0 || replicas > kMostReplicas)
    return emitOpError("replicas must be a number from 1 to ")
           << kMostReplicas << ", or 0 for as many as are launched, but is " << replicas;
  if (getZero() > 1 || (getZero() == 1 && getReplicas() < 2))
    return emitOpError("zero must be 0, or 1 where replicas are several, but is ") << getZero();
  if (getWire() == Precision::F16)
    return emitOpError("wire must be f32 or bf16, whose range is that of sums of gradients, but is f16");
  int64_t microbatches = int64_t(getMicrobatches());
  if (microbatches < 1 || microbatches > kMostMicrobatches)
    return emitOpError("microbatches must be a number from 1 to ") << kMostMicrobatches << ", but is " << microbatches;
  if (int64_t shards = int64_t(getLogicalShards()))
    if (std::string reason = whyNotShared(shards, int64_t(getReplicas())); !reason.empty())
      return emitOpError(reason);
  if (int64_t batch = int64_t(getBatch().value_or(0));
      batch < 0 || llvm::divideCeil(batch, std::max<uint64_t>(getReplicas(), 1)) > uint64_t(rows * microbatches)) {
    InFlightDiagnostic error = emitOpError("has a batch of ")
                               << batch << " rows, which " << std::max<uint64_t>(getReplicas(), 1) << " replicas of ";
    if (microbatches > 1)
      error << microbatches << " microbatches of ";
    return error << rows << " rows do not hold";
  }
  for (Operation &other : *(*this)->getBlock())
    if (isa<ModelOp>(other) && &other != getOperation())
      return emitOpError("is one of two in a module");
  return success();
}

bool ModelOp::selects(StringRef entry) {
  return !getEntries() || llvm::is_contained(*getEntries(), StringAttr::get(getContext(), entry));
}

ModelOp findModel(ModuleOp module) {
  auto models = module.getOps<ModelOp>();
  return models.empty() ? ModelOp() : *models.begin();
}

ModelOp getModel(ModuleOp module) {
  if (ModelOp model = findModel(module))
    return model;
  auto builder = OpBuilder::atBlockBegin(module.getBody());
  return builder.create<ModelOp>(module.getLoc(), "model", kTextFormat, "model", /*capacity=*/0,
                                 /*entries=*/ArrayAttr(), /*functional=*/false,
                                 /*in_flight=*/IntegerAttr(), CopyPolicyAttr(), PrecisionAttr(), /*replicas=*/1,
                                 /*batch=*/IntegerAttr(), /*microbatches=*/1, /*logical_shards=*/0, /*zero=*/0,
                                 /*sync_batch_norm=*/false, /*wire=*/PrecisionAttr(), /*data=*/StringAttr(),
                                 /*values=*/StringAttr(), /*least_training_rows=*/1);
}

OpBuilder behindHead(ModuleOp module) {
  auto builder = OpBuilder::atBlockBegin(module.getBody());
  for (Operation &op : *module.getBody()) {
    if (!isa<ModelOp, DeviceOp, QueueOp, ArenaOp>(op))
      break;
    builder.setInsertionPointAfter(&op);
  }
  return builder;
}

int64_t getCapacity(ModuleOp module) {
  ModelOp model = findModel(module);
  return model ? int64_t(model.getCapacity()) : 0;
}

int64_t getReplicas(ModuleOp module) {
  ModelOp model = findModel(module);
  return model ? int64_t(model.getReplicas()) : 1;
}

bool isReplicated(ModuleOp module) { return getReplicas(module) != 1; }

int64_t getMicrobatches(ModuleOp module) {
  ModelOp model = findModel(module);
  return model ? int64_t(model.getMicrobatches()) : 1;
}

int64_t getLogicalShards(ModuleOp module) {
  ModelOp model = findModel(module);
  return model ? int64_t(model.getLogicalShards()) : 0;
}

std::string whyNotShared(int64_t shards, int64_t replicas) {
  if (shards < 1 || shards > kMostMicrobatches || !llvm::isPowerOf2_64(uint64_t(shards)))
    return ("the number of logical shards must be a power of two from 1 to " + llvm::Twine(kMostMicrobatches) +
            ", but is " + llvm::Twine(shards))
        .str();
  if (replicas == kReplicasOfLaunch)
    return "logical shards need a fixed number of replicas, not one replica per launched process";
  if (shards % replicas != 0)
    return ("cannot divide " + llvm::Twine(shards) + " logical shards equally among " + llvm::Twine(replicas) +
            " replicas; the number of replicas must divide the number of shards")
        .str();
  return "";
}

bool sharesRows(ModuleOp module) {
  return isReplicated(module) || getMicrobatches(module) > 1 || getLogicalShards(module) > 0;
}

int64_t getPlannedReplicas(ModuleOp module) {
  int64_t replicas = getReplicas(module);
  return replicas == kReplicasOfLaunch ? kPlannedReplicas : replicas;
}

Precision getPrecision(ModuleOp module) {
  ModelOp model = findModel(module);
  return model ? model.getPrecision().value_or(Precision::F32) : Precision::F32;
}

void setPrecision(ModuleOp module, Precision precision) {
  if (precision != getPrecision(module))
    getModel(module).setPrecisionAttr(precision == Precision::F32 ? PrecisionAttr()
                                                                  : PrecisionAttr::get(module.getContext(), precision));
}

FloatType typeOf(MLIRContext *context, Precision precision) {
  switch (precision) {
  case Precision::F32:
    return FloatType::getF32(context);
  case Precision::BF16:
    return FloatType::getBF16(context);
  case Precision::F16:
    return FloatType::getF16(context);
  }
  llvm_unreachable("a precision beyond the list");
}

int64_t getCallsInFlight(ModuleOp module) {
  ModelOp model = findModel(module);
  return model ? int64_t(model.getInFlight().value_or(kCallsInFlight)) : kCallsInFlight;
}

StringRef getModelName(ModuleOp module) {
  ModelOp model = findModel(module);
  return model ? model.getName() : "model";
}

/// The number after `format` in the text of a model, in either of MLIR's forms.
static std::optional<int64_t> formatIn(StringRef line) {
  StringRef rest = line.substr(line.find("format")).drop_front(StringRef("format").size()).ltrim(" =");
  int64_t format = 0;
  return rest.consumeInteger(10, format) ? std::nullopt : std::optional(format);
}

/// "2:3: error: the text is of `what`".
static std::string wrongFormat(StringRef text, size_t at, const Twine &what) {
  StringRef before = text.take_front(at);
  size_t line = before.count('\n') + 1, column = at - (before.rfind('\n') + 1) + 1;
  return (Twine(line) + ":" + Twine(column) + ": error: the text is of " + what +
          "; this Sluice reads and writes format " + Twine(kTextFormat) + ", so write the model anew")
      .str();
}

std::string problemOfFormat(StringRef text) {
  size_t model = text.find("sluice.model");
  StringRef line = model == StringRef::npos ? StringRef() : text.substr(model).split('\n').first;
  if (line.contains("format"))
    if (std::optional<int64_t> format = formatIn(line); format && *format != kTextFormat)
      return wrongFormat(text, model, "format " + Twine(*format));
  // Before the first format these were attributes of the module.
  for (StringRef old : {"sluice.capacity = ", "sluice.phase = ", "sluice.devices = ", "sluice.model = "})
    if (size_t at = text.find(old); at != StringRef::npos)
      return wrongFormat(text, at, "a time before format 1, by its '" + old.rtrim(" =") + "'");
  return "";
}

} // namespace sluice::ir
