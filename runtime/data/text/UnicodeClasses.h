// What kind of character a code point of Unicode is.
#pragma once

namespace sluice::runtime {

enum class CharacterClass { letter, number, space, other };

CharacterClass classOf(char32_t character);

} // namespace sluice::runtime
