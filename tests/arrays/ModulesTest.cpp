// Modules and optimizers on arrays, compared with the programs of graphs.
#include "sluice/array.h"
#include "sluice/array/train.h"
#include "sluice/compile.h"
#include "sluice/sluice.h"
#include "tests/TemporaryFolder.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

namespace sluice {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Net : nn::Module {
  using Module::Module;
  nn::Linear fc1{this, "fc1", 6, 5}, fc2{this, "fc2", 5, 3};
  nn::BatchNorm2d norm{this, "norm", 5};
  Tensor forward(Tensor x) override { return fc2(dropout(relu(norm(fc1(x))), 0.3)); }
};

std::vector<float> numbers(size_t count, int shift = 0) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = std::sin(float(i) * 1.7f + float(shift));
  return values;
}

std::vector<int32_t> labels(size_t count) {
  std::vector<int32_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = int32_t(i * 7 % 3);
  return values;
}

std::string messageOf(const std::function<void()> &use) {
  try {
    use();
  } catch (const Error &error) {
    return error.message();
  }
  return "no error";
}

/// The net as a program, with the initial values of seed 7.
Program programOf(const optim::Optimizer &optimizer = optim::SGD{}, const optim::Options &options = {}) {
  Graph g("net");
  Tensor x = g.input("x", f32, {4, 6}), y = g.input("y", i32, {4});
  Net net{g};
  Tensor result = net(x);
  g.output("result", result);
  g.minimize(cross_entropy(result, y), optimizer, options);
  Program program = compile(g);
  program.seed(7);
  program.run("init", 1);
  program.set_input("y", labels(4));
  return program;
}

class Modules : public testing::Test {
protected:
  static void SetUpTestSuite() { set_devices("cpu,sim:0,sim:1"); }
  void SetUp() override { manual_seed(7); }

  Array x = array(numbers(24), {4, 6}), y = array(labels(4), {4});
};

TEST_F(Modules, BeginAndPredictAsPrograms) {
  Program program = programOf();
  Net net;
  for (auto &[name, value] : net.state_dict())
    EXPECT_EQ(value.to_vector<float>(), program.state<float>(name)) << name;
  net.eval();
  program.set_input("x", numbers(24));
  program.run("predict", 1);
  EXPECT_EQ(net(x).to_vector<float>(), program.output<float>("result"));
}

// The same updates of parameters, statistics and random numbers.
TEST_F(Modules, TrainAsPrograms) {
  optim::Adam adam{.lr = 0.05, .weight_decay = 0.01, .amsgrad = true};
  optim::Options options{.groups = {{.params = {"*.bias"}, .lr_factor = 2, .weight_decay = 0}},
                         .clip_grad_norm = 0.5,
                         .schedule = optim::StepLR{.step_size = 2},
                         .ema = optim::EMA{.decay = 0.9}};
  Program program = programOf(adam, options);
  Net net;
  optim::Trainer trainer(net, adam, options);
  for (int step = 0; step < 4; ++step) {
    program.set_input("x", numbers(24, step));
    program.run("train_step", 1);
    auto tape = record();
    Array loss = cross_entropy(net(array(numbers(24, step), {4, 6})), y);
    loss.backward();
    trainer.step();
    EXPECT_EQ(loss.to_vector<float>(), program.output<float>("loss")) << step;
  }
  for (auto &[name, value] : net.state_dict())
    EXPECT_EQ(value.to_vector<float>(), program.state<float>(name)) << name;
  for (auto &[name, value] : trainer.state_dict())
    if (value.dtype() == f32)
      EXPECT_EQ(value.to_vector<float>(), program.state<float>(name)) << name;
}

