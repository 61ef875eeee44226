// The compiler's passes and phases by name.
#pragma once

namespace sluice::tool {

/// Registers each pass as --sluice-<what it does>, and each phase as --sluice-phase-<name>, which runs that phase
/// alone.
void registerSluicePasses();

} // namespace sluice::tool
