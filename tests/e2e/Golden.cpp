#include "tests/e2e/Golden.h"
#include "tests/e2e/Portable.h"
#include <cmath>
#include <fstream>
#include <numeric>

namespace sluice::test {

using nlohmann::json;

static int64_t countOf(const std::vector<int64_t> &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<int64_t>());
}

static std::vector<double> widen(const std::vector<float> &values) { return {values.begin(), values.end()}; }

/// The index of element `place` after a matrix of this shape is transposed.
static int64_t transposedPlace(const std::vector<int64_t> &shape, int64_t place) {
  return place % shape[1] * shape[0] + place / shape[1];
}

static std::vector<double> transposed(const std::vector<int64_t> &shape, const std::vector<double> &values) {
  std::vector<double> result(values.size());
  for (size_t place = 0; place < values.size(); ++place)
    result[size_t(transposedPlace(shape, int64_t(place)))] = values[place];
  return result;
}

Golden::Golden(Network network)
    : net(std::move(network)),
      figures(json::parse(std::ifstream(std::string(SLUICE_TEST_DATA) + "/golden/" + net.figures + ".json"))) {
  for (const char *part : {"first_gradient", "final"})
    figures[part] = asInProgram(figures[part]);
  for (auto &[name, digest] : figures["first_gradient"].items())
    names.push_back(name);
  if (figures.contains("size"))
    std::fill(net.input.begin() + (isImage() ? 1 : 0), net.input.end(), figures["size"]);
}

/// Converts to the program's names and layouts; a renamed tensor includes the name under which it was recorded.
json Golden::asInProgram(const json &digests) const {
  json result = json::object();
  for (const auto &[recorded, digest] : digests.items()) {
    std::string name = recorded;
    for (const auto &[theirs, own] : net.renamed)
      if (size_t at = recorded.find(theirs); at != std::string::npos)
        name = recorded.substr(0, at) + own + recorded.substr(at + theirs.size());
    json &own = result[name] = digest;
    if (name == recorded)
      continue;
    own["recorded"] = recorded;
    std::vector<int64_t> shape = digest["shape"];
    if (shape.size() == 2)
      for (json &index : own["samples"]["index"])
        index = transposedPlace(shape, index);
  }
  return result;
}

std::string Golden::model() const {
  std::string size = figures.contains("size") && isImage() ? " --size " + figures["size"].dump() : "";
  std::string text =
      modelText(net.name, std::string(net.words.empty() ? "--input f32 " : "") + "--batch " + figures["batch"].dump() +
                              " --lr " + figures["optimizer"]["lr"].dump() + size + " " + net.arguments);
  for (const auto &[own, other] : net.replaced)
    text = replaced(text, own, other);
  return text;
}

std::string Golden::modelWithOptimizer() const {
  std::string text = model(), attribute = "#sluice.sgd<";
  size_t begin = text.find(attribute), end = text.find('>', begin);
  for (const char *setting : {"momentum", "dampening", "weight_decay"})
    attribute += setting + (" = " + json(double(figures["optimizer"][setting])).dump()) + " : f64, ";
  attribute += "nesterov = " + figures["optimizer"]["nesterov"].dump();
  return text.replace(begin, end - begin, attribute);
}

int64_t Golden::rows(int step) const {
  auto steps = figures.find("short_steps");
  return steps == figures.end() ? rows() : steps->value(std::to_string(step), rows());
}

// Noise; images also have a constant per quarter of each channel.
Values Golden::batch(int step) const {
  int64_t rows = this->rows(step);
  std::string key = net.name + "/batch" + std::to_string(step);
  if (!net.words.empty()) {
    auto words = [&](const std::string &what) {
      std::vector<int64_t> indices = portableIntegers(key + what, rows * countOf(net.input), net.classes);
      return std::vector<double>(indices.begin(), indices.end());
    };
    return {{net.words[0], words("/x")}, {net.words[1], words("/y")}};
  }
  std::vector<float> x = portableUniform(key + "/x", rows * countOf(net.input));
  if (isImage())
    addPatches(x, portableUniform(key + "/patch", rows * net.input[0] * 4, -1, 1));
  int64_t labels = net.labelsPixels ? net.input[1] * net.input[2] : 1;
  std::vector<int64_t> y = portableIntegers(key + "/y", rows * labels, net.classes);
  return {{"image", widen(x)}, {"label", {y.begin(), y.end()}}};
}

void Golden::addPatches(std::vector<float> &x, const std::vector<float> &patches) const {
  int64_t height = net.input[1], width = net.input[2];
  for (size_t plane = 0; plane < patches.size() / 4; ++plane)
    for (int64_t row = 0; row < height; ++row)
      for (int64_t column = 0; column < width; ++column)
        x[(plane * height + row) * width + column] +=
            patches[plane * 4 + row / (height / 2) * 2 + column / (width / 2)];
}

// Coupled weight decay is part of the initial momentum; the first moment is a fraction of the gradient without decay.
std::vector<double> Golden::firstGradient(const std::string &parameter, std::vector<double> kept) const {
  const json &optimizer = figures["optimizer"];
  if (isAdamW()) {
    for (double &element : kept)
      element /= 1 - double(optimizer["betas"][0]);
  } else if (double decay = optimizer["weight_decay"]; decay != 0) {
    std::vector<double> value = initial(parameter);
    for (size_t i = 0; i < kept.size(); ++i)
      kept[i] -= decay * value[i];
  }
  return kept;
}

static bool isEmbedding(const std::string &parameter) {
  return parameter.starts_with("embedding") || parameter.starts_with("wte") || parameter.starts_with("wpe");
}

// +-sqrt(3 / fan_in) for weights, 1 +- 0.1 for norm weights, +-0.1 for all others including embeddings.
std::vector<double> Golden::initial(const std::string &parameter) const {
  const json &digest = figures["first_gradient"][parameter];
  std::vector<int64_t> shape = digest["shape"];
  double centre = 0, spread = 0.1;
  if (shape.size() >= 2 && !isEmbedding(parameter))
    spread = std::sqrt(3.0 / (double(countOf(shape)) / double(shape[0])));
  else if (parameter.ends_with("weight") && !isEmbedding(parameter))
    centre = parameter.find(net.lastNorm) == std::string::npos ? 1 : 0.2;
  std::string key = net.name + "/" + digest.value("recorded", parameter);
  std::vector<double> values = widen(portableUniform(key, countOf(shape), centre - spread, centre + spread));
  return digest.contains("recorded") && shape.size() == 2 ? transposed(shape, values) : values;
}

} // namespace sluice::test