// A layer that keeps tensors of its last call, indices, and a scan.
TEST_F(Modules, TrainSequencesAsPrograms) {
  struct Tagger : nn::Module {
    using Module::Module;
    nn::Embedding words{this, "words", 7, 4};
    nn::LSTM lstm{this, "lstm", 4, 6, {.batch_first = true}};
    nn::MultiheadAttention attention{this, "attention", 6, 2, {.batch_first = true}};
    nn::Linear tags{this, "tags", 6, 3};
    Tensor forward(Tensor x) override {
      Tensor h = lstm(words(x)), mixed = attention(h, h, h) + lstm.h_n.sum();
      return tags(mixed.select(1, 4));
    }
  };
  Graph g("tagger");
  Tensor tokens = g.input("tokens", i32, {2, 5}), tag = g.input("tag", i32, {2});
  Tagger inGraph{g};
  g.minimize(cross_entropy(inGraph(tokens), tag), optim::SGD{.lr = 0.5});
  Program program = compile(g);
  program.seed(7);
  program.run("init", 1);
  std::vector<int32_t> words{0, 3, 6, 1, 1, 2, 5, 4, 0, 6}, wanted{2, 0};
  program.set_input("tokens", words);
  program.set_input("tag", wanted);
  Tagger net;
  optim::Trainer trainer(net, optim::SGD{.lr = 0.5});
  for (int step = 0; step < 3; ++step) {
    program.run("train_step", 1);
    auto tape = record();
    Array loss = cross_entropy(net(array(words, {2, 5})), array(wanted, {2}));
    loss.backward();
    trainer.step();
    EXPECT_NEAR(loss.item(), program.output<float>("loss")[0], 1e-6) << step;
  }
  for (auto &[name, value] : net.state_dict()) {
    std::vector<float> expected = program.state<float>(name), actual = value.to_vector<float>();
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], 1e-6) << name;
  }
  Array tokensOnHost = array(words, {2, 5});
  std::vector<float> expected = net.eval()(tokensOnHost).to_vector<float>();
  net.to(gpu(0));
  EXPECT_EQ(net(tokensOnHost.to(gpu(0))).to_vector<float>(), expected);
}

TEST_F(Modules, InitializeAgain) {
  Net net;
  net.initialize("fc1.weight", init::constant(2));
  std::vector<Array> parameters = net.parameters();
  EXPECT_THAT(parameters[0].to_vector<float>(), Each(2));
  net.initialize("*.bias", init::constant(3));
  net.to(gpu(0));
  EXPECT_THAT(net.parameters()[1].to_vector<float>(), Each(3));
  EXPECT_THAT(parameters[1].to_vector<float>(), Each(3)) << "handles see the new elements";
  EXPECT_EQ(parameters[1].device(), gpu(0));
}

TEST_F(Modules, EvaluateWithoutChanges) {
  Net net;
  net(x);
  auto meanNow = [&] { return net.state_dict()[6].second.to_vector<float>(); };
  ASSERT_EQ(net.state_dict()[6].first, "norm.running_mean");
  std::vector<float> trained = meanNow();
  EXPECT_THAT(trained, testing::Contains(testing::Ne(0)));
  EXPECT_NE(net(x).to_vector<float>(), net(x).to_vector<float>()) << "dropout";
  trained = meanNow();
  net.eval();
  EXPECT_EQ(net(x).to_vector<float>(), net(x).to_vector<float>());
  EXPECT_EQ(meanNow(), trained);
  net.norm.train();
  net(x);
  EXPECT_NE(meanNow(), trained);
}

TEST_F(Modules, RunOnTheirDevice) {
  Net net;
  std::vector<Array> parameters = net.parameters();
  std::vector<float> expected = net.eval()(x).to_vector<float>();
  net.to(gpu(1));
  Array z = net(x.to(gpu(1)));
  EXPECT_EQ(z.device(), gpu(1));
  EXPECT_EQ(z.to_vector<float>(), expected);
  EXPECT_EQ(parameters.front().device(), gpu(1)) << "handles see the new place";
  EXPECT_THAT(messageOf([&] { net(x); }),
              HasSubstr("forward: operand 1 [4, 6] is on cpu(), and the parameters of the module on gpu(1)"));
}

TEST_F(Modules, TrainOnAnAccelerator) {
  Net host, device;
  device.to(gpu(0));
  device.load_state_dict(host.state_dict());
  host.eval(), device.eval(); // the two draw different random numbers
  optim::Trainer one(host, optim::AdamW{.lr = 0.1}), two(device, optim::AdamW{.lr = 0.1});
  auto step = [&](Net &net, optim::Trainer &trainer, const Device &on) {
    auto tape = record();
    cross_entropy(net(x.to(on)), y.to(on)).backward();
    trainer.step();
  };
  for (int i = 0; i < 3; ++i) {
    step(host, one, cpu());
    step(device, two, gpu(0));
  }
  std::vector<std::pair<std::string, Array>> a = host.state_dict(), b = device.state_dict();
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(a[i].second.to_vector<float>(), b[i].second.to_vector<float>()) << a[i].first;
}

