// Helpers of the plan's parser: fields that are checked as they are read.
#pragma once

#include "runtime/base/Json.h"
#include "runtime/plan/Plan.h"

namespace sluice::runtime {

inline constexpr int64_t mostBytes = INT64_C(1) << 50;

/// An index into a list of `size` items.
size_t parseIndex(const JsonReader &json, size_t size);

/// The string in the field `key`; empty if absent or null.
std::string optionalText(const JsonReader &json, const char *key);

/// The fields `arena`, `offset` and `stride` of an object: a memory slot for `bytes` bytes in an arena of `plan`, which
/// must have its arenas and `inFlight`.
Slot parseSlot(const JsonReader &json, const Plan &plan, int64_t bytes);

/// A memory slot with the field `bytes`, without access.
Buffer parseBuffer(const JsonReader &json, const Plan &plan);

DType parseDType(const JsonReader &json);

/// The index of a string in `words`; fails if `words` does not contain it.
size_t parseWord(const JsonReader &json, std::span<const std::string_view> words);

template <typename Enum> Enum parseEnum(const JsonReader &json, std::span<const std::string_view> words) {
  return static_cast<Enum>(parseWord(json, words));
}
Shape parseShape(const JsonReader &json, DType type);

/// The field `layout` of a value of this shape; row-major if it is absent.
Layout parseLayout(const JsonReader &json, const Shape &shape);
/// The field `bytes`: at least the size of a tensor of this type.
int64_t parseTensorBytes(const JsonReader &json, const Shape &shape, DType type);

/// A collective in a queue of `plan`. The plan must already have its devices, arenas and queues.
Collective parseCollective(const JsonReader &json, const Plan &plan, const Queue &queue);

/// An entry of `plan`, which must already have all other lists and the earlier entries.
Entry parseEntry(const JsonReader &json, const Plan &plan);

/// Marks the plan's entries that are parts of others. Fails unless these entries have the inputs and outputs of their
/// parts.
void checkParts(const JsonReader &entries, Plan &plan);

/// Marks the plan's entries that are derivations. Fails unless each derived state has one derivation, and each entry that
/// reads it lists this derivation. The entries must have their actions.
void checkDerivations(const JsonReader &entries, const JsonReader &states, Plan &plan);

/// Fails on duplicate names in `list`.
void checkUnique(const JsonReader &where, const std::vector<std::string> &names);

template <typename Named> void checkUniqueNames(const JsonReader &where, const std::vector<Named> &list) {
  std::vector<std::string> names;
  for (const Named &item : list)
    names.push_back(item.name);
  checkUnique(where, names);
}

} // namespace sluice::runtime
