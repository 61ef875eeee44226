// Compiles models, runs them and writes the results, one line of JSON each, for torch_test.py to compare:
//   torch_cases random DTYPE MOST PINNED SEED...    graphs of up to MOST ops of all families; seeds divisible by PINNED
//                                                   also run on virtual accelerators with random pins
//   torch_cases convolutions f32|f64 SPEC...        all in one model; a spec is stride,dilation,padding,kernel
//                                                   along the height, the same along the width, groups
//   torch_cases losses f32|f64 FORM...              losses with all options, for logits of this form (LossModel.h)
//   torch_cases functions f32|f64                   functions composed of other functions (FunctionModel.h)
//   torch_cases special DTYPE                       ops at singular and other special points (SpecialPoints.h)
//   torch_cases autocast DTYPE NETWORK...           mlp, lenet and small_resnet in bf16 or f16 from weights in f32
//   torch_cases optimizers DTYPE NAME RECIPE ...    a network trained by each recipe, on the host and on virtual
//                                                   accelerators
//   torch_cases recurrent f32|f64                   RNN, LSTM and GRU, with the arguments of their layers
//   torch_cases attention f32|f64                   attention with all options, and its layer
//   torch_cases draws DEVICES                       random numbers of several keys (DrawModel.h)
//   torch_cases programs small|full FOLDER NAME...  programs of models/ in f64, with states in files in the folder
//   torch_cases text f32|f64 MOST SEED              a random graph's model, for inspection
//   torch_cases ops                                 the names of all computing ops
#include "ir/Dialect.h"
#include "runtime/instance/Weights.h"
#include "sluice/sluice.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/RandomGraph.h"
#include "tests/e2e/devices/SmallResNet.h"
#include "tests/e2e/torch/DrawModel.h"
#include "tests/e2e/torch/FunctionModel.h"
#include "tests/e2e/torch/LossModel.h"
#include "tests/e2e/torch/MixedGraph.h"
#include "tests/e2e/torch/ModelJson.h"
#include "tests/e2e/torch/OptimizerCase.h"
#include "tests/e2e/torch/SpecialPoints.h"
#include <algorithm>
#include <iostream>
#include <sstream>

using namespace sluice;
using namespace sluice::test;
using nlohmann::json;

namespace {

constexpr int64_t kBatch = 4;

/// Runs `predict` and a training step that keeps gradients in momentum buffers, and writes the case.
void runCase(const std::string &name, const std::string &text, const std::string &compiledText, const Values &inputs,
             int64_t rows, sluice::CompileOptions options = {}, json more = json::object()) {
  Compiled program(compiledText, std::move(options), {.sim = "seed=7"});
  program.init(1 + fnv1a64(name) % 1000);
  json model = modelJson(text), result{{"name", name}, {"rows", rows}, {"inputs", inputs}};
  auto states = [&] {
    json all;
    for (const runtime::State &state : program.plan().states)
      all[state.name] = program.state(state.name);
    return all;
  };
  result["before"] = states();
  result["predicted"] = program.run("predict", inputs, rows);
  result["trained"] = program.run("train_step", inputs, rows);
  result["after"] = states();
  result["model"] = std::move(model);
  result.update(more);
  std::cout << result.dump() << std::endl;
}

template <typename Body> void guarded(const std::string &name, Body body) {
  try {
    body();
  } catch (const std::exception &error) {
    std::cout << json{{"name", name}, {"error", error.what()}}.dump() << std::endl;
  }
}

Values mixedInputs(const std::string &key, int64_t rows) {
  int64_t elements = rows;
  for (int64_t size : kMixedImage)
    elements *= size;
  std::vector<float> image = portableUniform(key, size_t(elements), -1.5, 1.5);
  std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(rows), kMixedClasses);
  return {{"image", {image.begin(), image.end()}}, {"label", {labels.begin(), labels.end()}}};
}

DType dtypeOf(const std::string &name) {
  for (DType dtype : {f16, bf16, f32, f64})
    if (name == to_string(dtype))
      return dtype;
  throw std::runtime_error("no float: " + name);
}