// After the first step, nothing is copied between devices.
TEST_F(Modules, StepsCopyNothing) {
  Net net;
  net.to(gpu(0));
  optim::Trainer trainer(net, optim::Adam{}, {.clip_grad_norm = 1.0, .schedule = optim::StepLR{.step_size = 2}});
  Array at = x.to(gpu(0)), label = y.to(gpu(0));
  auto step = [&] {
    auto tape = record();
    cross_entropy(net(at), label).backward();
    trainer.step();
  };
  step();
  std::vector<ArrayTransfers> before = transfers();
  step();
  EXPECT_EQ(transfers(), before);
}

TEST_F(Modules, SpreadOverDevices) {
  struct Split : nn::Module {
    using Module::Module;
    nn::Linear fc1{this, "fc1", 6, 5}, fc2{this, "fc2", 5, 3};
    Tensor forward(Tensor x) override { return fc2(dropout(fc1(x), 0.5).to(gpu(1))); }
  };
  Split net;
  net.fc1.to(gpu(0));
  net.fc2.to(gpu(1));
  auto tape = record();
  Array z = net(x.to(gpu(0)));
  EXPECT_EQ(z.device(), gpu(1));
  z.backward();
  EXPECT_EQ(net.parameters().front().grad().device(), gpu(0));
}

TEST_F(Modules, CallPartsOnArrays) {
  Net net;
  net.eval();
  Array h = net.fc1(x), normal = net.norm(h);
  EXPECT_EQ(net.fc2(relu(normal)).to_vector<float>(), net(x).to_vector<float>());
  EXPECT_THAT(net.fc1.state_dict(), SizeIs(2));
  EXPECT_EQ(net.fc1.state_dict().front().first, "weight");
}

TEST_F(Modules, LazyLayersBeginAtTheFirstCall) {
  struct Lazy : nn::Module {
    using Module::Module;
    nn::LazyConv2d conv{this, "conv", 2, 3};
    nn::LazyLinear fc{this, "fc", 3};
    Tensor forward(Tensor x) override { return fc(flatten(conv(x), 1)); }
  };
  Lazy net;
  net.to(gpu(0));
  EXPECT_THAT(net.parameters(), IsEmpty());
  Array image = array(numbers(2 * 5 * 5), {1, 2, 5, 5}, gpu(0));
  EXPECT_THAT(net(image).shape(), ElementsAre(1, 3));
  std::vector<std::string> names;
  for (auto &[name, value] : net.state_dict()) {
    names.push_back(name);
    EXPECT_EQ(value.device(), gpu(0)) << name;
  }
  EXPECT_THAT(names, ElementsAre("conv.weight", "conv.bias", "fc.weight", "fc.bias"));
  EXPECT_EQ(net(image).to_vector<float>(), net(image).to_vector<float>());
}

// A tied parameter is one array.
TEST_F(Modules, TiedParametersAreOne) {
  struct Tied : nn::Module {
    Tied() { b.weight = a.weight; }
    nn::Linear a{this, "a", 4, 4, {.bias = false}}, b{this, "b", 4, 4, {.bias = false}};
    Tensor forward(Tensor x) override { return b(a(x)); }
  };
  Tied net;
  EXPECT_THAT(net.parameters(), SizeIs(1));
  Array x = array(numbers(8), {2, 4}), w = net.parameters().front();
  std::vector<float> twice = linear(linear(x, w), w).to_vector<float>(), result = net(x).to_vector<float>();
  for (size_t i = 0; i < twice.size(); ++i)
    EXPECT_NEAR(result[i], twice[i], 1e-6);
}

TEST_F(Modules, WriteBuffers) {
  struct Counter : nn::Module {
    using Module::Module;
    Tensor count = buffer("count", {2}, init::zeros());
    Tensor forward(Tensor x) override {
      count.copy_(count + 1.0);
      return x + count;
    }
  };
  Counter net;
  Array zero = zeros({2});
  EXPECT_THAT(net(zero).to_vector<float>(), Each(1));
  EXPECT_THAT(net(zero).to_vector<float>(), Each(2));
  EXPECT_THAT(net.eval()(zero).to_vector<float>(), Each(2)) << "evaluation writes nothing";
}

