// Check of the C++ standard. Every header includes this file first, because an older standard would cause errors within
// the headers.
#pragma once

#if __cplusplus < 202002L
#error "Sluice needs C++20: compile with -std=c++20 or a later standard"
#endif