void runRandom(DType dtype, uint32_t most, uint32_t pinned, uint32_t seed) {
  std::string name = "random " + std::to_string(seed) + " " + to_string(dtype);
  guarded(name, [&] {
    int64_t rows = seed % 3 ? kBatch : kBatch - 1;
    std::string text = mixedGraph(seed, dtype, kBatch, most);
    Values inputs = mixedInputs(name, rows);
    runCase(name, text, text, inputs, rows);
    if (seed % pinned == 0)
      runCase(name + " pinned", text, randomlyPinned(text, "cpu,sim:0,sim:1", seed), inputs, rows);
  });
}

struct Spec {
  struct Axis {
    int64_t stride, dilation, padding, kernel, size;
  };
  Axis height, width;
  int64_t groups;
};

Spec::Axis axisOf(const int64_t *numbers, int64_t least) {
  Spec::Axis axis{numbers[0], numbers[1], numbers[2], numbers[3], 0};
  // At least two windows, and an element outside all windows.
  int64_t window = (axis.kernel - 1) * axis.dilation + 1;
  axis.size = std::max(least, window + axis.stride + (axis.stride > 1) - 2 * axis.padding);
  return axis;
}

Spec parseSpec(const std::string &text) {
  std::vector<int64_t> numbers;
  std::stringstream stream(text);
  for (std::string number; std::getline(stream, number, ',');)
    numbers.push_back(std::stoll(number));
  if (numbers.size() != 9)
    throw std::runtime_error("a spec has nine numbers: " + text);
  return {axisOf(numbers.data(), 7), axisOf(numbers.data() + 4, 6), numbers[8]};
}

struct ConvolutionModel {
  std::string text;
  Values inputs;
};

/// All convolutions in one model; the loss weights every element of a result differently.
ConvolutionModel convolutions(const std::vector<std::string> &specs, DType dtype) {
  ConvolutionModel model;
  Graph graph("convolutions");
  graph.set_capacity(kBatch);
  graph.set_dtype(dtype);
  nn::Module net(graph);
  Tensor loss;
  for (const std::string &text : specs) {
    auto [h, w, groups] = parseSpec(text);
    std::string name = "_" + text;
    std::replace(name.begin(), name.end(), ',', '_');
    uint64_t variety = fnv1a64(text);
    int64_t channels = groups * int64_t(1 + variety % 3), outputs = groups * int64_t(1 + variety / 3 % 5);
    Tensor scale = net.parameter("scale" + name, {channels, h.size, w.size}, init::uniform(0.5, 1.5));
    Tensor weight =
        net.parameter("weight" + name, {outputs, channels / groups, h.kernel, w.kernel}, init::uniform(-1, 1));
    Tensor x = graph.input("x" + name, dtype, {Dim{"batch"}, channels, h.size, w.size});
    Tensor y = conv2d(x * scale, weight, {},
                      {.stride = {h.stride, w.stride},
                       .padding = {h.padding, w.padding},
                       .dilation = {h.dilation, w.dilation},
                       .groups = groups});
    graph.output("y" + name, y);
    loss = loss ? loss + square(y).mean() : square(y).mean();
    std::vector<float> values = portableUniform(text, size_t(kBatch * channels * h.size * w.size), -1, 1);
    model.inputs["x" + name] = {values.begin(), values.end()};
  }
  graph.minimize(loss, optim::SGD{.lr = 0, .momentum = 0.9});
  model.text = graph.str();
  return model;
}

void runConvolutions(DType dtype, const std::vector<std::string> &specs) {
  std::string name = "convolutions " + specs.at(0) + " " + to_string(dtype);
  guarded(name, [&] {
    ConvolutionModel model = convolutions(specs, dtype);
    runCase(name, model.text, model.text, model.inputs, kBatch);
  });
}

void runLosses(DType dtype, const std::string &form) {
  std::string name = "losses of " + form + " " + to_string(dtype);
  constexpr int64_t kRows = 11;
  guarded(name, [&] {
    LossModel model(form, dtype, kRows);
    runCase(name, model.text, model.text, model.inputs, kRows, {}, {{"losses", model.losses}});
  });
}

