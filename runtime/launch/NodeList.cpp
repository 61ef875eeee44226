#include "runtime/launch/NodeList.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

namespace sluice::runtime {

/// Characters of host names.
static bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

std::string firstNode(const std::string &list) {
  std::string name;
  size_t at = 0;
  while (at < list.size() && list[at] != ',') {
    if (list[at] == '[') { // the first number in the brackets ends at '-', ',' or ']'
      size_t close = list.find(']', at), end = list.find_first_of("-,]", at);
      if (close == std::string::npos || end == at + 1)
        failUsage(concat("the variable SLURM_STEP_NODELIST is ", quote(list),
                         ", expected a list of nodes such as node[1-4]"));
      name += list.substr(at + 1, end - at - 1);
      at = close + 1;
      continue;
    }
    name += list[at++];
  }
  for (char c : name)
    if (!isNameCharacter(c))
      name.clear();
  if (name.empty())
    failUsage(
        concat("the variable SLURM_STEP_NODELIST is ", quote(list), ", expected a list of nodes such as node[1-4]"));
  return name;
}

} // namespace sluice::runtime
