// Convolutional networks on 3x224x224 or 3x299x299 images of 1000 classes. Batch norm, activation and pooling are
// separate groups.
#include "tools/bench/placement_graphs/GraphFamilies.h"
#include "tools/bench/placement_graphs/Repeat.h"
#include "tools/bench/placement_graphs/TrainingGraph.h"

namespace sluice::bench {

using Gradient = TrainingGraph::Gradient;
using Node = TrainingGraph::Node;

namespace {

struct Image {
  Node node;
  int channels, height, width;
};

struct Window {
  int height, width, stride = 1, padHeight = 0, padWidth = 0;

  /// Keeps the size of the image.
  static Window same(int height, int width) { return {height, width, 1, height / 2, width / 2}; }
  static Window square(int size, int stride, int pad) { return {size, size, stride, pad, pad}; }
};

/// Layers on a batch of images. Each batch requests the same parameters in the same order, and shares those of the
/// first batch.
class ImageLayers {
public:
  explicit ImageLayers(int size) : size(size) {}

  Image nextBatch() {
    asked = 0;
    return {graph.data(double(kBatch) * 3 * size * size), 3, size, size};
  }

  Image convolve(Image x, int channels, Window window, bool hasBias) {
    Image result = slide(x, window);
    result.channels = channels;
    double weights = double(window.height) * window.width * x.channels * channels + (hasBias ? channels : 0);
    double products = double(window.height) * window.width * x.channels * elements(result);
    result.node = graph.layer(Gradient::Linear, 2 * products, elements(result), {x.node}, {parameter(weights)});
    return result;
  }
  Image normalize(Image x) {
    x.node = graph.layer(Gradient::Nonlinear, 8 * elements(x), elements(x), {x.node}, {parameter(2 * x.channels)});
    return x;
  }
  Image rectify(Image x) {
    x.node = graph.pointwise(Gradient::Nonlinear, elements(x), {x.node});
    return x;
  }
  /// Convolution, batch norm, activation.
  Image unit(Image x, int channels, Window window) { return rectify(normalize(convolve(x, channels, window, false))); }
  Image pool(Image x, Window window) {
    Image result = slide(x, window);
    double flops = double(window.height) * window.width * elements(result);
    result.node = graph.layer(Gradient::Nonlinear, flops, elements(result), {x.node});
    return result;
  }
  Image add(Image a, Image b) {
    a.node = graph.pointwise(Gradient::Passes, elements(a), {a.node, b.node});
    return a;
  }
  Image concatenate(std::vector<Image> parts) {
    Image result = parts.front();
    result.channels = 0;
    TrainingGraph::Nodes nodes;
    for (const Image &part : parts) {
      result.channels += part.channels;
      nodes.push_back(part.node);
    }
    result.node = graph.pointwise(Gradient::Slices, elements(result), std::move(nodes));
    return result;
  }
  /// A convolution with a window of the whole image.
  Image connect(Image x, int features) { return convolve(x, features, {x.height, x.width}, true); }
  void classify(Image x) { graph.loss(connect(x, 1000).node, graph.data(kBatch)); }

  WorkGraph finish() { return graph.finish(); }

private:
  static constexpr int kBatch = 32;

  static double elements(const Image &x) { return double(kBatch) * x.channels * x.height * x.width; }
  static Image slide(Image x, const Window &window) {
    x.height = (x.height + 2 * window.padHeight - window.height) / window.stride + 1;
    x.width = (x.width + 2 * window.padWidth - window.width) / window.stride + 1;
    return x;
  }
  Node parameter(double elements) {
    if (asked == parameters.size())
      parameters.push_back(graph.parameter(elements));
    return parameters[asked++];
  }

