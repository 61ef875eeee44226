#include "tests/arrays/RandomProgram.h"

#include <algorithm>
#include <random>

namespace sluice::test {

namespace {

using Sizes = std::vector<std::int64_t>;

class Generator {
public:
  Generator(std::uint32_t seed, size_t devices) : random(seed * 2654435761u + 17), devices(devices) {}

  RandomProgram run(size_t most) {
    for (int i = 0; i < 3; ++i)
      addInput();
    program.ints = {0, 1, 0};
    size_t count = 2 + size_t(below(std::int64_t(most) - 1));
    while (program.steps.size() < count)
      addStep();
    return std::move(program);
  }

private:
  std::int64_t below(std::int64_t bound) { return std::int64_t(random() % std::uint64_t(bound)); }
  double number() { return double(below(4001) - 2000) / 1000; }
  bool chance(int oneIn) { return below(oneIn) == 0; }

  void addInput() {
    Sizes shape;
    for (std::int64_t rank = 1 + below(3); rank > 0; --rank)
      shape.push_back(2 + below(4));
    std::vector<double> elements;
    std::int64_t count = 1;
    for (std::int64_t size : shape)
      count *= size;
    for (std::int64_t i = 0; i < count; ++i)
      elements.push_back(number());
    program.inputShapes.push_back(shape);
    program.inputs.push_back(std::move(elements));
    shapes.push_back(std::move(shape));
    places.push_back(0);
  }

  size_t add(Step step, Sizes shape, size_t place) {
    program.steps.push_back(std::move(step));
    shapes.push_back(std::move(shape));
    places.push_back(place);
    return shapes.size() - 1;
  }

  /// The value on a device, by a copy if it is elsewhere.
  size_t on(size_t value, size_t place) {
    return places[value] == place ? value : add({"to", {value}, {std::int64_t(place)}, {}}, shapes[value], place);
  }

  /// A value of this shape, from x by functions that broadcast or reduce; x itself if it has the shape.
  size_t shaped(size_t value, const Sizes &shape) {
    if (shapes[value] == shape)
      return value;
    while (!shapes[value].empty()) {
      Sizes rest(shapes[value].begin(), shapes[value].end() - 1);
      value = add({"mean", {value}, {std::int64_t(rest.size()), 0}, {}}, rest, places[value]);
    }
    return add({"expand", {value}, shape, {}}, shape, places[value]);
  }

  size_t anyValue() {
    auto count = std::int64_t(shapes.size());
    return size_t(chance(2) ? count - 1 - below(std::min<std::int64_t>(count, 3)) : below(count));
  }

  void addStep() {
    size_t x = anyValue();
    Sizes shape = shapes[x];
    size_t place = places[x];
    auto rank = std::int64_t(shape.size());
    if (devices > 1 && chance(6)) {
      on(x, size_t(below(std::int64_t(devices))));
      return;
    }
    std::int64_t dim = rank ? below(rank) : 0;
    switch (below(12)) {
    case 0:
    case 1:
    case 2: {
      static const char *const names[] = {"tanh",     "sigmoid", "sin", "cos",  "relu", "abs",   "neg",
                                          "softplus", "silu",    "erf", "gelu", "elu",  "log1p", "sqrt"};
      add({names[below(14)], {x}, {}, {}}, shape, place);
      return;
    }
    case 3: // of bounded operands
      x = add({"tanh", {x}, {}, {}}, shape, place);
      add({chance(2) ? "exp" : "square", {x}, {}, {}}, shape, place);
      return;
    case 4:
    case 5: {
      static const char *const names[] = {"add", "sub", "mul", "maximum", "minimum", "div"};
      size_t y = on(shaped(anyValue(), shape), place);
      add({names[below(6)], {x, y}, {}, {}}, shape, place);
      return;
    }
    case 6:
      if (chance(2)) {
        add({chance(2) ? "add_number" : "number_mul", {x}, {}, {number()}}, shape, place);
      } else {
        size_t y = on(shaped(anyValue(), shape), place), z = on(shaped(anyValue(), shape), place);
        if (chance(2))
          add({"where", {x, y, z}, {}, {}}, shape, place);
        else
          add({"masked_fill", {x, y}, {}, {number()}}, shape, place);
      }
      return;
    case 7: { // reductions
      if (rank == 0)
        return;
      static const char *const names[] = {"sum", "mean", "max", "var", "logsumexp"};
      bool keeps = chance(2);
      Sizes less = shape;
      if (keeps)
        less[size_t(dim)] = 1;
      else
        less.erase(less.begin() + dim);
      add({names[below(5)], {x}, {dim, keeps}, {}}, less, place);
      return;
    }
    case 8: { // along a dimension
      if (rank == 0)
        return;
      static const char *const names[] = {"softmax", "log_softmax", "cumsum", "flip"};
      if (chance(5))
        add({"layer_norm", {x}, {shape.back()}, {}}, shape, place);
      else
        add({names[below(4)], {x}, {dim}, {}}, shape, place);
      return;
    }
    case 9:
    case 10:
      addMovement(x, dim);
      return;
    default:
      addProduct(x);
      return;
    }
  }

