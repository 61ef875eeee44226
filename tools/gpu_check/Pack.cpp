#include "tools/gpu_check/Pack.h"

#include "runtime/base/Encoding.h"
#include "runtime/base/Json.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace sluice::gpu_check {

using runtime::Json;
using runtime::JsonReader;

static constexpr int64_t kMostSampled = 1024;
static constexpr int64_t kMostBytes = int64_t(1) << 40;

//===- files ------------------------------------------------------------------------------------------------------===//

static Json toJson(const PackedBuffer &buffer) {
  Json layout = Json::array();
  for (const runtime::PhysicalDim &dim : buffer.layout)
    layout.push_back({dim.dim, int(dim.part), dim.tile});
  return {{"dtype", nameOf(buffer.dtype)}, {"shape", buffer.shape},   {"layout", layout},
          {"bytes", buffer.bytes},         {"low", buffer.range.low}, {"high", buffer.range.high}};
}

static Json toJson(const PackedKernel &kernel) {
  Json operands = Json::array(), results = Json::array(), calls = Json::array();
  for (const PackedBuffer &operand : kernel.operands)
    operands.push_back(toJson(operand));
  for (const PackedBuffer &result : kernel.results)
    results.push_back(toJson(result));
  for (const PackedCall &call : kernel.calls) {
    Json expected = Json::array();
    for (const Expected &result : call.results)
      expected.push_back({result.offset, result.count});
    calls.push_back({{"rows", call.rows}, {"expected", expected}});
  }
  return {{"name", kernel.name},
          {"place", kernel.place},
          {"function", kernel.function},
          {"parameters", runtime::encodeHex(std::as_bytes(std::span(kernel.parameters)))},
          {"workspace", kernel.workspaceBytes},
          {"operands", operands},
          {"results", results},
          {"calls", calls}};
}

std::string writePack(const Pack &pack) {
  Json kernels = Json::array();
  for (const PackedKernel &kernel : pack.kernels)
    kernels.push_back(toJson(kernel));
  Json whole = {{"model", pack.model}, {"capacity", pack.capacity}, {"image", pack.imageBytes}, {"kernels", kernels}};
  return whole.dump();
}

static PackedBuffer readBuffer(const JsonReader &json) {
  PackedBuffer buffer;
  std::string dtype = json.at("dtype").string();
  std::optional<DType> known = runtime::dtypeFromName(dtype);
  if (!known)
    json.fail("'" + dtype + "' is no dtype");
  buffer.dtype = *known;
  for (const JsonReader &size : json.at("shape").list())
    buffer.shape.push_back(size.integer(-1, kMostBytes));
  for (const JsonReader &dim : json.at("layout").list()) {
    std::vector<JsonReader> parts = dim.list();
    if (parts.size() != 3)
      dim.fail("is no dimension of a layout");
    buffer.layout.push_back({int(parts[0].integer(0, 64)), runtime::PhysicalDim::Part(parts[1].integer(0, 2)),
                             parts[2].integer(0, kMostBytes)});
  }
  buffer.bytes = json.at("bytes").integer(0, kMostBytes);
  buffer.range = {json.at("low").number(), json.at("high").number()};
  return buffer;
}

static PackedCall readCall(const JsonReader &json) {
  PackedCall call{json.at("rows").integer(0, kMostBytes), {}};
  for (const JsonReader &result : json.at("expected").list()) {
    std::vector<JsonReader> parts = result.list();
    if (parts.size() != 2)
      result.fail("is no offset and count");
    call.results.push_back({parts[0].integer(0, kMostBytes), parts[1].integer(0, kMostSampled)});
  }
  return call;
}

static PackedKernel readKernel(const JsonReader &json) {
  PackedKernel kernel;
  kernel.name = json.at("name").string();
  kernel.place = json.at("place").string();
  kernel.function = json.at("function").string();
  std::optional<std::vector<std::byte>> parameters = runtime::decodeHex(json.at("parameters").string());
  if (!parameters)
    json.fail("has parameters that are no bytes");
  kernel.parameters = std::move(*parameters);
  kernel.workspaceBytes = json.at("workspace").integer(0, kMostBytes);
  for (const JsonReader &operand : json.at("operands").list())
    kernel.operands.push_back(readBuffer(operand));
  for (const JsonReader &result : json.at("results").list())
    kernel.results.push_back(readBuffer(result));
  for (const JsonReader &call : json.at("calls").list()) {
    kernel.calls.push_back(readCall(call));
    if (kernel.calls.back().results.size() != kernel.results.size())
      call.fail("has another number of results than the kernel");
  }
  return kernel;
}

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream contents;
  contents << in.rdbuf();
  if (!in)
    throw std::runtime_error(path + " cannot be read");
  return contents.str();
}