TEST_F(Modules, SaveAndLoad) {
  test::TemporaryFolder folder;
  Net net, other;
  net(x);
  net.save(folder / "net.safetensors");
  other.to(gpu(0));
  other.load(folder / "net.safetensors");
  std::vector<std::pair<std::string, Array>> a = net.state_dict(), b = other.state_dict();
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].second.to_vector<float>(), b[i].second.to_vector<float>()) << a[i].first;
    EXPECT_EQ(b[i].second.device(), gpu(0));
  }
  Program program = programOf();
  program.load_weights(folder / "net.safetensors");
  EXPECT_EQ(program.state<float>("norm.running_mean"), a[6].second.to_vector<float>());
  EXPECT_THAT(messageOf([&] { net.fc1.load(folder / "net.safetensors"); }),
              HasSubstr("load_state_dict: 'weight' is missing"));
  EXPECT_THAT(messageOf([&] { net.load("/nowhere.safetensors"); }), HasSubstr("/nowhere.safetensors"));
}

TEST_F(Modules, RejectOtherDictionaries) {
  Net net;
  std::vector<std::pair<std::string, Array>> arrays = net.state_dict();
  auto changed = [&](auto change) {
    auto other = arrays;
    change(other);
    return messageOf([&] { net.load_state_dict(other); });
  };
  EXPECT_THAT(changed([](auto &all) { all.pop_back(); }), HasSubstr("'norm.running_var' is missing"));
  EXPECT_THAT(changed([](auto &all) { all.push_back(all[0]); }), HasSubstr("'fc1.weight' occurs twice"));
  EXPECT_THAT(changed([](auto &all) { all.push_back({"more", all[0].second}); }),
              HasSubstr("the module has no 'more'"));
  EXPECT_THAT(changed([](auto &all) { all[0].second = zeros({6, 5}); }),
              HasSubstr("'fc1.weight' is [6, 5], and that of the module [5, 6]"));
}

TEST_F(Modules, OfGraphsHaveNoArrays) {
  Graph g("test");
  Net net{g};
  EXPECT_THAT(messageOf([&] { net(x); }), HasSubstr("the module belongs to the graph 'test', and has no arrays"));
}

TEST_F(Modules, ReportErrorsOfForward) {
  Net net;
  EXPECT_THAT(messageOf([&] { net(array(numbers(20), {4, 5})); }), HasSubstr("linear: "));
  EXPECT_THAT(net.eval()(x).shape(), ElementsAre(4, 3)) << "as before";
}

TEST_F(Modules, TakeSeveralOperands) {
  struct Sum : nn::Module {
    using Module::Module;
    Tensor w = parameter("w", {3}, init::ones());
    Tensor forward(Tensor a, Tensor b) override { return bool(b) ? a * w + b : a * w; }
    Tensor forward(Tensor a, Tensor b, Tensor c) override { return a * w + b * c; }
    Tensor forward(Tensor a, Tensor b, Tensor c, Tensor d) override { return a * w + b * c + d; }
  };
  Sum net;
  Array a = full({3}, 1), b = full({3}, 2), c = full({3}, 3), d = full({3}, 4);
  EXPECT_THAT(net(a, b).to_vector<float>(), Each(3));
  EXPECT_THAT(net(a, Array()).to_vector<float>(), Each(1)) << "an absent operand";
  EXPECT_THAT(net(a, b, c).to_vector<float>(), Each(7));
  EXPECT_THAT(net(a, b, c, d).to_vector<float>(), Each(11));
  EXPECT_THAT(messageOf([&] { net(a); }), HasSubstr("has no forward(Tensor)"));
}

TEST_F(Modules, ComputeInForward) {
  struct Early : nn::Module {
    using Module::Module;
    Tensor w = parameter("w", {3}, init::ones()), twice = w * 2.0;
    Tensor forward(Tensor x) override { return x + twice; }
  };
  Early net;
  EXPECT_THAT(messageOf([&] { net(ones({3})); }), HasSubstr("computed outside of forward"));
}

TEST_F(Modules, CreateStatesInTheirConstructor) {
  struct Late : nn::Module {
    using Module::Module;
    Tensor forward(Tensor x) override { return x + parameter("w", {3}, init::ones()); }
  };
  struct Rows : nn::Module {
    using Module::Module;
    Tensor h = buffer("h", {Dim{"batch"}, 3}, init::zeros());
    Tensor forward(Tensor x) override { return x; }
  };
  Late late;
  Rows rows;
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(messageOf([&] { late(ones({3})); }), HasSubstr("parameter 'w' cannot be created in forward"));
  EXPECT_THAT(messageOf([&] { rows(ones({3})); }), HasSubstr("'h' is carried by rows, which only graphs have"));
}

