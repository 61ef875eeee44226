#include "backends/exchange/Announcement.h"

#include "backends/exchange/Arithmetic.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace sluice::exchange {

static constexpr uint64_t kMagic = 0x31784543554c53; // "SLUCEx1"

/// FNV-1a
static uint64_t hashOf(const Signature &signature) {
  uint64_t hash = 0xcbf29ce484222325;
  auto add = [&hash](std::string_view bytes) {
    for (unsigned char byte : bytes)
      hash = (hash ^ byte) * 0x100000001b3;
  };
  add(signature.label);
  add({reinterpret_cast<const char *>(signature.counts.data()), signature.counts.size() * sizeof(size_t)});
  return hash;
}

void announce(const Signature &signature, uint64_t number, Announcement &announcement) {
  std::memset(&announcement, 0, offsetof(Announcement, data));
  announcement.magic = kMagic;
  announcement.number = number;
  announcement.kind = signature.kind;
  announcement.dtype = signature.dtype;
  announcement.reduction = signature.reduction;
  announcement.root = signature.root;
  announcement.hash = hashOf(signature);
  announcement.labelBytes = std::min(signature.label.size(), Announcement::kMostLabelBytes);
  std::copy_n(signature.label.data(), announcement.labelBytes, announcement.label);
  std::copy_n(signature.counts.begin(), std::min(signature.counts.size(), Announcement::kMostCounts),
              announcement.counts);
}

static bool isSound(const Announcement &told, size_t ranks) {
  return told.magic == kMagic && isKnown(told.kind) && isKnownReduction(told.reduction) && told.root >= 0 &&
         static_cast<size_t>(told.root) < ranks && told.labelBytes <= Announcement::kMostLabelBytes &&
         exchangedBytes(static_cast<sluice_dtype>(told.dtype)) > 0;
}

/// The part that an announcement describes. Its counts and its label may be truncated.
static Part partIn(const Announcement &told, size_t ranks) {
  Signature signature{static_cast<sluice_exchange_kind>(told.kind),
                      static_cast<sluice_dtype>(told.dtype),
                      static_cast<sluice_reduction>(told.reduction),
                      told.root,
                      std::vector<size_t>(ranks),
                      std::string(told.label, told.labelBytes)};
  std::copy_n(told.counts, std::min(ranks, Announcement::kMostCounts), signature.counts.begin());
  return {std::move(signature), nullptr, 0, nullptr, 0};
}

static bool isSame(const Announcement &one, const Announcement &other) {
  return std::memcmp(&one, &other, offsetof(Announcement, data)) == 0;
}

static void compareWithThoseBefore(size_t at, const std::vector<Announcement> &all,
                                   std::vector<std::optional<Part>> &before) {
  auto rank = static_cast<int32_t>(at);
  const Announcement &told = all[at], &first = all.front();
  if (!isSound(told, all.size()))
    throw Error(SLUICE_INVALID, rankText(rank) + " sent something other than an exchange");
  if (told.number != first.number)
    throw Error(SLUICE_INVALID, rankText(rank) + " comes to exchange " + std::to_string(told.number) +
                                    ", where rank 0 comes to exchange " + std::to_string(first.number));
  Part part = partIn(told, all.size());
  compare(rank, part, told.number, before);
  if (told.hash != first.hash)
    throw Error(SLUICE_INVALID, rankText(rank) + " differs from rank 0 in exchange " + std::to_string(told.number) +
                                    ", " + part.signature.text() +
                                    ": its label or counts differ beyond the compared prefix");
  before.emplace_back(std::move(part));
}

void compareAll(const std::vector<Announcement> &all) {
  bool isSound = std::all_of(all.begin(), all.end(), [&](const Announcement &one) { return isSame(one, all.front()); });
  if (isSound)
    return;
  std::vector<std::optional<Part>> before;
  for (size_t rank = 0; rank < all.size(); ++rank)
    compareWithThoseBefore(rank, all, before);
}

} // namespace sluice::exchange
