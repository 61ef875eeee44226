// What tests of the frontend look at besides values.
#pragma once

#include <sluice/sluice.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace sluice::test {

/// The message of the error that `use` ends in.
inline std::string messageOf(const std::function<void()> &use) {
  try {
    use();
  } catch (const Error &error) {
    return error.message();
  }
  return "no error";
}

} // namespace sluice::test
