// Unicode character classes of code points.
#pragma once

namespace sluice::runtime {

enum class CharacterClass { letter, number, space, other };

CharacterClass classOf(char32_t character);

} // namespace sluice::runtime