void runFunctions(DType dtype) {
  std::string name = std::string("functions ") + to_string(dtype);
  constexpr int64_t kRows = 3;
  guarded(name, [&] {
    FunctionModel model(dtype, kRows);
    runCase(name, model.text, model.text, model.inputs, kRows, {}, {{"functions", model.functions}});
  });
}

/// A network whose optimizer keeps momentum, in mixed precision.
void runAutocast(DType dtype, const std::string &network) {
  constexpr int64_t kRows = 16;
  std::string name = network + " " + to_string(dtype);
  guarded(name, [&] {
    bool isResNet = network == "small_resnet";
    std::string text = isResNet ? smallResNet("cpu", kRows) : modelText(network, "--input f32 --batch 16");
    if (network == "lenet")
      text = replaced(text, "momentum = 0.000000e+00", "momentum = 9.000000e-01");
    int64_t pixels = isResNet ? kSmallResNetChannels * kSmallResNetSide * kSmallResNetSide : 28 * 28;
    std::vector<float> image = portableUniform("autocast/" + network, size_t(kRows * pixels), -1, 1);
    std::vector<int64_t> labels = portableIntegers("autocast/label/" + network, size_t(kRows), kSmallResNetClasses);
    sluice::CompileOptions options;
    options.precision = dtype;
    runCase(name, text, text, {{"image", {image.begin(), image.end()}}, {"label", {labels.begin(), labels.end()}}},
            kRows, std::move(options));
  });
}

void runTraining(const std::string &name, const OptimizerCase &training, const std::string &compiledText) {
  Compiled program(compiledText, {}, {.sim = "seed=7"});
  program.init(1);
  auto states = [&] {
    json all;
    for (const runtime::State &state : program.plan().states)
      all[state.name] = program.state(state.name);
    return all;
  };
  json result{{"name", name}, {"model", modelJson(training.text)}, {"rows", training.rows}, {"steps", training.steps}};
  result["before"] = states();
  result["losses"] = json::array();
  for (size_t step = 0; step < training.steps.size(); ++step)
    result["losses"].push_back(program.run("train_step", training.steps[step], training.rows[step]).at("loss")[0]);
  result["after"] = states();
  std::cout << result.dump() << std::endl;
}

void runOptimizer(DType dtype, const std::string &name, const std::string &recipe) {
  guarded(name, [&] {
    OptimizerCase training(json::parse(recipe), dtype);
    runTraining(name, training, training.text);
    runTraining(name, training, randomlyPinned(training.text, "cpu,sim:0,sim:1", uint32_t(fnv1a64(name))));
  });
}

/// The arguments of a recurrent layer, shared with torch.nn.
struct RecurrentCase {
  std::string layer;
  int64_t layers;
  bool bias, batchFirst;
  std::string nonlinearity = "tanh";
  bool bidirectional = false;
};

std::unique_ptr<nn::Recurrent> makeRecurrent(const RecurrentCase &spec, nn::Module &parent, int64_t features,
                                             int64_t hidden) {
  nn::RecurrentOptions options{.num_layers = spec.layers,
                               .bias = spec.bias,
                               .batch_first = spec.batchFirst,
                               .bidirectional = spec.bidirectional};
  if (spec.layer == "LSTM")
    return std::make_unique<nn::LSTM>(&parent, "layer", features, hidden, options);
  if (spec.layer == "GRU")
    return std::make_unique<nn::GRU>(&parent, "layer", features, hidden, options);
  nn::Nonlinearity nonlinearity = spec.nonlinearity == "relu" ? nn::Nonlinearity::relu : nn::Nonlinearity::tanh;
  return std::make_unique<nn::RNN>(&parent, "layer", features, hidden,
                                   nn::RNNOptions{.num_layers = spec.layers,
                                                  .nonlinearity = nonlinearity,
                                                  .bias = spec.bias,
                                                  .batch_first = spec.batchFirst,
                                                  .bidirectional = spec.bidirectional});
}

