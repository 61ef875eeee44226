// Lazy layers: parameters that the first call creates.
#include "Observe.h"

#include <gmock/gmock.h>

using namespace sluice;
using sluice::test::messageOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

struct Lazy : testing::Test {
  Lazy() { g.set_devices("cpu,sim:0"); }

  Graph g{"test"};
  nn::Module root{g};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 7}), image = g.input("image", f32, {Dim{"batch"}, 4, 8, 8});

  std::vector<std::string> parameters() const {
    std::vector<std::string> names;
    for (auto &[name, parameter] : root.named_parameters())
      names.push_back(name + parameter.shape().str());
    return names;
  }
};

} // namespace

TEST_F(Lazy, TheFirstCallCreatesParameters) {
  nn::LazyLinear fc{&root, "fc", 3};
  nn::LazyConv2d conv{&root, "conv", 6, 3, {.groups = 2, .bias = false}};
  EXPECT_THAT(parameters(), IsEmpty());
  EXPECT_EQ(fc(x).shape().str(), "[batch, 3]");
  fc(x);
  EXPECT_EQ(conv(image).shape().str(), "[batch, 6, 6, 6]");
  EXPECT_THAT(parameters(), ElementsAre("fc.weight[3, 7]", "fc.bias[3]", "conv.weight[6, 2, 3, 3]"));
}

TEST_F(Lazy, BeginsAsTheOtherLayer) {
  nn::LazyLinear lazy{&root, "lazy", 3};
  nn::Linear fc{&root, "fc", 7, 3};
  g.output("a", lazy(x));
  g.output("b", fc(x));
  std::string text = g.str();
  auto beginOf = [&](const std::string &state) {
    size_t at = text.find("@" + state + " :");
    return text.substr(at + state.size(), text.find(">", text.find("= <", at)) - at - state.size());
  };
  EXPECT_EQ(beginOf("lazy.weight"), beginOf("fc.weight"));
  EXPECT_EQ(beginOf("lazy.bias"), beginOf("fc.bias"));
}

TEST_F(Lazy, ParametersAreOnTheChosenDevice) {
  nn::LazyLinear moved{&root, "moved", 3}, pinned{&root, "pinned", 3};
  std::unique_ptr<nn::LazyLinear> scoped;
  {
    DeviceScope scope(g, gpu(0));
    scoped = std::make_unique<nn::LazyLinear>(&root, "scoped", 3);
  }
  moved.to(gpu(0));
  pinned.pin(gpu(0));
  Tensor on = x.to(gpu(0));
  for (nn::LazyLinear *layer : {&moved, &pinned, scoped.get()}) {
    (*layer)(layer == &pinned ? x : on);
    EXPECT_EQ(layer->weight.device(), gpu(0));
    EXPECT_EQ(layer->bias.device(), gpu(0));
  }
}

TEST_F(Lazy, IsMovedWithItsParent) {
  nn::Sequential layers{&root, "layers"};
  layers.add<nn::LazyLinear>(3).add<nn::LazyLinear>(2);
  layers.to(gpu(0));
  layers(x.to(gpu(0)));
  for (auto &[name, parameter] : layers.named_parameters())
    EXPECT_EQ(parameter.device(), gpu(0)) << name;
  EXPECT_THAT(parameters(),
              ElementsAre("layers.0.weight[3, 7]", "layers.0.bias[3]", "layers.1.weight[2, 3]", "layers.1.bias[2]"));
}

TEST_F(Lazy, ParametersMayBeFrozenBefore) {
  nn::LazyLinear frozen{&root, "frozen", 7}, fc{&root, "fc", 2};
  frozen.requires_grad(false);
  g.minimize(mean(square(fc(frozen(x)))), optim::SGD{});
  EXPECT_THAT(g.str(), HasSubstr("[@fc.weight, @fc.bias]"));
}

TEST_F(Lazy, TheFirstReplicaCreatesParameters) {
  g.set_devices("cpu,sim:0,sim:1");
  nn::LazyLinear fc{&root, "fc", 3};
  fc.to(gpu(0));
  Tensor rows = g.input("rows", f32, {4, 7});
  EXPECT_EQ(nn::data_parallel(fc, rows.to(gpu(0)), {gpu(0), gpu(1)}).shape().str(), "[4, 3]");
  EXPECT_THAT(parameters(), ElementsAre("fc.weight[3, 7]", "fc.bias[3]"));
}

TEST_F(Lazy, NeedsASize) {
  nn::LazyLinear fc{&root, "fc", 3};
  nn::LazyConv2d conv{&root, "conv", 3, 3}, grouped{&root, "grouped", 6, 3, {.groups = 3}};
  EXPECT_THAT(messageOf([&] { fc(x.t()); }), HasSubstr("LazyLinear: dimension -1 of [7, batch] has no size"));
  EXPECT_THAT(messageOf([&] { conv(x); }), HasSubstr("LazyConv2d: x has 2 dimensions, not 4"));
  EXPECT_THAT(messageOf([&] { grouped(image); }),
              HasSubstr("LazyConv2d: 3 groups do not divide 4 input and 6 output channels"));
  EXPECT_THAT(parameters(), IsEmpty());
}