  void addMovement(size_t x, std::int64_t dim) {
    Sizes shape = shapes[x];
    size_t place = places[x];
    auto rank = std::int64_t(shape.size());
    switch (rank == 0 ? 0 : below(8)) {
    case 0: {
      std::int64_t at = below(rank + 1);
      shape.insert(shape.begin() + at, 1);
      add({"unsqueeze", {x}, {at}, {}}, shape, place);
      return;
    }
    case 1: {
      std::int64_t elements = 1;
      for (std::int64_t size : shape)
        elements *= size;
      add({"reshape", {x}, {elements}, {}}, {elements}, place);
      return;
    }
    case 2: {
      std::int64_t other = below(rank);
      std::swap(shape[size_t(dim)], shape[size_t(other)]);
      add({"transpose", {x}, {dim, other}, {}}, shape, place);
      return;
    }
    case 3: {
      std::int64_t start = below(shape[size_t(dim)]), step = 1 + below(2);
      std::int64_t end = start + 1 + below(shape[size_t(dim)] - start);
      shape[size_t(dim)] = (end - start + step - 1) / step;
      add({"slice", {x}, {dim, start, end, step}, {}}, shape, place);
      return;
    }
    case 4: {
      std::int64_t at = below(shape[size_t(dim)]);
      shape.erase(shape.begin() + dim);
      add({"select", {x}, {dim, at}, {}}, shape, place);
      return;
    }
    case 5: {
      std::int64_t before = below(2), after = 1 + below(2);
      shape.back() += before + after;
      add({"pad", {x}, {before, after}, {number()}}, shape, place);
      return;
    }
    case 6: {
      size_t y = on(shaped(anyValue(), shape), place);
      if (chance(2)) {
        shape[size_t(dim)] *= 2;
        add({"cat", {x, y}, {dim}, {}}, shape, place);
      } else {
        shape.insert(shape.begin() + dim, 2);
        add({"stack", {x, y}, {dim}, {}}, shape, place);
      }
      return;
    }
    default:
      if (rank >= 2 && chance(2)) {
        add({"tril", {x}, {below(3) - 1}, {}}, shape, place);
      } else if (shape[size_t(dim)] >= 2) {
        shape[size_t(dim)] = std::int64_t(program.ints.size());
        add({"index_select", {x}, {dim, std::int64_t(place)}, {}}, shape, place);
      }
      return;
    }
  }

  void addProduct(size_t x) {
    Sizes shape = shapes[x];
    if (shape.size() < 2)
      return;
    std::int64_t columns = 1 + below(5);
    size_t place = places[x];
    if (chance(2)) {
      size_t w = on(shaped(anyValue(), {columns, shape.back()}), place);
      shape.back() = columns;
      add({"linear", {x, w}, {}, {}}, shape, place);
    } else {
      size_t y = on(shaped(anyValue(), {shape.back(), columns}), place);
      shape.back() = columns;
      add({"matmul", {x, y}, {}, {}}, shape, place);
    }
  }

  std::mt19937 random;
  size_t devices;
  RandomProgram program;
  std::vector<Sizes> shapes;
  std::vector<size_t> places;
};

} // namespace

RandomProgram randomProgram(std::uint32_t seed, size_t most, size_t devices) {
  return Generator(seed, devices).run(most);
}

} // namespace sluice::test
