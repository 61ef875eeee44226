// Modules as functions of their states: init and apply of Flax, torch.func.functional_call.
//
//     Net net;                                             // the structure; its own arrays are not used
//     Array key = random::key(0);
//     nn::States states = nn::init(net, key, x);           // names and arrays
//     Array y = nn::apply(net, states, x);
#pragma once

#include "sluice/array/core.h"
#include "sluice/module.h"

#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace sluice::nn {

/// Names and arrays, as Module::state_dict.
using States = std::vector<std::pair<std::string, Array>>;

/// New initial values of all parameters and buffers of a whole model outside of a graph, from a key [2] of i32, on the
/// device of the key. x is an operand of forward, for the sizes of lazy layers. The arrays of the module do not change.
States init(Module &module, const Array &key, const Array &x,
            std::source_location where = std::source_location::current());
/// forward with these states, in the order and with the names of `init`. Neither they nor the arrays of the module change:
/// in training, buffers and random numbers of the next call are not returned. Gradients flow to the states (attach_grad).
/// Throws Error for other names, and for arrays that do not have the types of the states.
Array apply(Module &module, const States &states, const ArrayArg &x);

} // namespace sluice::nn
