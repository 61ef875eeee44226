// Tests parameters: the selection of trained parameters, valid copies into parameters, names and initial values.
#include "tests/frontend/Observe.h"
#include <sluice/sluice.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using sluice::test::messageOf;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace {

struct Minimize : testing::Test {
  Graph g{"test"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3}), rows = g.input("rows", f32, {5, 3});
  nn::Module root{g};
  Tensor w = root.parameter("w", {3}, init::ones()), v = root.parameter("v", {3}, init::ones());

  /// The learning rate and the trained parameters of minimize in the graph's text.
  std::string by(const Tensor &loss, const optim::Options &options = {}) {
    g.minimize(loss, optim::AdamW{}, options);
    std::string text = g.str();
    size_t from = text.find("lr @lr");
    return text.substr(from, text.find(" :", from) - from);
  }
};

struct TwoLinears : nn::Module {
  using Module::Module;
  nn::Linear first{this, "first", 3, 3}, second{this, "second", 3, 3};
};

} // namespace

// --- parameters that receive a gradient

TEST_F(Minimize, TrainsNoParameterThatTheLossReadsDetached) {
  EXPECT_EQ(by(((x * w).detach() * v).mean()), "lr @lr [@v]");
}

TEST_F(Minimize, TrainsNoParameterThatTheLossCompares) {
  EXPECT_EQ(by((where(x * w > 0.0, x, 0.0) * v).mean()), "lr @lr [@v]");
}

TEST_F(Minimize, TrainsNoParameterThatTheLossReadsAsIntegers) {
  EXPECT_EQ(by((argmax(x * w, 1).to(f32) * v.sum() + v.sum()).mean()), "lr @lr [@v]");
}

TEST_F(Minimize, TrainsNoParameterThatAStepReadsDetached) {
  Tensor last = scan({g.zeros({3})}, {rows}, 0, [&](const auto &carried, const auto &slices) {
                  return ScanStep{{carried[0] * v + (slices[0] * w).detach()}, {}};
                }).carried[0];
  EXPECT_EQ(by(last.sum()), "lr @lr [@v]");
}

TEST_F(Minimize, TrainsWhatStepsCarryAndStack) {
  ScanStep all = scan({w}, {rows}, 0, [&](const auto &carried, const auto &slices) {
    return ScanStep{{carried[0] * 2.0}, {slices[0] * v}};
  });
  EXPECT_EQ(by(all.carried[0].sum() + all.stacked[0].sum()), "lr @lr [@w, @v]");
}

TEST_F(Minimize, TrainsNoParameterWhoseCarriedValueTheLossDoesNotRead) {
  ScanStep all = scan({w, v}, {rows}, 0, [&](const auto &carried, const auto &slices) {
    return ScanStep{{carried[0] * 2.0, carried[1] * slices[0]}, {}};
  });
  EXPECT_EQ(by(all.carried[1].sum() + all.carried[0].detach().sum()), "lr @lr [@v]");
}

TEST_F(Minimize, TrainsNoParameterThatABranchReadsDetached) {
  Tensor y = cond(rows.sum() > 0.0, [&] { return v * 2.0; }, [&] { return w.detach(); });
  EXPECT_EQ(by(y.sum()), "lr @lr [@v]");
}

// PyTorch computes a zero gradient, and its AdamW decays the parameter.
TEST_F(Minimize, TrainsAParameterThatTheLossRounds) { EXPECT_EQ(by((floor(x * w) * v).mean()), "lr @lr [@w, @v]"); }

TEST_F(Minimize, NeedsAParameterThatAGradientReaches) {
  EXPECT_THAT(messageOf([&] { by((w.detach() * x).mean()); }),
              StartsWith("minimize: no gradient of the loss reaches a parameter: each has requires_grad(false)"));
}

// --- requires_grad

TEST_F(Minimize, TrainsNoParameterThatRequiresNoGradient) {
  w.requires_grad(false);
  v.requires_grad(false).requires_grad(true);
  EXPECT_EQ(by((x * w * v).mean()), "lr @lr [@v]");
}