/// All results of a layer, and a loss that weights every element differently.
void runRecurrent(DType dtype, const RecurrentCase &spec) {
  constexpr int64_t kRows = 3, kSteps = 6, kFeatures = 5, kHidden = 4;
  std::string name = spec.layer + " " + std::to_string(spec.layers) + (spec.bias ? " bias" : "") +
                     (spec.batchFirst ? " batch_first " : " ") + (spec.bidirectional ? "both ways " : "") +
                     spec.nonlinearity + " " + to_string(dtype);
  guarded(name, [&] {
    Graph graph("recurrent");
    graph.set_capacity(kBatch);
    graph.set_dtype(dtype);
    nn::Module net(graph);
    Shape shape = spec.batchFirst ? Shape{Dim{"batch"}, kSteps, kFeatures} : Shape{kSteps, Dim{"batch"}, kFeatures};
    Tensor x = graph.input("x", dtype, shape);
    std::unique_ptr<nn::Recurrent> layer = makeRecurrent(spec, net, kFeatures, kHidden);
    std::map<std::string, Tensor> results{{"y", (*layer)(x)}, {"h_n", layer->h_n}};
    if (auto *lstm = dynamic_cast<nn::LSTM *>(layer.get()))
      results["c_n"] = lstm->c_n;
    Tensor loss;
    for (auto &[result, value] : results) {
      graph.output(result, value);
      loss = loss ? loss + square(value + 0.5).sum() : square(value + 0.5).sum();
    }
    graph.minimize(loss, optim::SGD{.lr = 0, .momentum = 0.9});
    Compiled program(graph.str());
    program.init(1 + fnv1a64(name) % 1000);
    std::vector<float> values = portableUniform(name, size_t(kRows * kSteps * kFeatures), -1, 1);
    Values inputs{{"x", {values.begin(), values.end()}}};
    json result{{"name", name}, {"layer", spec.layer}, {"rows", kRows}, {"steps", kSteps}, {"inputs", inputs}};
    result["arguments"] = {{"input_size", kFeatures},        {"hidden_size", kHidden},
                           {"num_layers", spec.layers},      {"bias", spec.bias},
                           {"batch_first", spec.batchFirst}, {"bidirectional", spec.bidirectional}};
    if (spec.layer == "RNN")
      result["arguments"]["nonlinearity"] = spec.nonlinearity;
    for (const auto &[parameter, tensor] : net.named_parameters())
      result["before"][parameter] = program.state(parameter);
    result["predicted"] = program.run("predict", inputs, kRows);
    result["trained"] = program.run("train_step", inputs, kRows);
    for (const auto &[parameter, tensor] : net.named_parameters())
      result["gradients"][parameter] = program.state(parameter + ".momentum_buffer");
    std::cout << result.dump() << std::endl;
  });
}

void runRecurrent(DType dtype) {
  for (const char *layer : {"RNN", "LSTM", "GRU"})
    for (auto [layers, bias, batchFirst] : {std::tuple(1, true, false), {2, true, true}, {3, false, false}})
      runRecurrent(dtype, {layer, layers, bias, batchFirst});
  runRecurrent(dtype, {"RNN", 2, true, true, "relu"});
  for (const char *layer : {"RNN", "LSTM", "GRU"})
    runRecurrent(dtype, {layer, 2, true, false, "tanh", /*bidirectional=*/true});
}

/// Random values of a case, keyed by its name.
std::vector<double> drawn(const std::string &name, int64_t count, float low = -1, float high = 1) {
  std::vector<float> values = portableUniform(name, size_t(count), low, high);
  return {values.begin(), values.end()};
}

/// Attention after projections, so that all its operands have gradients, including a mask.
struct AttentionCase {
  std::string name;
  int64_t headsOfKeys, queries, keys;
  Shape mask;             ///< empty: no mask
  std::string kindOfMask; ///< "", "bool", "input" or "parameter"
  bool causal = false;
  std::optional<double> scale = {};
};

Tensor maskOf(Graph &graph, nn::Module &net, const AttentionCase &spec, DType dtype) {
  if (spec.kindOfMask.empty())
    return {};
  if (spec.kindOfMask == "parameter")
    return net.parameter("mask", spec.mask, init::uniform(-1, 1));
  Tensor mask = graph.input("mask", spec.kindOfMask == "bool" ? u8 : dtype, spec.mask);
  return spec.kindOfMask == "bool" ? ne(mask, 0) : mask;
}

