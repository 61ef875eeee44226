// States in files: weights as PyTorch's state_dict names and lays them out, and every state for a checkpoint.
#pragma once

#include "runtime/instance/Instance.h"
#include "runtime/io/TensorSource.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// Sets a state from a tensor of its shape and type, or from narrower floats.
void loadState(Instance &instance, const State &state, const TensorSource &source);

/// Sets every parameter and statistic from `path`. A missing, misshapen or unknown tensor is an error; other states of
/// the model, which checkpoints hold, are ignored. A tensor of any float type may fill a float state. Wider floats are
/// rounded to nearest; an element beyond the state's largest value is an error. A parameter that modules share may have
/// several of its names, with equal tensors. For GPT-2, files of transformers store c_attn, q_attn, c_proj and c_fc
/// transposed. The tensors that are not square reveal this.
/// Returns a line for each type that differs from the model's: "w.safetensors: 8 tensors of f64 are rounded to f32".
std::vector<std::string> loadWeights(Instance &instance, const std::string &path);

/// Writes every parameter and statistic to `path`.
void saveWeights(const Instance &instance, const std::string &path);

/// Whether training keeps averages of parameters (optim::EMA).
bool hasAverages(const Plan &plan);

/// As `saveWeights`, with averages in place of the parameters that have one. All shards are here (Instance::collectShards).
void saveAverages(const Instance &instance, const std::string &path);

/// Fails if a checkpoint is not what was written, whether in its tensors or in what it says beside them.
void checkWhole(const SafetensorsFile &file, const std::string &name);

/// Sets every state that checkpoints hold.
void loadStates(Instance &instance, const SafetensorsFile &file, const std::string &name);

/// Writes every state that is kept to `path`, with a checksum of everything that is written.
void saveStates(const Instance &instance, const std::string &path, Metadata metadata);

} // namespace sluice::runtime
