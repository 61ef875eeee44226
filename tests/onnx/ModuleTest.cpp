// nn::Onnx as a part of a graph: its results, parameters and pins.
#include "frontend/graph/GraphImpl.h"
#include "tests/TemporaryFolder.h"
#include <sluice/compile.h>
#include <sluice/sluice.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using sluice::test::contentOf;
using sluice::test::TemporaryFolder;
using testing::ElementsAre;

namespace {

std::string varint(size_t value) {
  return value < 128 ? std::string(1, char(value)) : char((value & 127) | 128) + varint(value >> 7);
}
std::string field(unsigned number, size_t value) { return varint(number << 3) + varint(value); }
std::string field(unsigned number, const std::string &content) {
  return varint(number << 3 | 2) + varint(content.size()) + content;
}

std::string node(const std::string &op, const std::vector<std::string> &inputs, const std::string &output) {
  std::string content;
  for (const std::string &input : inputs)
    content += field(1, input);
  return field(1, content + field(2, output) + field(3, "/" + op) + field(4, op));
}

std::string value(unsigned number, const std::string &name, size_t columns) {
  std::string shape = field(1, field(2, "batch")) + field(1, field(1, columns));
  return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, shape))));
}

/// h = x w, y = relu(h), and z = -h, for 3 columns.
std::string threeOps() {
  std::vector<float> weights{0.5F, -1, 0.25F, 2, 0.125F, -0.5F, 1, -2, 0.75F};
  std::string bytes(reinterpret_cast<const char *>(weights.data()), weights.size() * sizeof(float));
  std::string weight = field(1, 3) + field(1, 3) + field(2, 1) + field(8, "w") + field(9, bytes);
  std::string graph = node("MatMul", {"x", "w"}, "h") + node("Relu", {"h"}, "y") + node("Neg", {"h"}, "z") +
                      field(2, "g") + field(5, weight) + value(11, "x", 3) + value(12, "y", 3) + value(12, "z", 3);
  return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17));
}

struct OnnxModule : testing::Test {
  OnnxModule() { g.set_devices("cpu,sim:0"); }

  TemporaryFolder folder;
  std::string path = folder.write("three.onnx", threeOps());
  Graph g{"test"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3});

  /// The ops pinned to the first accelerator, in order.
  std::vector<std::string> pinned() {
    std::vector<std::string> names;
    detail::Access::graph(g)->graph->walk([&](mlir::Operation *op) {
      if (mlir::StringAttr pin = ir::getPin(op); pin && pin == "acc0")
        names.push_back(op->getName().stripDialect().str());
    });
    return names;
  }
};

/// A program around the file: the work before and after it stays on the host.
std::vector<float> outputOf(const std::string &path, bool isPinned, const std::string &dump) {
  Graph g{"around"};
  g.set_capacity(4);
  g.set_devices("cpu,sim:0");
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3});
  nn::Onnx net{g, path};
  if (isPinned)
    net.pin(gpu(0));
  std::vector<Tensor> results = net(std::vector{x * 0.3});
  g.output("out", exp(results[0]) + results[1]);
  Program program = compile(g, {.copies = "insert", .dump_ir = dump});
  program.run("init", 4);
  program.set_input("x", std::vector<float>{1, 2, 3, -1, 0.5F, 2, 0, -3, 1, 0.1F, 0.2F, 0.7F});
  program.run("predict", 4);
  return program.output<float>("out");
}

size_t copiesIn(const std::string &folder) {
  std::string text;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.path().string().ends_with("copied.mlir"))
      text += contentOf(entry.path());
  size_t count = 0;
  for (size_t at = text.find("sluice.copy "); at != std::string::npos; at = text.find("sluice.copy ", at + 1))
    ++count;
  return count;
}

} // namespace

TEST_F(OnnxModule, HoldsItsPin) {
  nn::Onnx net{g, path};
  net.pin(gpu(0));
  net(x);
  EXPECT_THAT(pinned(), ElementsAre("einsum", "relu", "neg"));
  EXPECT_EQ(net.named_parameters().front().second.device(), gpu(0));
}

TEST_F(OnnxModule, HoldsItsPinWithSeveralResults) {
  nn::Onnx net{g, path};
  net.pin(gpu(0));
  net(std::vector{x});
  EXPECT_THAT(pinned(), ElementsAre("einsum", "relu", "neg"));
  relu(x);
  EXPECT_THAT(pinned(), ElementsAre("einsum", "relu", "neg")) << "the pin ends with the call";
}

TEST_F(OnnxModule, HoldsThePinOfItsParent) {
  nn::Module root{g};
  root.pin(gpu(0));
  nn::Onnx net{&root, "net", path};
  net(std::vector{x});
  EXPECT_THAT(pinned(), ElementsAre("einsum", "relu", "neg"));
  EXPECT_EQ(net.named_parameters().front().first, "net.w");
}

TEST_F(OnnxModule, MovesWithItsParameters) {
  nn::Onnx net{g, path};
  net.to(gpu(0));
  EXPECT_EQ(net(x.to(gpu(0))).device(), gpu(0));
}

TEST_F(OnnxModule, ComputesTheSameBitsOnAnotherDevice) {
  std::vector<float> host = outputOf(path, /*isPinned=*/false, folder / "host");
  EXPECT_EQ(outputOf(path, /*isPinned=*/true, folder / "pinned"), host);
  EXPECT_EQ(copiesIn(folder / "host"), 0u);
  EXPECT_EQ(copiesIn(folder / "pinned"), 3u) << "to the device: x; from it: y and z";
}
