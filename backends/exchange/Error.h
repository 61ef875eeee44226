// Errors inside a backend's run half; where its C tables begin they become a status and last_error.
#pragma once

#include "sluice/backend/status.h"

#include <cstdint>
#include <stdexcept>
#include <string>

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

} // namespace sluice::exchange
