// `eval`: loss and metrics on the test data.
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/ReadAhead.h"
#include "runtime/runner/verbs/Verbs.h"

#include <algorithm>
#include <numeric>

namespace sluice::runtime {

std::optional<Means> evaluate(Instance &instance, const Feed &feed, int64_t batch, Progress &progress,
                              SharedSignal *signal) {
  const Entry &step = instance.entry("eval_step");
  Means means(instance, step);
  std::vector<uint32_t> order(static_cast<size_t>(feed.rows()));
  std::iota(order.begin(), order.end(), 0u);
  ReadAhead batches(feed, order, batch);
  while (means.rows() < feed.rows()) {
    if (signal && signal->came())
      return std::nullopt;
    int64_t rows = std::min(batch, feed.rows() - means.rows());
    feed.set(instance, batches.next(), rows);
    instance.run(step, rows);
    means.add(rows);
    progress.update("test", means.rows(), feed.rows(), concat(means.rows() * 100 / feed.rows(), "%"));
  }
  progress.clear();
  return means;
}

void addOverCalls(Json &line, const std::vector<NamedFigure> &figures, std::string_view prefix) {
  for (const NamedFigure &figure : figures)
    if (figure.isOverCalls)
      line[overCallsKey].push_back(concat(prefix, figure.name));
}

void warnOfUndefined(const std::vector<NamedFigure> &figures, std::string_view prefix) {
  for (const NamedFigure &figure : figures)
    if (figure.isUndefined)
      talk(concat("warning: ", prefix, figure.name,
                  " is null: its formula gives no number for the sums over all rows, such as 0 / 0 ",
                  "where no label counts"));
}

int runEval(const Options &options, Processes &processes) {
  Instance instance = startInstance(options, processes.group());
  requireWeights("eval", options, instance.plan());
  beginStates(instance, options, /*seed=*/0, checkSettings(instance.plan(), options.settings));
  Feed feed(instance.plan(), instance.entry("eval_step"),
            evaluationTable(DataPath(dataPath(options, instance.plan()), options.dataOptions)), options.columns);
  int64_t batch = batchRows(options, instance.plan(), feed.fixedRows());
  if (processes.isFirst())
    tellWhatIsLeftOut(options, feed, "rows");
  feed.load();
  processes.agree({{"the number of rows", std::to_string(feed.rows())}, {"the batch", std::to_string(batch)}},
                  instance);
  Progress progress(!options.quiet && !options.json);
  startTrace(instance, options);
  std::optional<Means> means = evaluate(instance, feed, batch, progress, /*signal=*/nullptr);
  Json result;
  std::string text;
  std::vector<NamedFigure> figures = means->results();
  for (const NamedFigure &figure : figures) {
    result[figure.name] = figure.value;
    bool share = figure.name == "accuracy";
    text += concat(text.empty() ? "" : "  ", figure.name, " ",
                   share ? fixedText(100 * figure.value, 2) + " %" : fixedText(figure.value, 4),
                   figure.isOverCalls ? " (mean over calls)" : "");
  }
  addOverCalls(result, figures, /*prefix=*/"");
  if (processes.isFirst())
    warnOfUndefined(figures, "");
  result[rowsKey] = feed.rows();
  if (processes.isFirst())
    printLine(options.json ? result.dump() : concat(text, "  (", feed.rows(), " rows)"));
  finishRun(instance, options, instance.times().take());
  return 0;
}

} // namespace sluice::runtime