TEST_F(Modules, TakeTensorsWithinForward) {
  struct Outer : nn::Module {
    using Module::Module;
    nn::Linear fc{this, "fc", 3, 3};
    Array inner = ones({1, 3});
    Tensor forward(Tensor x) override {
      fc(inner);
      return x;
    }
  };
  Outer net;
  EXPECT_THAT(messageOf([&] { net(ones({1, 3})); }), HasSubstr("cannot be called on arrays within forward"));
}

TEST_F(Modules, RecordsOutliveThemOnlyIfDifferentiated) {
  auto tape = record();
  Array z;
  {
    Net net;
    z = net(x) * 3.0;
  }
  EXPECT_THAT(messageOf([&] { z.backward(); }), HasSubstr("a module of a recorded call was destroyed"));
}

//===- saved values -----------------------------------------------------------------------------------------------===//

/// Three layers as a module, and as functions of arrays.
struct Deep : nn::Module {
  nn::Linear a{this, "a", 6, 8}, b{this, "b", 8, 8}, c{this, "c", 8, 3};
  Tensor forward(Tensor x) override { return c(tanh(b(relu(a(x) * 2.0)))); }
  Array onArrays(const Array &x) {
    std::vector<Array> w = parameters();
    return linear(tanh(linear(relu(linear(x, w[0], w[1]) * 2.0), w[2], w[3])), w[4], w[5]);
  }
};

/// The gradients of the parameters, and the number of launches of `backward`.
std::pair<std::vector<std::vector<float>>, std::int64_t> gradientsBy(nn::Module &module, const Array &loss) {
  std::int64_t before = kernel_launches();
  loss.backward();
  std::int64_t launches = kernel_launches() - before;
  std::vector<std::vector<float>> gradients;
  for (const Array &parameter : module.parameters())
    gradients.push_back(parameter.grad().to_vector<float>());
  return {gradients, launches};
}

// Functions of arrays save all results, so their gradients need the fewest launches.
TEST_F(Modules, BackwardRepeatsNoForwardPass) {
  Deep net;
  auto jitted = jit([&](const Tensor &its) { return net(its); });
  auto tape = record();
  net(x); // attaches gradients
  auto [expected, launches] = gradientsBy(net, square(net.onArrays(x)).sum());
  for (const Array &z : {net(x), jitted(x)}) {
    auto [gradients, its] = gradientsBy(net, square(z).sum());
    EXPECT_EQ(gradients, expected);
    EXPECT_LE(its, launches);
  }
}

TEST_F(Modules, BackwardHasTheModeOfTheCall) {
  Net changed, kept;
  for (Net *net : {&changed, &kept}) {
    manual_seed(7);
    net->parameters(); // creates the states, from this seed
  }
  auto tape = record();
  Array a = square(changed(x)).sum(), b = square(kept(x)).sum();
  changed.eval();
  EXPECT_EQ(gradientsBy(changed, a).first, gradientsBy(kept, b).first);
  EXPECT_EQ(changed(x).to_vector<float>(), changed(x).to_vector<float>()) << "without dropout";
}

// The gradients of relu, tanh, and the products after them read the results of relu and tanh. No gradient reads the
// first product or its double. All sizes are multiples of the unit of allocation.
TEST_F(Modules, RecordedCallsSaveWhatGradientsRead) {
  Deep net;
  net.eval(); // without random numbers
  Array large = array(numbers(96), {16, 6});
  auto elementwise = jit([](const Tensor &its) { return exp(sin(its) * tanh(its)); });
  auto bytesOf = [](const std::function<Array()> &call) {
    auto tape = record();
    call();
    std::int64_t before = memory(cpu()).in_use;
    Array z = call();
    return memory(cpu()).in_use - before - z.numel() * 4;
  };
  large.attach_grad();
  EXPECT_EQ(bytesOf([&] { return net(large); }), 2 * 16 * 8 * 4);
  EXPECT_EQ(bytesOf([&] { return elementwise(large); }), 0);
}

