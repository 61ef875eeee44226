#include "backends/cpu/compiler/product/window/WinogradPlan.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace sluice::cpu {

// ---- The model of time --------------------------------------------------------------------------------------------

// Cycles to transform one vector, with operands in the first-level cache: the patch of a tile, a filter, and the sums of
// a tile with their epilogue.
struct TransformCycles {
  double image, filter, output;
};
static constexpr TransformCycles cyclesOf2 = {45, 30, 80}, cyclesOf4 = {130, 100, 180};

// The share of the multiply-adds' peak that register tiles reach.
static constexpr double shareOfDirect = 0.92, shareOfWinograd = 0.85;
// Cycles to write a vector of 64 bytes to the second-level cache, to write it beyond, and to read it from there.
static constexpr double writingToL2 = 4, writingFar = 14, readingFar = 8;
// Predictions that differ by less do not count: the direct sum, then F(2x2), has the smaller errors.
static constexpr double worthwhile = 0.9;
// Shorter direct sums are faster on several cores, because they have one stage and smaller tasks.
static constexpr double fewestDirectCycles = 4e5;

// Output channels of a wide group, and the tasks into which few tiles are cut.
static constexpr int64_t wideGroup = 64, fewestTasks = 8;
// Multiply-adds of a task: some 20 microseconds.
static constexpr int64_t productsOfTask = 2 << 20;

// Bytes of transformed filters, or of sums, that a task keeps in the second-level cache.
static int64_t bytesOfTask(const Target &target) { return std::max<int64_t>(target.l2 / 3, 128 << 10); }

static bool isPlainAxis(const WindowAxis &axis) {
  return axis.taps == 3 && axis.kernel == 3 && axis.kernelStart == 0 && axis.kernelStep == 1 && axis.inputStep == 1 &&
         axis.tapStep == 1 && axis.outputStart == 0 && axis.outputStep == 1 && axis.outputs > 0;
}

namespace {

class Planner {
public:
  Planner(const WindowSum &op, int64_t outputs, const Target &target)
      : op(op), target(target), lanes(target.lanes(32)), vectors(llvm::divideCeil(op.outputChannels, lanes)) {
    plan.outputs = outputs;
    plan.down = llvm::divideCeil(op.phases[0].height.outputs, outputs);
    plan.across = llvm::divideCeil(op.phases[0].width.outputs, outputs);
    tiles = op.rows * plan.tilesOfImage();
    positions = plan.transforms().positions();
  }

  WinogradPlan make() {
    WinogradPlan filtersFirst = cut(false), imagesFirst = cut(true);
    return imagesFirst.cycles < filtersFirst.cycles ? imagesFirst : filtersFirst;
  }

private:
  WinogradPlan cut(bool imagesFirst) {
    plan.imagesFirst = imagesFirst;
    cutTasks();
    chooseRegisterTile();
    plan.groupsOfTask = imagesFirst ? 1 : plan.groups.count();
    plan.terms = imagesFirst ? termsOfTask() : op.inputChannels;
    plan.block = imagesFirst ? plan.tilesOfTask : blockOfTask();
    plan.cycles = predict();
    return plan;
  }

  /// Tasks as even as they can be, of about equal work. Images first, the tiles of a task share its filters.
  void cutTasks() {
    int64_t ofImage = plan.tilesOfImage(), ofTile = positions * op.inputChannels * op.outputChannels;
    int64_t channels = std::min<int64_t>(wideGroup, op.outputChannels);
    int64_t wanted = plan.imagesFirst ? bytesOfTask(target) / (positions * 4 * channels) : productsOfTask / ofTile;
    wanted = std::max<int64_t>(1, wanted);
    int64_t few = plan.imagesFirst ? 1 : fewTasks(2 * tiles * ofTile) / op.rows;
    plan.tasksOfImage = std::clamp<int64_t>(std::max<int64_t>(llvm::divideCeil(ofImage, wanted), few), 1, ofImage);
    plan.tilesOfTask = llvm::divideCeil(ofImage, plan.tasksOfImage);
    plan.tasksOfImage = llvm::divideCeil(ofImage, plan.tilesOfTask);
    plan.imagesPerTask = 1;
    if (plan.tasksOfImage == 1) {
      int64_t most = plan.imagesFirst ? op.rows : std::max<int64_t>(1, op.rows / 16);
      plan.imagesPerTask = std::clamp<int64_t>(wanted / ofImage, 1, most);
      plan.tilesOfTask = plan.imagesPerTask * ofImage;
    }
  }

  /// The sums of a register tile for all positions fit in the first-level cache.
  void chooseRegisterTile() {
    TileProblem problem;
    problem.rows = plan.tilesOfTask;
    problem.columns = op.outputChannels;
    problem.panel = lanes;
    problem.depth = op.inputChannels;
    problem.rowBytes = op.inputChannels * 4;
    problem.wholeRows = true;
    problem.mostSums = target.l1 * 2 / 3 / (positions * lanes * 4);
    if (plan.imagesFirst) // groups are tasks
      problem.mostVectors =
          std::clamp<int64_t>(vectors * llvm::divideCeil(tiles, plan.tilesOfTask) / fewestTasks, 1, wideGroup / lanes);
    plan.groups = chooseTiles(problem, target);
    plan.tileRows = plan.groups.full ? plan.groups.rows : plan.groups.tailRows;
  }