void runAttention(DType dtype, const AttentionCase &spec) {
  constexpr int64_t kRows = 3, kHeads = 4, kWidth = 6, kDepth = 5, kValues = 3;
  std::string name = "attention " + spec.name + " " + to_string(dtype);
  guarded(name, [&] {
    Graph graph("attention");
    graph.set_capacity(kBatch);
    graph.set_dtype(dtype);
    nn::Module net(graph);
    auto operand = [&](const std::string &of, int64_t heads, int64_t items, int64_t depth) {
      Tensor x = graph.input(of, dtype, {Dim{"batch"}, heads, items, kWidth});
      return matmul(x, net.parameter("w" + of, {kWidth, depth}, init::uniform(-1, 1)));
    };
    Tensor q = operand("q", kHeads, spec.queries, kDepth), k = operand("k", spec.headsOfKeys, spec.keys, kDepth),
           v = operand("v", spec.headsOfKeys, spec.keys, kValues), mask = maskOf(graph, net, spec, dtype);
    Tensor y =
        scaled_dot_product_attention(q, k, v, {.attn_mask = mask, .is_causal = spec.causal, .scale = spec.scale});
    graph.output("y", y);
    graph.minimize(square(y + 0.5).sum(), optim::SGD{.lr = 0, .momentum = 0.9});
    Values inputs{{"q", drawn(name + "q", kRows * kHeads * spec.queries * kWidth)},
                  {"k", drawn(name + "k", kRows * spec.headsOfKeys * spec.keys * kWidth)},
                  {"v", drawn(name + "v", kRows * spec.headsOfKeys * spec.keys * kWidth)}};
    if (spec.kindOfMask == "bool" || spec.kindOfMask == "input") {
      int64_t elements = 1;
      for (const Dim &dim : spec.mask)
        elements *= dim.symbolic() ? kRows : dim.size;
      inputs["mask"] = drawn(name + "mask", elements);
      if (spec.kindOfMask == "bool")
        for (double &element : inputs["mask"])
          element = element > -0.3;
    }
    std::string text = graph.str();
    runCase(name, text, text, inputs, kRows, {},
            {{"heads", {kHeads, spec.headsOfKeys}}, {"items", {spec.queries, spec.keys}}});
    runCase(name + " on sim", text, randomlyPinned(text, "cpu,sim:0", uint32_t(fnv1a64(name))), inputs, kRows);
  });
}

void runAttention(DType dtype) {
  Dim rows{"batch"};
  for (const AttentionCase &spec :
       std::vector<AttentionCase>{{"plain", 4, 7, 9, {}, ""},
                                  {"long", 4, 80, 140, {}, ""},
                                  {"causal", 4, 70, 70, {}, "", true},
                                  {"causal of fewer keys", 4, 20, 9, {}, "", true},
                                  {"two heads of keys", 2, 7, 9, {}, "", true, 0.3},
                                  {"one head of keys", 1, 7, 70, {}, "", false, -1.5},
                                  {"bool mask", 4, 7, 9, {rows, 1, 7, 9}, "bool"},
                                  {"padding", 2, 7, 9, {rows, 1, 1, 9}, "bool", true},
                                  {"added mask", 4, 70, 70, {70, 70}, "input"},
                                  {"mask of heads", 4, 7, 9, {4, 1, 9}, "parameter"},
                                  {"mask of queries", 2, 7, 9, {4, 7, 1}, "parameter", true},
                                  {"mask of all", 1, 7, 9, {4, 7, 9}, "parameter"}})
    runAttention(dtype, spec);
}

