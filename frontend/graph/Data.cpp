// Data in a graph: initial values of states, and constants.
#include "frontend/graph/Call.h"
#include "frontend/graph/GraphImpl.h"
#include "ir/Module.h"
#include "runtime/base/Status.h"
#include "runtime/io/TensorSource.h"

#include <algorithm>
#include <cstring>

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::GraphImpl;

/// Larger constants are stored in a separate file.
static constexpr int64_t kMostInText = 1024;

//===- sources ----------------------------------------------------------------------------------------------------===//

/// Runs `body` and reports a reader's error at the user's line.
template <typename Body> static void guarded(const std::string &what, const SourceLocation &location, Body body) {
  if (runtime::Status status = runtime::guarded(body); !status.ok())
    throw Error(what + status.message, location, {}, int(status.code));
}

static runtime::Shape sizesOf(RankedTensorType type) { return type.getShape().vec(); }

namespace detail {

runtime::TensorSource GraphImpl::open(const init::Init &init, const std::string &tensor) {
  if (init.source)
    return *init.source;
  if (StringRef(init.file).ends_with(".npy"))
    return runtime::sourceOfNpy(init.file);
  std::shared_ptr<const runtime::SafetensorsFile> &file = dataFiles[init.file];
  if (!file)
    file = std::make_shared<const runtime::SafetensorsFile>(init.file);
  return runtime::sourceIn(file, init.file, init.tensor.empty() ? tensor : init.tensor);
}

ir::InitAttr GraphImpl::keepData(const std::string &state, const runtime::TensorSource &source) {
  auto sum = builder.getI64IntegerAttr(source.crc32());
  data[state] = source;
  return ir::InitAttr::get(&context, "data", builder.getF64FloatAttr(0), FloatAttr(), IntegerAttr(), sum);
}

ir::InitAttr GraphImpl::dataAttr(const init::Init &init, const std::string &state, RankedTensorType type,
                                 const SourceLocation &location) {
  ir::InitAttr attr;
  guarded("'" + state + "' cannot begin so: ", location,
          [&] { attr = keepData(state, open(init, state).as(runtime::DType(dtypeOf(type)), sizesOf(type))); });
  return attr;
}

Value GraphImpl::constant(const runtime::TensorSource &source, RankedTensorType type, const SourceLocation &location) {
  std::string name = "constant " + std::to_string(++constants);
  StringAttr device = scopeDevice();
  TypeAttr physical = device ? TypeAttr::get(ir::withDevice(type, device)) : TypeAttr();
  return read(createState(ir::StateKind::Constant, name, type, keepData(name, source), physical, location), device,
              location);
}

void GraphImpl::writeData(const std::string &path, const SourceLocation &location) const {
  std::vector<runtime::NamedSource> sources;
  for (const auto &[state, source] : data)
    sources.push_back({state, source});
  guarded("", location, [&] { runtime::writeSources(path, sources); });
}

} // namespace detail

//===- constants --------------------------------------------------------------------------------------------------===//

static Value constantInText(GraphImpl &graph, const void *elements, RankedTensorType type,
                            const SourceLocation &location) {
  ArrayRef<char> bytes(static_cast<const char *>(elements),
                       type.getNumElements() * runtime::sizeOf(runtime::DType(detail::dtypeOf(type))));
  bool isBool = type.getElementType().isInteger(1); // MLIR packs booleans into bits
  auto value = isBool
                   ? DenseElementsAttr::get(type, ArrayRef(reinterpret_cast<const bool *>(bytes.data()), bytes.size()))
                   : DenseElementsAttr::getFromRawBuffer(type, bytes);
  auto constant = graph.builder.create<ir::ConstantOp>(graph.toLocation(location), value);
  ir::setDeviceAndPin(constant, graph.scopeDevice(), {});
  return constant;
}

Value GraphImpl::constantOf(const runtime::TensorSource &source, RankedTensorType type,
                            const SourceLocation &location) {
  if (type.getNumElements() > kMostInText)
    return constant(source, type, location);
  runtime::Bytes elements(source.bytes());
  source.read(0, elements);
  return constantInText(*this, elements.data(), type, location);
}

Tensor Graph::constant(const void *elements, std::size_t count, DType dtype, const Shape &shape, Where where) {
  RankedTensorType type = graph->typeOf("constant", dtype, shape, where);
  if (!type.hasStaticShape())
    throw Error("constant: the shape " + shape.str() + " has a dimension without a size", where);
  if (type.getNumElements() != int64_t(count))
    throw Error("constant: " + shape.str() + " has " + std::to_string(type.getNumElements()) + " elements, not " +
                    std::to_string(count),
                where);
  if (type.getNumElements() <= kMostInText)
    return Access::tensor(*graph, constantInText(*graph, elements, type, where));
  const auto *begin = static_cast<const std::byte *>(elements);
  auto kept = std::make_shared<const runtime::Bytes>(begin, begin + count * runtime::sizeOf(runtime::DType(dtype)));
  runtime::TensorSource source = runtime::sourceOf("the constant", runtime::DType(dtype), sizesOf(type), kept);
  return Access::tensor(*graph, graph->constant(source, type, where));
}

Tensor Graph::constant(const init::Init &data, Where where) {
  if (data.kind != init::Init::Kind::data)
    throw Error("constant: only from_file and from_npy give a shape; use full for one value", where);
  runtime::TensorSource source;
  guarded("constant: ", where, [&] { source = graph->open(data, ""); });
  Shape shape(std::vector<Dim>(source.shape.begin(), source.shape.end()));
  RankedTensorType type = graph->typeOf("constant", DType(source.dtype), shape, where);
  return Access::tensor(*graph, graph->constant(source, type, where));
}

} // namespace sluice
