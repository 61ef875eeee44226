// Helpers for frontend tests.
#pragma once

#include <sluice/sluice.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace sluice::test {

/// The message of the error that `use` throws.
inline std::string messageOf(const std::function<void()> &use) {
  try {
    use();
  } catch (const Error &error) {
    return error.message();
  }
  return "no error";
}

} // namespace sluice::test
