// Errors inside a backend's run half; where its C tables begin they become a status and last_error.
#pragma once

#include "sluice/backend/status.h"

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::exchange {

class Error : public std::runtime_error {
public:
  Error(sluice_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
  sluice_status status() const { return status_; }

private:
  sluice_status status_;
};

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