  int size;
  TrainingGraph graph;
  TrainingGraph::Nodes parameters;
  size_t asked = 0;
};

} // namespace

static WorkGraph train(uint32_t groups, int size, void (*network)(ImageLayers &, Image)) {
  return repeatToSize(groups, [&](uint32_t batches) {
    ImageLayers layers(size);
    for (uint32_t batch = 0; batch < batches; ++batch)
      network(layers, layers.nextBatch());
    return layers.finish();
  });
}

/// Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks" (2012), figure 2 as one column,
/// without groups, response normalization and dropout.
static void alexNet(ImageLayers &layers, Image x) {
  const Window pooling = Window::square(3, 2, 0);
  auto convolve = [&](int channels, Window window) { x = layers.rectify(layers.convolve(x, channels, window, true)); };
  convolve(96, Window::square(11, 4, 2));
  x = layers.pool(x, pooling);
  convolve(256, Window::same(5, 5));
  x = layers.pool(x, pooling);
  for (int channels : {384, 384, 256})
    convolve(channels, Window::same(3, 3));
  x = layers.pool(x, pooling);
  for (int features : {4096, 4096})
    x = layers.rectify(layers.connect(x, features));
  layers.classify(x);
}

/// Simonyan and Zisserman, "Very Deep Convolutional Networks" (arXiv:1409.1556), table 1, column D.
static void vgg16(ImageLayers &layers, Image x) {
  struct Stage {
    int convolutions, channels;
  };
  for (Stage stage : {Stage{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}) {
    for (int i = 0; i < stage.convolutions; ++i)
      x = layers.rectify(layers.convolve(x, stage.channels, Window::same(3, 3), true));
    x = layers.pool(x, Window::square(2, 2, 0));
  }
  for (int features : {4096, 4096})
    x = layers.rectify(layers.connect(x, features));
  layers.classify(x);
}

/// He et al., "Deep Residual Learning" (arXiv:1512.03385), table 1; the stride is on the 3x3 convolution.
static void resNet50(ImageLayers &layers, Image x) {
  x = layers.pool(layers.unit(x, 64, Window::square(7, 2, 3)), Window::square(3, 2, 1));
  int width = 64;
  for (int blocks : {3, 4, 6, 3}) {
    for (int block = 0; block < blocks; ++block) {
      int stride = block == 0 && width > 64 ? 2 : 1;
      Image inner = layers.unit(x, width, Window::same(1, 1));
      inner = layers.unit(inner, width, Window::square(3, stride, 1));
      inner = layers.normalize(layers.convolve(inner, 4 * width, Window::same(1, 1), false));
      if (block == 0)
        x = layers.normalize(layers.convolve(x, 4 * width, Window::square(1, stride, 0), false));
      x = layers.rectify(layers.add(inner, x));
    }
    width *= 2;
  }
  layers.classify(layers.pool(x, {x.height, x.width}));
}

/// Szegedy et al., "Rethinking the Inception Architecture" (arXiv:1512.00567), table 1 and figures 5 to 7, without the
/// auxiliary classifier; the widths within modules are those of the authors' release, which torchvision has too.
static void inceptionV3(ImageLayers &layers, Image x) {
  const Window one = Window::same(1, 1), three = Window::same(3, 3), row = Window::same(1, 7),
               column = Window::same(7, 1), down = Window::square(3, 2, 0);
  auto units = [&](Image from, std::initializer_list<std::pair<int, Window>> chain) {
    for (const auto &[channels, window] : chain)
      from = layers.unit(from, channels, window);
    return from;
  };
  auto pooled = [&](int channels) { return layers.unit(layers.pool(x, three), channels, one); };

  x = units(x, {{32, down}, {32, Window::square(3, 1, 0)}, {64, three}});
  x = layers.pool(x, down);
  x = units(x, {{80, one}, {192, Window::square(3, 1, 0)}});
  x = layers.pool(x, down);
  for (int poolChannels : {32, 64, 64})
    x = layers.concatenate({units(x, {{64, one}}), units(x, {{48, one}, {64, Window::same(5, 5)}}),
                            units(x, {{64, one}, {96, three}, {96, three}}), pooled(poolChannels)});
  x = layers.concatenate(
      {units(x, {{384, down}}), units(x, {{64, one}, {96, three}, {96, down}}), layers.pool(x, down)});
  for (int c : {128, 160, 160, 192})
    x = layers.concatenate({units(x, {{192, one}}), units(x, {{c, one}, {c, row}, {192, column}}),
                            units(x, {{c, one}, {c, column}, {c, row}, {c, column}, {192, row}}), pooled(192)});
  x = layers.concatenate({units(x, {{192, one}, {320, down}}),
                          units(x, {{192, one}, {192, row}, {192, column}, {192, down}}), layers.pool(x, down)});
  for (int module = 0; module < 2; ++module) {
    auto split = [&](Image from) {
      return layers.concatenate(
          {layers.unit(from, 384, Window::same(1, 3)), layers.unit(from, 384, Window::same(3, 1))});
    };
    x = layers.concatenate({units(x, {{320, one}}), split(units(x, {{384, one}})),
                            split(units(x, {{448, one}, {384, three}})), pooled(192)});
  }
  layers.classify(layers.pool(x, {x.height, x.width}));
}

WorkGraph alexNet(uint32_t groups, uint32_t) { return train(groups, 224, alexNet); }
WorkGraph vgg16(uint32_t groups, uint32_t) { return train(groups, 224, vgg16); }
WorkGraph resNet50(uint32_t groups, uint32_t) { return train(groups, 224, resNet50); }
WorkGraph inceptionV3(uint32_t groups, uint32_t) { return train(groups, 299, inceptionV3); }

} // namespace sluice::bench
