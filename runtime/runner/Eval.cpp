// `eval`: loss and accuracy on the test images.
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/exec/Initialise.h"
#include "runtime/io/Weights.h"
#include "runtime/runner/Feed.h"
#include "runtime/runner/Signals.h"
#include "runtime/runner/Verbs.h"

#include <algorithm>

namespace sluice::runtime {

std::optional<Means> evaluate(Instance &instance, const ImageSet &images, int64_t batch, Progress &progress) {
  const Entry &step = instance.entry("eval_step");
  Feed feed(instance, step, images);
  Means means(instance, step);
  std::vector<uint32_t> order = inOrder(images.count);
  while (means.rows() < images.count) {
    if (caughtSignal())
      return std::nullopt;
    int64_t rows = std::min(batch, images.count - means.rows());
    feed.fill(std::span(order).subspan(static_cast<size_t>(means.rows()), static_cast<size_t>(rows)));
    instance.run(step, rows);
    means.add(rows);
    progress.update("test", means.rows(), images.count, concat(means.rows() * 100 / images.count, "%"));
  }
  progress.clear();
  return means;
}

int runEval(const Options &options) {
  Instance instance = startInstance(options);
  if (options.weights.empty() && instance.plan().parameterCount() > 0)
    failUsage("eval needs --weights FILE");
  int64_t batch = batchRows(options, instance.plan());
  initialise(instance, 0);
  if (!options.weights.empty())
    loadWeights(instance, options.weights);
  ImageSet images =
      readImages(dataFolder(options, instance.plan()), "t10k", fitting(instance.plan(), instance.entry("eval_step")));
  Progress progress(!options.quiet && !options.json);
  startTrace(instance, options);
  std::optional<Means> means = evaluate(instance, images, batch, progress);
  Json result;
  std::string text;
  for (size_t i = 0; i < means->outputs().size(); ++i) {
    const std::string &name = means->outputs()[i]->name;
    result[name] = means->mean(i);
    bool share = name == "accuracy";
    text += concat(text.empty() ? "" : "  ", name, " ",
                   share ? fixedText(100 * means->mean(i), 2) + " %" : fixedText(means->mean(i), 4));
  }
  result["images"] = images.count;
  printLine(options.json ? result.dump() : concat(text, "  (", images.count, " images)"));
  finishRun(instance, options, instance.times().take());
  return 0;
}

} // namespace sluice::runtime