TEST_F(Modules, SavedValuesAreFreedWithTheRecord) {
  Deep net;
  auto step = [&] {
    auto tape = record();
    net(x).backward();
  };
  step();
  std::int64_t before = memory(cpu()).in_use;
  step();
  EXPECT_EQ(memory(cpu()).in_use, before);
}

TEST_F(Modules, FunctionsMustBePure) {
  int traces = 0;
  auto function = jit([&](const Tensor &its) {
    Tensor z = its;
    for (int i = 0; i < traces; ++i)
      z = matmul(z, its);
    traces += 3;
    return matmul(z, its);
  });
  x = array(numbers(9), {3, 3});
  x.attach_grad();
  auto tape = record();
  EXPECT_THAT(messageOf([&] { function(x).backward(); }),
              HasSubstr("two traces of the function built different ops; it must be pure"));
}

//===- within functions by jit ------------------------------------------------------------------------------------===//

struct Layer : nn::Module {
  nn::Linear fc{this, "fc", 6, 3};
  Tensor forward(Tensor x) override { return fc(x); }
};

/// The elements of all states of a module.
std::vector<std::vector<float>> elementsOf(nn::Module &module) {
  std::vector<std::vector<float>> all;
  for (auto &[name, value] : module.state_dict())
    all.push_back(value.to_vector<float>());
  return all;
}

TEST_F(Modules, FunctionsReadTheirParameters) {
  Net net;
  net.eval();
  int traces = 0;
  auto twice = jit([&](const Tensor &its) {
    ++traces;
    return net(its) * 2.0;
  });
  EXPECT_EQ(twice(x).to_vector<float>(), (net(x) * 2.0).to_vector<float>());
  int first = traces;
  for (Array parameter : net.parameters())
    parameter -= 0.25;
  EXPECT_EQ(twice(x).to_vector<float>(), (net(x) * 2.0).to_vector<float>()) << "an update is seen";
  EXPECT_EQ(traces, first);
  net.to(gpu(0));
  EXPECT_EQ(twice(x.to(gpu(0))).to_vector<float>(), (net(x.to(gpu(0))) * 2.0).to_vector<float>());
}

// Two nets with the same seed: one is called on arrays, the other one within a function.
TEST_F(Modules, FunctionsTrainThem) {
  Net a, b;
  for (Net *net : {&a, &b}) {
    manual_seed(7);
    net->parameters(); // creates the states, from this seed
  }
  auto loss = jit([&](const Tensor &its, const Tensor &label) { return cross_entropy(b(its), label); });
  optim::Trainer one(a, optim::Adam{.lr = 0.05}), two(b, optim::Adam{.lr = 0.05});
  for (int step = 0; step < 3; ++step) {
    auto tape = record();
    Array at = array(numbers(24, step), {4, 6}), expected = cross_entropy(a(at), y), actual = loss(at, y);
    EXPECT_EQ(actual.to_vector<float>(), expected.to_vector<float>()) << "the same dropout";
    expected.backward();
    actual.backward();
    one.step(), two.step();
    EXPECT_EQ(elementsOf(b), elementsOf(a)) << "gradients and statistics";
  }
  a.eval(), b.eval();
  EXPECT_EQ(loss(x, y).to_vector<float>(), cross_entropy(a(x), y).to_vector<float>());
}

TEST_F(Modules, FunctionsDifferentiateByTheirParameters) {
  Net net;
  net.eval();
  auto step = jit([&](const Tensor &its, const Tensor &label) {
    Tensor loss = cross_entropy(net(its), label);
    std::vector<Tensor> parameters;
    for (auto &[name, parameter] : net.named_parameters())
      parameters.push_back(parameter);
    return std::pair(loss, sluice::grad(loss, parameters));
  });
  auto [value, gradients] = step(x, y);
  {
    auto tape = record();
    cross_entropy(net(x), y).backward();
  }
  ASSERT_THAT(gradients, SizeIs(6));
  for (size_t i = 0; i < gradients.size(); ++i)
    EXPECT_EQ(gradients[i].to_vector<float>(), net.parameters()[i].grad().to_vector<float>()) << i;
}

// The gradient with respect to the argument; the parameters are constants.
TEST_F(Modules, FunctionsDifferentiateThroughThem) {
  Layer net;
  auto both = jit(value_and_grad([&](const Tensor &its) { return square(net(its)).sum(); }));
  auto [value, gradient] = both(x);
  x.attach_grad();
  {
    auto tape = record();
    square(net(x)).sum().backward();
  }
  EXPECT_EQ(gradient.to_vector<float>(), x.grad().to_vector<float>());
}