TEST_F(Minimize, TrainsNoModuleThatRequiresNoGradient) {
  TwoLinears net{&root, "net"};
  net.first.requires_grad(false);
  EXPECT_EQ(by((net.second(net.first(x)) * v).mean()), "lr @lr [@v, @net.second.weight, @net.second.bias]");
}

TEST_F(Minimize, TrainsNoModuleInAFrozenModule) {
  TwoLinears net{&root, "net"};
  net.requires_grad(false);
  net.second.requires_grad(true);
  EXPECT_EQ(by((net.second(net.first(x)) * v).mean()), "lr @lr [@v, @net.second.weight, @net.second.bias]");
}

TEST_F(Minimize, TrainsNoParameterThatAFrozenModuleShares) {
  TwoLinears net{&root, "net"};
  net.second.weight = net.first.weight;
  net.second.requires_grad(false);
  EXPECT_EQ(by(net.second(net.first(x)).mean()), "lr @lr [@net.first.bias]");
}

TEST_F(Minimize, GroupsMayNameFrozenParameters) {
  w.requires_grad(false);
  EXPECT_EQ(by((x * w * v).mean(), {.groups = {{.params = {"w"}, .lr_factor = 2}}}), "lr @lr [@v]");
}

TEST_F(Minimize, FixesWhatItTrains) {
  by((x * w).mean());
  EXPECT_THAT(messageOf([&] { w.requires_grad(false); }), HasSubstr("call requires_grad before minimize"));
  EXPECT_THAT(messageOf([&] { root.requires_grad(false); }), HasSubstr("call requires_grad before minimize"));
}

TEST_F(Minimize, RequiresGradientsOfParametersAlone) {
  EXPECT_THAT(messageOf([&] { x.requires_grad(false); }),
              StartsWith("requires_grad: takes parameters of a module: pass the tensor that `parameter` returned"));
}

TEST_F(Minimize, AFrozenParameterHasNoGradient) {
  w.requires_grad(false);
  EXPECT_THAT(messageOf([&] { grad((x * w).mean(), {w}); }), HasSubstr("'w' [3], has requires_grad(false)"));
}

// --- copies into parameters and from them

TEST_F(Minimize, LetsCopiesGoIntoADetachedParameter) {
  g.minimize(((x * w).detach() * v).mean(), optim::SGD{});
  w.copy_(v);
  EXPECT_THAT(g.str(), HasSubstr("sluice.set @w, %v"));
}

TEST_F(Minimize, LetsCopiesGoIntoAFrozenParameterBeforeMinimize) {
  Tensor target = w;
  w.requires_grad(false).copy_(v);
  EXPECT_EQ(by((x * target * v).mean()), "lr @lr [@v]");
}

TEST_F(Minimize, TrainsNothingThatCopiesWrite) {
  Tensor before = w;
  w.copy_(v);
  EXPECT_THAT(messageOf([&] { g.minimize((x * before).mean(), optim::SGD{}); }),
              StartsWith("minimize: 'w' is written by copy_ or copy_to already; call requires_grad(false) on it"));
  g.minimize((x * v).mean(), optim::SGD{});
  EXPECT_THAT(messageOf([&] { v.copy_(before); }), StartsWith("copy_: 'v' is trained by minimize already"));
}

TEST_F(Minimize, LeavesAValueAfterTheUpdate) {
  EXPECT_THAT(messageOf([&] { v.updated(); }),
              StartsWith("updated: minimize does not train 'v' yet; call updated after minimize"));
  g.minimize((x * w.detach() * v).mean(), optim::SGD{});
  EXPECT_THAT(messageOf([&] { w.updated(); }), StartsWith("updated: minimize does not train 'w' ("));
  EXPECT_THAT(messageOf([&] { x.updated(); }), StartsWith("updated: takes parameters of a module"));
  w.copy_(v.updated());
  EXPECT_THAT(g.str(), AllOf(HasSubstr("= sluice.updated %v : tensor<3xf32>"), HasSubstr("sluice.set @w, ")));
}

// --- names

