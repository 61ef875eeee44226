// Errors of exchanges, and helpers for their texts.
#pragma once

#include "sluice/backend/adapter/error.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace sluice::exchange {

using backend::Error;

/// "rank 3"
inline std::string rankText(int32_t rank) { return "rank " + std::to_string(rank); }

/// "rank 1 has", "ranks 1, 2 and 5 have"
inline std::string ranksHave(const std::vector<int32_t> &ranks) {
  if (ranks.size() == 1)
    return rankText(ranks.front()) + " has";
  std::string text = "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text + " have";
}

/// "10 s"
inline std::string secondsText(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

} // namespace sluice::exchange
