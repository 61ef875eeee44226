// The language of Sluice's headers, which each of them includes first: an older one would end in errors of the headers.
#pragma once

#if __cplusplus < 202002L
#error "Sluice needs C++20: compile with -std=c++20 or a later standard"
#endif