TEST_F(Minimize, NamesOfEntryPointsAreTaken) {
  for (const char *name : {"init", "predict", "train_step", "eval_step"}) {
    EXPECT_EQ(messageOf([&] { root.parameter(name, {3}, init::ones()); }),
              "'" + std::string(name) + "' is an entry point of the program; give the parameter another name");
    EXPECT_THAT(messageOf([&] { root.buffer(name, {3}, init::ones()); }), HasSubstr("give the statistic another name"));
    EXPECT_THAT(messageOf([&] { g.hyper(name, 1); }), HasSubstr("give the hyperparameter another name"));
  }
  TwoLinears net{&root, "predict"};
  EXPECT_EQ(net.named_parameters()[0].first, "predict.first.weight");
}

TEST_F(Minimize, NamesOfTheGraphsEntryPointsAreTaken) {
  g.entry("decode", [&] { g.output("y", x); });
  EXPECT_THAT(messageOf([&] { root.parameter("decode", {3}, init::ones()); }),
              HasSubstr("'decode' is an entry point of the program"));
  EXPECT_EQ(messageOf([&] { g.entry("w", [&] { g.output("y", x); }); }),
            "'w' cannot name an entry point: it is a parameter");
  g.entry("more", [&] {
    EXPECT_THAT(messageOf([&] { g.hyper("more", 1); }), HasSubstr("'more' is an entry point of the program"));
    g.output("y", x);
  });
}

TEST_F(Minimize, NamesOfSlotsAreTaken) {
  g.hyper("v.exp_avg", 1);
  EXPECT_EQ(messageOf([&] { by((x * v).mean()); }),
            "'v.exp_avg' is a slot that the optimizer keeps for 'v'; give the hyperparameter another name");
}

TEST_F(Minimize, NamesOfAveragesAreTaken) {
  nn::Module part{&root, "v"};
  part.buffer("ema", {3}, init::zeros());
  EXPECT_EQ(messageOf([&] { by((x * v).mean(), {.groups = {{.params = {"v"}}}, .ema = optim::EMA{}}); }),
            "'v.ema' is a slot that the optimizer keeps for 'v'; give the statistic another name");
}

TEST_F(Minimize, DotsAreBetweenTheNamesOfModules) {
  std::string reason = ": a name is not empty and has no dot, '*', '\"' or space; a dot follows the name of each "
                       "module around it";
  EXPECT_EQ(messageOf([&] { root.buffer("a.b", {3}, init::zeros()); }), "'a.b' cannot name a statistic" + reason);
  EXPECT_EQ(messageOf([&] { root.parameter("a.b", {3}, init::zeros()); }), "'a.b' cannot name a parameter" + reason);
  EXPECT_EQ(messageOf([&] { root.cache("a.b", {3}); }), "'a.b' cannot name a cache" + reason);
}

// --- initial values

TEST_F(Minimize, ARuleIsForStatisticsThatItNames) {
  nn::BatchNorm2d norm{&root, "norm", 2};
  g.output("y", norm(g.input("pairs", f32, {Dim{"batch"}, 2})));
  root.initialize("*", init::constant(3));
  EXPECT_THAT(g.str(), AllOf(HasSubstr("@norm.weight : tensor<2xf32> = <\"constant\", 3.0"),
                             HasSubstr("@norm.running_var : tensor<2xf32> = <\"constant\", 1.0")));
  root.initialize("*.running_*", init::constant(4));
  EXPECT_THAT(g.str(), AllOf(HasSubstr("@norm.running_mean : tensor<2xf32> = <\"constant\", 4.0"),
                             HasSubstr("@norm.running_var : tensor<2xf32> = <\"constant\", 4.0")));
}

TEST_F(Minimize, DataHasStatisticsToo) {
  nn::BatchNorm2d norm{&root, "norm", 2};
  EXPECT_THAT(messageOf([&] { norm.initialize("running_mean", init::from_npy("no such.npy")); }),
              StartsWith("'norm.running_mean' cannot begin so: no such.npy: "));
}

TEST_F(Minimize, WhatRowsCarryBeginsWithZeros) {
  root.buffer("carried", {Dim{"batch"}, 2}, init::zeros());
  EXPECT_EQ(messageOf([&] { root.initialize("carried", init::ones()); }),
            "no parameter or statistic of 'test' matches 'carried'");
}