  /// Whole register tiles, in the first-level cache if one of them fits.
  int64_t blockOfTask() const {
    int64_t fitting = target.l1 / 2 / (positions * op.inputChannels * 4);
    return std::min(plan.tilesOfTask, std::max<int64_t>(1, fitting / plan.tileRows) * plan.tileRows);
  }

  /// A divisor of the channels, so that their transformed filters fit in the cache.
  int64_t termsOfTask() const {
    int64_t perTerm = positions * plan.groups.width * 4, parts = 1;
    while (op.inputChannels % parts != 0 ||
           (op.inputChannels / parts > 2 * lanes && op.inputChannels / parts * perTerm > bytesOfTask(target)))
      ++parts;
    return op.inputChannels / parts;
  }

  double predict() const {
    const TransformCycles &its = plan.outputs == 2 ? cyclesOf2 : cyclesOf4;
    auto inputVectors = double(llvm::divideCeil(op.inputChannels, lanes)), c = double(op.inputChannels);
    auto outputVectors = double(vectors), all = double(tiles);
    double tasks = std::max(1.0, all / double(plan.tilesOfTask)), vectorBytes = double(lanes) * 4;
    double rows = tasks * double(llvm::alignTo(plan.tilesOfTask, plan.tileRows));
    double products = rows * double(positions) * c * outputVectors / double(target.fmaPorts) / shareOfWinograd;
    double filters = c * outputVectors * (plan.imagesFirst ? tasks : 1), images = all * inputVectors;
    double bytesOfFilters = c * outputVectors * double(positions) * vectorBytes;
    double bytesOfImages = all * inputVectors * double(positions) * vectorBytes;
    double cycles = products + filters * its.filter + images * its.image + all * outputVectors * its.output;
    // Vectors that are stored to the caches, and those that are read faster than they arrive.
    double ofL2 = writingToL2 * double(positions) * vectorBytes / 64;
    double far = writingFar / writingToL2, nearBytes = double(target.l2) / 2;
    if (plan.imagesFirst) {
      bool isFar = bytesOfImages > nearBytes;
      double reading = std::max(0.0, readingFar - double(plan.groups.width) / double(target.fmaPorts));
      cycles += filters * ofL2 + images * ofL2 * (isFar ? far : 1);
      return cycles + (isFar ? bytesOfImages / 64 * double(plan.groups.count()) * reading : 0);
    }
    bool isFar = bytesOfFilters > nearBytes;
    double reading = std::max(0.0, readingFar - double(plan.tileRows) / double(target.fmaPorts));
    bool isNear = double(plan.block) * inputVectors * double(positions) * vectorBytes <= double(target.l1) / 2;
    cycles += filters * ofL2 * (isFar ? far : 1) + (isNear ? 0 : images * ofL2);
    return cycles + (isFar ? bytesOfFilters / 64 * rows / double(plan.tileRows) * reading : 0);
  }

  const WindowSum &op;
  const Target &target;
  int64_t lanes, vectors, tiles, positions;
  WinogradPlan plan;
};

} // namespace

std::string WinogradPlan::text() const {
  std::string m = std::to_string(outputs);
  return "F(" + m + "x" + m + "), " + std::to_string(tileRows) + " x " +
         std::to_string(groups.full ? groups.width : groups.tail);
}

// Whether there is a plan for the sum.
static bool isSupported(const WindowSum &sum, const Target &target) {
  int64_t lanes = target.lanes(32);
  return sum.element.isF32() && sum.phases.size() == 1 && isPlainAxis(sum.phases[0].height) &&
         isPlainAxis(sum.phases[0].width) && sum.inputChannels >= lanes && sum.outputChannels >= lanes;
}

std::optional<WinogradPlan> planWinograd(const WindowSum &sum, int64_t outputs, const Target &target) {
  if (!isSupported(sum, target))
    return std::nullopt;
  return Planner(sum, outputs, target).make();
}

// Of the direct sum: the taps inside of the images.
static double directCycles(const WindowSum &sum, const Target &target) {
  int64_t taps = sum.phases[0].height.validTaps() * sum.phases[0].width.validTaps();
  auto terms = double(taps * sum.inputChannels);
  auto vectors = double(llvm::divideCeil(sum.outputChannels, target.lanes(32)));
  return double(sum.rows) * terms * vectors / double(target.fmaPorts) / shareOfDirect;
}

std::optional<WinogradPlan> chooseWinograd(const WindowSum &sum, const Target &target) {
  if (!target.fastMath || !isSupported(sum, target))
    return std::nullopt;
  double least = directCycles(sum, target);
  if (least < fewestDirectCycles)
    return std::nullopt;
  std::optional<WinogradPlan> best;
  for (int64_t outputs : {2, 4}) {
    WinogradPlan plan = Planner(sum, outputs, target).make();
    if (plan.cycles < worthwhile * least) {
      least = plan.cycles;
      best = plan;
    }
  }
  return best;
}

} // namespace sluice::cpu