/// The layer with torch.nn's kinds of masks.
void runMultihead(DType dtype, const std::string &kind, bool bias, bool batchFirst) {
  constexpr int64_t kRows = 3, kItems = 7, kKeys = 5, kWidth = 8, kHeads = 2;
  bool isCross = kind == "cross", isCausal = kind == "causal";
  std::string name =
      "multihead " + kind + (bias ? " bias" : "") + (batchFirst ? " batch_first " : " ") + to_string(dtype);
  guarded(name, [&] {
    Graph graph("multihead");
    graph.set_capacity(kBatch);
    graph.set_dtype(dtype);
    nn::Module net(graph);
    auto input = [&](const std::string &of, int64_t items) {
      return graph.input(of, dtype,
                         batchFirst ? Shape{Dim{"batch"}, items, kWidth} : Shape{items, Dim{"batch"}, kWidth});
    };
    nn::MultiheadAttention layer(&net, "layer", kWidth, kHeads,
                                 {.bias = bias, .batch_first = batchFirst, .is_causal = isCausal});
    int64_t keys = isCross ? kKeys : kItems;
    Values inputs{{"x", drawn(name + "x", kRows * kItems * kWidth)}};
    nn::AttentionMasks masks;
    if (kind == "padding" || kind == "both") {
      masks.key_padding_mask = ne(graph.input("padding", u8, {Dim{"batch"}, keys}), 0);
      for (double value : drawn(name + "padding", kRows * keys))
        inputs["padding"].push_back(value > 0.4);
    }
    if (kind == "added" || kind == "both") {
      masks.attn_mask = graph.input("added", dtype, {kItems, keys});
      inputs["added"] = drawn(name + "added", kItems * keys);
    }
    Tensor x = input("x", kItems), y;
    if (isCross) {
      inputs["keys"] = drawn(name + "keys", kRows * kKeys * kWidth);
      inputs["values"] = drawn(name + "values", kRows * kKeys * kWidth);
      y = layer(x, input("keys", kKeys), input("values", kKeys));
    } else {
      y = layer(x, masks);
    }
    graph.output("y", y);
    graph.minimize(square(y + 0.5).sum(), optim::SGD{.lr = 0, .momentum = 0.9});
    std::string text = graph.str();
    runCase(
        name, text, text, inputs, kRows, {},
        {{"kind", kind},
         {"items", {kItems, keys}},
         {"arguments", {{"embed_dim", kWidth}, {"num_heads", kHeads}, {"bias", bias}, {"batch_first", batchFirst}}}});
  });
}

void runMultihead(DType dtype) {
  for (const char *kind : {"plain", "cross", "causal", "padding", "added", "both"})
    runMultihead(dtype, kind, /*bias=*/std::string(kind) != "plain", /*batchFirst=*/std::string(kind) != "cross");
}

/// The size of a program of models/ in the comparison with PyTorch: small or full.
struct ProgramCase {
  std::string program, arguments;
  int64_t rows;
  Values inputs;
};

/// Replaces ones and zeros by random numbers, so that errors in their use are detected.
void blurParameters(const std::string &key, Compiled &model) {
  for (const runtime::State &state : model.plan().states) {
    if (state.kind != runtime::StateKind::parameter)
      continue;
    std::vector<double> values = model.state(state.name);
    std::vector<double> noise = drawn(key + state.name, int64_t(values.size()), -0.1F, 0.1F);
    std::ranges::transform(values, noise, values.begin(), std::plus<>());
    model.setState(state.name, values);
  }
}

/// In double precision: predictions, loss, and two files with the states before and after a training step. The
/// optimizer's states contain the first gradients.
void runProgram(const std::string &folder, const ProgramCase &spec) {
  guarded(spec.program, [&] {
    std::string text = modelText(spec.program, spec.arguments);
    if (spec.program == "gpt2")
      text = replaced(text, "{p = 1.000000e-01 : f64", "{p = 0.000000e+00 : f64");
    sluice::CompileOptions options;
    options.dtype = sluice::f64;
    Compiled model(text, options);
    model.init(5);
    blurParameters(spec.program, model);
    json result{{"name", spec.program}, {"rows", spec.rows}, {"inputs", spec.inputs}};
    auto save = [&](const std::string &when) {
      result[when] = folder + "/" + spec.program + "." + when + ".safetensors";
      runtime::saveStates(model.program(), result[when], {});
    };
    save("before");
    result["predicted"] = model.run("predict", spec.inputs, spec.rows);
    result["loss"] = model.run("train_step", spec.inputs, spec.rows).at("loss")[0];
    save("after");
    std::cout << result.dump() << std::endl;
  });
}

std::vector<double> integers(const std::string &key, int64_t count, int64_t limit) {
  std::vector<int64_t> values = portableIntegers(key, size_t(count), uint64_t(limit));
  return {values.begin(), values.end()};
}