TEST_F(Modules, FunctionsCreateLazyLayers) {
  struct Lazy : nn::Module {
    nn::LazyLinear fc{this, "fc", 3};
    Tensor forward(Tensor x) override { return fc(x); }
  };
  Lazy encoder, decoder;
  auto both = jit([&](const Tensor &its) { return decoder(relu(encoder(its))); });
  Array z = both(x);
  EXPECT_THAT(encoder.parameters(), SizeIs(2));
  EXPECT_THAT(decoder.parameters()[0].shape(), ElementsAre(3, 3));
  EXPECT_EQ(z.to_vector<float>(), decoder(relu(encoder(x))).to_vector<float>());
  auto tape = record();
  both(x).backward();
  for (Lazy *net : {&encoder, &decoder})
    EXPECT_THAT(net->parameters()[1].grad().to_vector<float>(), testing::Contains(testing::Ne(0)));
}

TEST_F(Modules, FunctionsNeedTheirModules) {
  auto local = jit([](const Tensor &its) {
    Layer net;
    return net(its);
  });
  EXPECT_THAT(messageOf([&] { local(x); }), HasSubstr("jit: a module that the function calls was destroyed"));
  Net net;
  auto onArrays = jit([&](const Tensor &its) {
    Tensor z = net(its);
    net(x);
    return z;
  });
  EXPECT_THAT(messageOf([&] { onArrays(x); }), HasSubstr("cannot be called on arrays within forward"));
  EXPECT_THAT(net.eval()(x).shape(), ElementsAre(4, 3)) << "as before";
}

//===- optimizers -------------------------------------------------------------------------------------------------===//

TEST_F(Modules, TrainersUpdateArrays) {
  Array w = array({1.f, 2.f, 3.f}), fixed = array({1.f});
  w.attach_grad();
  optim::Trainer trainer({w}, optim::SGD{.lr = 0.5});
  auto step = [&] {
    auto tape = record();
    (w * w * fixed).sum().backward();
    trainer.step();
  };
  step();
  EXPECT_THAT(w.to_vector<float>(), ElementsAre(0, 0, 0)) << "w - 0.5 * 2 w";
  w.copy_(array({1.f, 2.f, 3.f}));
  trainer.set_learning_rate(0.25);
  EXPECT_EQ(trainer.learning_rate(), 0.25);
  step();
  EXPECT_THAT(w.to_vector<float>(), ElementsAre(0.5, 1, 1.5));
}

TEST_F(Modules, TrainersLeaveFrozenParameters) {
  Net net;
  net.fc1.requires_grad(false);
  std::vector<float> weight = net.parameters()[0].to_vector<float>(), other = net.parameters()[2].to_vector<float>();
  optim::Trainer trainer(net, optim::SGD{.lr = 0.5});
  auto tape = record();
  cross_entropy(net(x), y).backward();
  trainer.step();
  EXPECT_EQ(net.parameters()[0].to_vector<float>(), weight);
  EXPECT_NE(net.parameters()[2].to_vector<float>(), other);
}

TEST_F(Modules, TrainersMoveWithTheirParameters) {
  Net net;
  net.eval();
  optim::Trainer trainer(net, optim::SGD{.lr = 0.1, .momentum = 0.9});
  for (const Device &device : {cpu(), gpu(0)}) {
    net.to(device);
    auto tape = record();
    cross_entropy(net(x.to(device)), y.to(device)).backward();
    trainer.step();
    for (auto &[name, state] : trainer.state_dict())
      EXPECT_EQ(state.device(), device) << name;
  }
}

TEST_F(Modules, TrainersNeedGradients) {
  Net net;
  optim::Trainer trainer(net, optim::SGD{});
  EXPECT_THAT(messageOf([&] { trainer.step(); }), HasSubstr("step: a parameter [5, 6] has no gradient"));
  EXPECT_THAT(messageOf([&] { optim::Trainer(net, optim::SGD{}, {.loss_scale = optim::LossScale{}}); }),
              HasSubstr("loss_scale multiplies the loss"));
  EXPECT_THAT(messageOf([&] { optim::Trainer(std::vector<Array>{}, optim::SGD{}); }), HasSubstr("no parameter"));
}

} // namespace
} // namespace sluice
