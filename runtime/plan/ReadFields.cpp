#include "runtime/plan/ReadFields.h"

#include "runtime/base/Text.h"

#include <algorithm>

namespace sluice::runtime {

size_t parseIndex(const JsonReader &json, size_t size) {
  return static_cast<size_t>(json.integer(0, static_cast<int64_t>(size) - 1));
}

std::string optionalText(const JsonReader &json, const char *key) {
  return json.has(key) && !json.at(key).isNull() ? json.at(key).string() : std::string();
}

static int64_t parseAligned(const JsonReader &json, int64_t alignment) {
  int64_t value = json.integer();
  if (value < 0 || value % alignment != 0)
    json.fail(concat("is ", value, ", not a multiple of ", alignment));
  return value;
}

Slot parseSlot(const JsonReader &json, const Plan &plan, int64_t bytes) {
  JsonReader offset = json.at("offset");
  size_t arena = parseIndex(json.at("arena"), plan.arenas.size());
  Slot slot{arena, parseAligned(offset, plan.alignmentIn(arena)), 0};
  if (json.has("stride"))
    slot.stride = parseAligned(json.at("stride"), plan.alignmentIn(arena));
  if (slot.stride != 0 && slot.stride < bytes)
    json.at("stride").fail(concat("is ", slot.stride, ", but the buffer has ", bytes, " bytes"));
  int64_t room = plan.arenas[slot.arena].bytes;
  int64_t last = plan.inFlight - 1;
  bool fits = slot.offset <= room && slot.stride <= (room - slot.offset) / std::max<int64_t>(last, 1) &&
              bytes <= room - slot.offsetOf(last);
  if (!fits)
    offset.fail(concat(bytes, " bytes at ", slot.offset, slot.stride ? concat(" + ", last, " * ", slot.stride) : "",
                       " exceed the arena's ", room));
  return slot;
}

Buffer parseBuffer(const JsonReader &json, const Plan &plan) {
  Buffer buffer;
  buffer.bytes = json.at("bytes").integer(0, mostBytes);
  buffer.slot = parseSlot(json, plan, buffer.bytes);
  return buffer;
}

DType parseDType(const JsonReader &json) {
  std::string name = json.string();
  std::optional<DType> type = dtypeFromName(name);
  if (!type)
    json.fail(concat("unknown element type ", quote(name)));
  return *type;
}

/// "'a', 'b' or 'c'".
static std::string alternatives(std::span<const std::string_view> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += concat(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", quote(words[i]));
  return text;
}

size_t parseWord(const JsonReader &json, std::span<const std::string_view> words) {
  std::string text = json.string();
  auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end())
    json.fail(concat("is ", quote(text), ", not ", alternatives(words)));
  return static_cast<size_t>(found - words.begin());
}

Shape parseShape(const JsonReader &json, DType type) {
  Shape shape;
  for (const JsonReader &item : json.list())
    shape.push_back(item.integer(0, mostBytes));
  if (!checkedElements(shape, sizeOf(type)))
    json.fail(concat(shapeText(shape), " is too large"));
  return shape;
}

static PhysicalDim parsePhysicalDim(const JsonReader &json) {
  std::vector<JsonReader> fields = json.list();
  if (fields.size() != 1 && fields.size() != 3)
    json.fail(concat("has ", fields.size(), " fields, not 1 or 3"));
  PhysicalDim dim;
  dim.dim = static_cast<int>(fields[0].integer(0, INT32_MAX));
  if (fields.size() == 3) {
    std::string part = fields[1].string();
    if (part != "div" && part != "mod")
      fields[1].fail(concat("is ", quote(part), ", not 'div' or 'mod'"));
    dim.part = part == "div" ? PhysicalDim::Part::tileNumber : PhysicalDim::Part::placeInTile;
    dim.tile = fields[2].integer(1, INT32_MAX);
  }
  return dim;
}

Layout parseLayout(const JsonReader &json, const Shape &shape) {
  if (!json.has("layout") || json.at("layout").isNull())
    return {};
  Layout layout;
  for (const JsonReader &item : json.at("layout").list())
    layout.push_back(parsePhysicalDim(item));
  if (std::string error = layoutError(shape, layout); !error.empty())
    json.at("layout").fail(error);
  return layout;
}

int64_t parseTensorBytes(const JsonReader &json, const Shape &shape, DType type) {
  int64_t bytes = json.at("bytes").integer(0, mostBytes);
  std::optional<int64_t> elements = checkedElements(shape, sizeOf(type));
  int64_t needed = elements ? *elements * static_cast<int64_t>(sizeOf(type)) : mostBytes;
  if (bytes < needed)
    json.at("bytes").fail(concat("is ", bytes, ", but ", typeText(type, shape), " needs ", needed));
  return bytes;
}

void checkUnique(const JsonReader &where, const std::vector<std::string> &names) {
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    where.fail(concat(quote(*twice), " appears twice"));
}

} // namespace sluice::runtime
