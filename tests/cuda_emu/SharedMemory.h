// The shared memory that a compiler knows of, which is a block's in code for a device and static memory in that for the host.
#pragma once

#include <map>
#include <string>

namespace sluice::test {

/// Of a shared object made by `compileForHost`: the bytes of `__shared__` variables in each function, by its demangled name. A
/// kernel that calls such a function has no others.
std::map<std::string, size_t> sharedBytes(const std::string &object);

} // namespace sluice::test
