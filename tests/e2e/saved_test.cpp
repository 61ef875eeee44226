// Gradients through values that an earlier program has computed: the same bits as those of one program that computes
// everything, without the forward pass.
#include "frontend/graph/Gradient.h"
#include "sluice/sluice.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"

#include <functional>
#include <gmock/gmock.h>

using namespace sluice::test;
using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;

namespace {

/// Receives each value of the network, and returns the value that its consumers read.
using Seen = std::function<sluice::Tensor(const std::string &, sluice::Tensor)>;

const std::vector<std::string> kLeaves{"image", "filter", "w1", "b1", "w2"};

/// A convolution and two layers. Their gradients read operands (products, ReLU), results (exp, tanh), and values within
/// the formula of an op (layer_norm).
class Network {
public:
  explicit Network(const std::string &name) : g(name) {}

  sluice::Tensor loss(const Seen &seen) {
    using namespace sluice;
    image = g.input("image", f32, {4, 1, 5, 5}), filter = g.input("filter", f32, {2, 1, 3, 3});
    w1 = g.input("w1", f32, {6, 18}), b1 = g.input("b1", f32, {6}), w2 = g.input("w2", f32, {3, 6});
    Tensor c = seen("c", conv2d(image, filter));
    Tensor e = seen("e", exp(c));
    Tensor f = seen("f", flatten(e, 1));
    Tensor h = seen("h", linear(f, w1, b1));
    Tensor n = seen("n", layer_norm(h, {6}));
    Tensor r = seen("r", relu(n));
    Tensor y = seen("y", linear(r, w2));
    Tensor t = seen("t", tanh(y));
    return seen("loss", mean(square(t)));
  }

  std::vector<sluice::Tensor> leaves() const { return {image, filter, w1, b1, w2}; }

  sluice::Graph g;

private:
  sluice::Tensor image, filter, w1, b1, w2;
};

Values inputs() {
  Values values;
  for (auto [name, count] :
       std::map<std::string, size_t>{{"image", 4 * 25}, {"filter", 18}, {"w1", 6 * 18}, {"b1", 6}, {"w2", 18}}) {
    std::vector<float> numbers = portableUniform(name, count, -0.5, 0.5);
    values[name] = {numbers.begin(), numbers.end()};
  }
  return values;
}

/// The values of the network.
Values computed() {
  Network net("forward");
  net.loss([&](const std::string &name, sluice::Tensor value) {
    net.g.output(name, value);
    return value;
  });
  return Compiled(net.g.str()).run("predict", inputs(), 1);
}

/// Outputs the gradients of the loss, and those of the sum of their squares.
void outputGradients(Network &net, const sluice::Tensor &loss) {
  using namespace sluice;
  std::vector<Tensor> first = grad(loss, net.leaves());
  Tensor squares = sum(square(first[0]));
  for (size_t i = 1; i < first.size(); ++i)
    squares = squares + sum(square(first[i]));
  std::vector<Tensor> second = grad(squares, net.leaves());
  for (size_t i = 0; i < first.size(); ++i) {
    net.g.output("d." + kLeaves[i], first[i]);
    net.g.entry("second" + std::to_string(i), [&] { net.g.output("dd." + kLeaves[i], second[i]); });
  }
}

std::string plainText() {
  Network net("plain");
  outputGradients(net, net.loss([](const std::string &, sluice::Tensor value) { return value; }));
  return net.g.str();
}

std::string backwardText() {
  Network net("backward");
  outputGradients(net, net.loss([&](const std::string &name, sluice::Tensor value) {
    return sluice::detail::saved(value, net.g.input("saved." + name, sluice::f32, value.shape()));
  }));
  return net.g.str();
}

std::vector<std::string> inputsOf(const Compiled &program, const std::string &entry) {
  std::vector<std::string> names;
  for (const sluice::runtime::Value &input : program.plan().findEntry(entry)->inputs)
    names.push_back(input.name);
  return names;
}

/// The inputs of the network, and its values as saved.
Values givenValues() {
  Values values = inputs();
  for (auto &[name, elements] : computed())
    values["saved." + name] = elements;
  return values;
}

} // namespace

TEST(Saved, GradientsHaveTheBitsOfOneProgram) {
  Compiled plain(plainText()), backward(backwardText());
  Values expected = plain.run("predict", inputs(), 1);
  EXPECT_EQ(backward.run("predict", givenValues(), 1), expected);
  for (const std::string &leaf : kLeaves)
    EXPECT_THAT(expected.at("d." + leaf), Contains(Not(0))) << leaf;
}

// The bias is only read by the forward pass.
TEST(Saved, TheBackwardProgramReadsSavedValues) {
  Compiled backward(backwardText());
  std::vector<std::string> names = inputsOf(backward, "predict");
  EXPECT_THAT(names, IsSupersetOf({"saved.e", "saved.h", "saved.r", "saved.t", "filter"}));
  for (const char *unread : {"b1", "saved.c", "saved.n", "saved.loss"})
    EXPECT_THAT(names, Not(Contains(unread)));
}

TEST(Saved, SecondGradientsToo) {
  Compiled plain(plainText()), backward(backwardText());
  for (size_t i = 0; i < kLeaves.size(); ++i) {
    std::string entry = "second" + std::to_string(i);
    EXPECT_EQ(backward.run(entry, givenValues(), 1), plain.run(entry, inputs(), 1)) << kLeaves[i];
  }
}