Pack readPack(const std::string &path) {
  Json json = runtime::parseJson(readFile(path), path);
  JsonReader reader(json, path);
  Pack pack;
  pack.model = reader.at("model").string();
  pack.capacity = reader.at("capacity").integer(0, kMostBytes);
  pack.imageBytes = reader.at("image").integer(0, kMostBytes);
  for (const JsonReader &kernel : reader.at("kernels").list())
    pack.kernels.push_back(readKernel(kernel));
  return pack;
}

//===- elements ---------------------------------------------------------------------------------------------------===//

runtime::Shape shapeOf(const PackedBuffer &buffer, int64_t rows) {
  runtime::Shape shape = buffer.shape;
  std::replace(shape.begin(), shape.end(), int64_t(-1), rows);
  return shape;
}

Places::Places(const PackedBuffer &buffer, int64_t rows, int64_t capacity)
    : shape(shapeOf(buffer, rows)), layout(buffer.layout), elements_(runtime::elementsOf(shape)) {
  for (int dim = 0; buffer.layout.empty() && dim < int(shape.size()); ++dim)
    layout.push_back({dim, runtime::PhysicalDim::Part::whole, 0});
  sizes = runtime::physicalShape(shapeOf(buffer, capacity), layout);
  // Only the outermost size may differ from that with all rows.
  isRowMajor = sizes.size() == shape.size() &&
               std::equal(sizes.begin() + !sizes.empty(), sizes.end(), shape.begin() + !shape.empty());
  for (int dim = 0; isRowMajor && dim < int(shape.size()); ++dim)
    isRowMajor = layout[size_t(dim)].dim == dim && layout[size_t(dim)].part == runtime::PhysicalDim::Part::whole;
}

int64_t Places::find(int64_t element) const {
  runtime::Shape index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; element /= shape[dim])
    index[dim] = element % shape[dim];
  int64_t place = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const runtime::PhysicalDim &dim = layout[i];
    int64_t at = index[size_t(dim.dim)];
    if (dim.part == runtime::PhysicalDim::Part::tileNumber)
      at /= dim.tile;
    else if (dim.part == runtime::PhysicalDim::Part::placeInTile)
      at %= dim.tile;
    place = place * sizes[i] + at;
  }
  return place;
}

/// SplitMix64 of Steele, Lea and Flood (OOPSLA 2014).
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The value after rounding to its storage type.
static double rounded(DType dtype, double value) {
#define SLUICE_GPU_CHECK_ROUND(name, number, type, ...)                                                                \
  case DType::name:                                                                                                    \
    return static_cast<double>(static_cast<type>(value));
  if (dtype == DType::boolean)
    return value != 0;
  switch (dtype) { SLUICE_FOR_EACH_DTYPE(SLUICE_GPU_CHECK_ROUND) }
#undef SLUICE_GPU_CHECK_ROUND
  return value;
}

DrawnElements::DrawnElements(size_t kernel, size_t operand, const PackedBuffer &buffer)
    : seed(mix(mix(kernel) + operand)), dtype(buffer.dtype), range(buffer.range) {}

double DrawnElements::operator[](int64_t index) const {
  double value = range.low + double(mix(seed + uint64_t(index)) >> 43) * 0x1p-21 * (range.high - range.low);
  return rounded(dtype, runtime::isFloat(dtype) ? value : std::floor(value));
}

int64_t sampleSize(int64_t elements) { return std::min(elements, kMostSampled); }

int64_t sampledElement(int64_t elements, int64_t number) {
  int64_t size = sampleSize(elements);
  if (size == elements)
    return number;
  if (number == 0 || number == size - 1)
    return number == 0 ? 0 : elements - 1;
  int64_t begin = number * elements / size, end = (number + 1) * elements / size;
  return begin + int64_t(mix(uint64_t(number)) % uint64_t(end - begin));
}

} // namespace sluice::gpu_check
