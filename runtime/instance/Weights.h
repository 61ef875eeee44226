// State files: weights with the names and layouts of PyTorch's state_dict, and all states for checkpoints.
#pragma once

#include "runtime/instance/Instance.h"
#include "runtime/io/TensorSource.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// Sets a state from a tensor of its shape and type, or of a narrower float type.
void loadState(Instance &instance, const State &state, const TensorSource &source);

/// Sets every parameter and statistic from `path`. A missing, misshapen or unknown tensor is an error. Other states of
/// the model, which checkpoints contain, are ignored. A tensor of any float type may fill a float state. Wider floats
/// are rounded to nearest; an element beyond the state's largest value is an error. A shared parameter may appear under
/// several of its names, with equal tensors. For GPT-2, files of transformers store c_attn, q_attn, c_proj and c_fc
/// transposed; the shapes of the non-square tensors reveal this. Weights in blocks are quantized. Returns a line for each
/// type that differs from the model's: "w.safetensors: 8 tensors of f64 are rounded to f32".
std::vector<std::string> loadWeights(Instance &instance, const std::string &path);

/// Writes every parameter and statistic to `path`; the f32 values of weights in blocks.
void saveWeights(const Instance &instance, const std::string &path);

/// Whether training keeps averages of parameters (optim::EMA).
bool hasAverages(const Plan &plan);

/// Like `saveWeights`, with averages in place of the parameters that have one. All shards must be collected
/// (Instance::collectShards).
void saveAverages(const Instance &instance, const std::string &path);

/// Fails if the tensors or metadata of a checkpoint do not match its checksum.
void checkWhole(const SafetensorsFile &file, const std::string &name);

/// Sets every state that checkpoints contain.
void loadStates(Instance &instance, const SafetensorsFile &file, const std::string &name);

/// Writes every state that checkpoints contain to `path`, with a checksum of the whole file.
void saveStates(const Instance &instance, const std::string &path, Metadata metadata);

} // namespace sluice::runtime