/// A batch of images or words for a program; the last words of BERT's rows are padding.
Values inputsFor(const std::string &program, int64_t rows, int64_t length, int64_t words) {
  std::string label = program + "/label";
  if (program == "gpt2")
    return {{"tokens", integers(program, rows * length, words)}, {"label", integers(label, rows * length, words)}};
  if (program != "bert_base")
    return {{"image", drawn(program, rows * 3 * 224 * 224)}, {"label", integers(label, rows, 1000)}};
  std::vector<double> present(size_t(rows * length), 1);
  std::fill(present.end() - 4, present.end(), 0);
  return {{"input_ids", integers(program, rows * length, words)},
          {"token_type_ids", integers(program + "/type", rows * length, 2)},
          {"attention_mask", present},
          {"label", integers(label, rows, 2)}};
}

void runPrograms(bool isSmall, const std::string &folder, const std::vector<std::string> &programs) {
  int64_t rows = isSmall ? 2 : 1, length = isSmall ? 11 : 32;
  for (const std::string &program : programs) {
    bool hasWords = program == "gpt2" || program == "bert_base";
    int64_t words = isSmall ? 60 : program == "gpt2" ? 50257 : 30522;
    std::ostringstream arguments;
    arguments << "--batch " << rows << (hasWords ? "" : " --input f32");
    if (isSmall)
      arguments << " --layers 2 --width 128";
    if (hasWords)
      arguments << " --length " << length << " --words " << words;
    runProgram(folder, {program, arguments.str(), rows, inputsFor(program, rows, length, words)});
  }
}

void runDraws(const std::string &devices) {
  guarded("draws", [&] {
    DrawModel model(devices);
    Compiled program(model.text);
    for (auto [high, low] : kDrawKeys) {
      Values values = program.run("predict", {{"key", {double(high), double(low)}}}, 1);
      std::cout << json{{"key", {high, low}}, {"draws", model.draws}, {"values", values}}.dump() << std::endl;
    }
  });
}

void printOps() {
  mlir::MLIRContext context;
  context.loadDialect<ir::SluiceDialect>();
  for (mlir::RegisteredOperationName op : context.getRegisteredOperations())
    if (op.getDialectNamespace() == "sluice" && op.hasInterface<ir::ReferenceOp>())
      std::cout << op.stripDialect().str() << "\n";
}

uint32_t number(const std::string &text) { return uint32_t(std::stoul(text)); }

int run(const std::string &kind, const std::vector<std::string> &arguments) {
  if (kind == "ops") {
    printOps();
    return 0;
  }
  if (kind == "programs") {
    runPrograms(arguments.at(0) == "small", arguments.at(1), {arguments.begin() + 2, arguments.end()});
    return 0;
  }
  if (kind == "draws") {
    runDraws(arguments.at(0));
    return 0;
  }
  DType dtype = dtypeOf(arguments.at(0));
  if (kind == "text")
    std::cout << mixedGraph(number(arguments.at(2)), dtype, kBatch, number(arguments.at(1)));
  else if (kind == "functions")
    runFunctions(dtype);
  else if (kind == "special")
    std::cout << json{{"dtype", to_string(dtype)}, {"points", specialPoints(dtype)}}.dump() << std::endl;
  else if (kind == "autocast")
    std::for_each(arguments.begin() + 1, arguments.end(), [&](const std::string &net) { runAutocast(dtype, net); });
  else if (kind == "recurrent")
    runRecurrent(dtype);
  else if (kind == "attention")
    runAttention(dtype), runMultihead(dtype);
  else if (kind == "convolutions")
    runConvolutions(dtype, {arguments.begin() + 1, arguments.end()});
  else if (kind == "losses")
    std::for_each(arguments.begin() + 1, arguments.end(), [&](const std::string &form) { runLosses(dtype, form); });
  else if (kind == "optimizers")
    for (size_t i = 1; i + 1 < arguments.size(); i += 2)
      runOptimizer(dtype, arguments[i], arguments[i + 1]);
  else if (kind == "random")
    for (size_t i = 3; i < arguments.size(); ++i)
      runRandom(dtype, number(arguments[1]), number(arguments[2]), number(arguments[i]));
  else
    return 2;
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  return run(argv[1], {argv + 2, argv + argc});
}
