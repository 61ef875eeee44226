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

Golden::Golden(Network network)
    : net(std::move(network)),
      figures(json::parse(std::ifstream(std::string(SLUICE_TEST_DATA) + "/golden/" + net.figures + ".json"))) {
  for (auto &[name, digest] : figures["first_gradient"].items())
    names.push_back(name);
  if (figures.contains("size"))
    std::fill(net.input.begin() + 1, net.input.end(), figures["size"]);
}

std::string Golden::model() const {
  std::string size = figures.contains("size") ? " --size " + figures["size"].dump() : "";
  std::string text = modelText(net.name, "--input f32 --batch " + figures["batch"].dump() + " --lr " +
                                             figures["optimizer"]["lr"].dump() + size);
  for (const auto &[number, smaller] : net.smaller)
    text = replaced(text, number, smaller);
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

// Noise, and for images a value for each quarter of each channel.
Values Golden::batch(int step) const {
  int64_t rows = this->rows(step);
  std::string key = net.name + "/batch" + std::to_string(step);
  if (net.hasWords) {
    auto words = [&](const std::string &what) {
      std::vector<int64_t> indices = portableIntegers(key + what, rows * countOf(net.input), net.classes);
      return std::vector<double>(indices.begin(), indices.end());
    };
    return {{"words", words("/x")}, {"next", words("/y")}};
  }
  std::vector<float> x = portableUniform(key + "/x", rows * countOf(net.input));
  if (net.input.size() == 3)
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

// +-sqrt(3 / fan_in) for weights, 1 +- 0.1 for those of norms, +-0.1 for the rest, embeddings too.
std::vector<double> Golden::initial(const std::string &parameter) const {
  std::vector<int64_t> shape = figures["first_gradient"][parameter]["shape"];
  double centre = 0, spread = 0.1;
  bool isEmbedding = parameter.starts_with("embedding");
  if (shape.size() >= 2 && !isEmbedding)
    spread = std::sqrt(3.0 / (double(countOf(shape)) / double(shape[0])));
  else if (parameter.ends_with("weight") && !isEmbedding)
    centre = parameter.find(net.lastNorm) == std::string::npos ? 1 : 0.2;
  return widen(portableUniform(net.name + "/" + parameter, countOf(shape), centre - spread, centre + spread));
}

} // namespace sluice::test
