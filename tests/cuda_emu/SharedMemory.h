// Static shared memory of kernels, which is static memory in code for the host.
#pragma once

#include <map>
#include <string>

namespace sluice::test {

/// Of a shared object made by `compileForHost`: the bytes of `__shared__` variables in each function, by its demangled name. A
/// kernel that calls such a function has no others.
std::map<std::string, size_t> sharedBytes(const std::string &object);

} // namespace sluice::test
