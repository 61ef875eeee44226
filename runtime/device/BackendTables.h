// Whether the tables of a backend are what they must be.
#ifndef SLUICE_RUNTIME_BACKENDTABLES_H
#define SLUICE_RUNTIME_BACKENDTABLES_H

#include "sluice/backend/backend.h"

#include <string>

namespace sluice::runtime {

/// Why a backend cannot be used: another major version, a `struct_size` that its version does not have, a name that is
/// none, or a member that every backend must have and this one lacks. Empty if nothing is wrong.
std::string whyUnsound(const sluice_backend *backend);

} // namespace sluice::runtime

#endif
