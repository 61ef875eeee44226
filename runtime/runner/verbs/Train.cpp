// `train`: trains epochs over shuffled rows, or over row streams if rows carry states. Writes checkpoints; a resumed
// run computes the same bits.
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/ReadAhead.h"
#include "runtime/instance/Weights.h"
#include "runtime/io/File.h"
#include "runtime/io/Shuffle.h"
#include "runtime/runner/processes/Signals.h"
#include "runtime/runner/report/EpochLog.h"
#include "runtime/runner/session/Checkpoint.h"
#include "runtime/runner/verbs/Verbs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace sluice::runtime {

using Clock = std::chrono::steady_clock;
static constexpr int64_t defaultEpochs = 10;

namespace {

class Trainer {
public:
  Trainer(const Options &options, Processes &processes)
      : options_(options), processes_(processes), instance_(startInstance(options, processes.group())),
        step_(instance_.entry("train_step")), settings_(checkSettings(instance_.plan(), options.settings)),
        means_(instance_, step_), progress_(!options.quiet && !options.json) {
    checkFlags();
    openData();
  }

  int run() {
    start();
    processes_.agree(lines(), instance_);
    startTrace(instance_, options_);
    EpochLog log(options_.log, position_.epoch);
    while (!isDone()) {
      if (!trainEpoch())
        return endBySignal();
      std::optional<Means> tested;
      SharedSignal signal(processes_, instance_);
      if (test_ && !(tested = evaluate(instance_, *test_, position_.batch, progress_, &signal)))
        return endBySignal();
      warnOfNonFinite();
      report(tested, log);
      if (position_.rowsDone < train_->rows())
        break; // --steps is reached
      ++position_.epoch;
      position_.rowsDone = 0;
      means_.reset();
    }
    checkpoint();
    if (!options_.save.empty())
      saveWeights(instance_, options_.save);
    if (!options_.saveAverages.empty()) {
      instance_.collectShards();
      if (processes_.isFirst())
        saveAverages(instance_, options_.saveAverages);
    }
    finishRun(instance_, options_, instance_.times().take());
    if (!nonFinite_ || options_.allowsNonFinite)
      return 0;
    processes_.finish(); // launchers may kill the other processes when one exits
    return static_cast<int>(ExitCode::nonFinite);
  }

private:
  void checkFlags() {
    if (options_.resume && options_.checkpointFolder.empty())
      failUsage("--resume needs --checkpoint DIR");
    if (options_.resume && !options_.weights.empty())
      failUsage("cannot combine --weights with --resume: a resumed run takes its weights from the checkpoint");
    if (!options_.saveAverages.empty() && !hasAverages(instance_.plan()))
      failUsage("--save-averages: the model keeps no averages of its weights");
    position_.batch = batchRows(options_, instance_.plan());
    for (const std::string *output : {&options_.save, &options_.saveAverages, &options_.trace})
      if (!output->empty())
        check(*output, files::checkWritable(*output));
  }

  /// Checks all headers before any data is unpacked.
  void openData() {
    DataPath path(dataPath(options_, instance_.plan()), options_.dataOptions);
    train_.emplace(instance_.plan(), step_, trainingTable(path), options_.columns);
    bool anyRows = train_->fixedRows() == 0; // a graph for a fixed number of rows may depend on their positions
    shuffles_ = !options_.keepsOrder && instance_.plan().shuffle.value_or(anyRows);
    std::optional<Table> test = testTable(path, options_, instance_.plan());
    if (test)
      test_.emplace(instance_.plan(), instance_.entry("eval_step"), *test, options_.columns);
    position_.batch = batchRows(options_, instance_.plan(), train_->fixedRows());
    if (!carried().empty() || (options_.dropLast && train_->fixedRows() == 0)) {
      train_->takeWholeCalls(position_.batch);
      position_.batch = train_->fixedRows();
    }
    if (processes_.isFirst()) {
      tellTrainingRowsLeftOut();
      if (test_)
        tellWhatIsLeftOut(options_, *test_, "test rows");
    }
    checkBatches();
    train_->load();
    if (test_)
      test_->load();
  }

  void tellTrainingRowsLeftOut() const {
    if (!options_.dropLast || train_->rowsLeftOut() == 0)
      return tellWhatIsLeftOut(options_, *train_, "training rows");
    if (options_.quiet)
      return;
    for (const std::string &note : train_->notes())
      talk(note);
    talk(concat("each epoch leaves out ", train_->rowsLeftOut(), " of ", train_->rows() + train_->rowsLeftOut(),
                " training rows: every batch has ", train_->fixedRows()));
  }

  /// Batch norm cannot learn a variance from one value per channel.
  void checkBatches() const {
    int64_t least = instance_.plan().leastTrainingRows, rows = train_->rows();
    int64_t most = std::min(position_.batch, rows), last = rows % position_.batch;
    auto counted = [](int64_t count) { return concat(count, count == 1 ? " row" : " rows"); };
    if (most < least)
      failInvalid(concat("cannot train on batches of ", counted(most),
                         ": batch normalization needs more than one value per channel, so at least ", counted(least)));
    if (last > 0 && last < least && processes_.isFirst())
      talk(concat("warning: the last batch of an epoch has ", counted(last),
                  ", so one value per channel for batch normalization, whose running variance it leaves as it is; "
                  "--drop-last leaves out such a batch"));
  }

  /// The requested number of epochs, or the number that --steps requires.
  int64_t epochs() const {
    int64_t steps = (train_->rows() + position_.batch - 1) / position_.batch;
    return options_.epochs.value_or(options_.steps > 0 ? (options_.steps + steps - 1) / steps : defaultEpochs);
  }
  bool isDone() const {
    return position_.epoch >= epochs() || (options_.steps > 0 && position_.step >= options_.steps);
  }

  /// Starts from fresh weights or from the newest checkpoint.
  void start() {
    position_.seed = options_.seed.value_or(0);
    position_.rows = train_->rows();
    bool isReader = !processes_.isFirst();
    if (!options_.checkpointFolder.empty() && (options_.resume || !isReader))
      folder_.emplace(options_.checkpointFolder, isReader);
    if (folder_ && !options_.resume && !folder_->empty())
      failUsage(concat(options_.checkpointFolder,
                       ": has checkpoints of an earlier run; add --resume to continue from them, or name "
                       "another folder"));
    catchSignals();
    if (options_.resume && resume())
      applySettings(instance_, settings_);
    else
      beginStates(instance_, options_, position_.seed, settings_);
    position_.shuffles = shuffles_;
    firstStep_ = position_.step;
  }

  /// Lines that must be equal in all processes, in addition to the states.
  std::vector<NamedText> lines() const {
    std::vector<NamedText> lines = {{"the number of training rows", std::to_string(train_->rows())},
                                    {"the number of test rows", std::to_string(test_ ? test_->rows() : 0)},
                                    {"the batch", std::to_string(position_.batch)},
                                    {"the number of epochs", std::to_string(epochs())},
                                    {"the number of steps", std::to_string(options_.steps)},
                                    {"the seed", std::to_string(position_.seed)},
                                    {"whether rows are shuffled", shuffles_ ? "yes" : "no"},
                                    {"the epoch that it starts in", std::to_string(position_.epoch)},
                                    {"the step that it starts at", std::to_string(position_.step)},
                                    {"the rows done of the epoch", std::to_string(position_.rowsDone)},
                                    {"the steps between checkpoints", std::to_string(options_.checkpointEvery)}};
    if (instance_.hasShardsElsewhere()) // every process contributes its shards to a checkpoint
      for (auto [what, path] :
           {std::pair("checkpoints", options_.checkpointFolder), std::pair("averages to save", options_.saveAverages)})
        lines.push_back({concat("whether there are ", what), path.empty() ? "no" : "yes"});
    for (const Setting &setting : settings_)
      lines.push_back({concat("the setting ", quote(setting.state->name)), Json(setting.value).dump()});
    return lines;
  }

  bool resume() {
    std::optional<TrainPosition> found = folder_->load(instance_);
    if (!found)
      return false;
    agree("--seed", options_.seed.value_or(found->seed), found->seed);
    agree("--batch", static_cast<uint64_t>(position_.batch), static_cast<uint64_t>(found->batch));
    agree("the number of rows", static_cast<uint64_t>(train_->rows()), static_cast<uint64_t>(found->rows));
    if (found->shuffles.value_or(shuffles_) != shuffles_)
      failUsage(concat("--resume: rows are ", shuffles_ ? "" : "not ", "shuffled, but the checkpoint in ",
                       options_.checkpointFolder, " was made with rows that are", shuffles_ ? " not" : ""));
    if (found->sums.size() != means_.sums().size() || found->rowsDone > train_->rows())
      failInvalid(concat(options_.checkpointFolder, ": the newest checkpoint does not fit this model's train_step"));
    position_ = *found;
    means_.restore(position_.sums, position_.rowsDone);
    if (processes_.isFirst())
      talk(concat("resumed at step ", position_.step, ", epoch ", position_.epoch + 1));
    return true;
  }

  void agree(const char *what, uint64_t here, uint64_t there) const {
    if (here != there)
      failUsage(concat("--resume: ", what, " is ", here, ", but the checkpoint in ", options_.checkpointFolder,
                       " was made with ", there));
  }

  /// The states that rows carry to the next step.
  std::vector<const State *> carried() const {
    std::vector<const State *> states;
    for (const State &state : instance_.plan().states)
      if (state.isCarried())
        states.push_back(&state);
    return states;
  }

  /// Resets the states that rows carry at the start of an epoch.
  void beginStreams() {
    for (const State *state : carried())
      instance_.setState(*state, Bytes(static_cast<size_t>(state->logicalBytes())));
  }

  /// The order of this epoch's rows. With --drop-last, rows are left out after shuffling, so that each epoch leaves out
  /// other rows.
  std::vector<uint32_t> order() const {
    if (!carried().empty())
      return streamOrder(position_.batch, train_->rows());
    if (!shuffles_)
      return streamOrder(/*streams=*/1, train_->rows());
    int64_t all = train_->rows() + (options_.dropLast ? train_->rowsLeftOut() : 0);
    std::vector<uint32_t> order = shuffledOrder(position_.seed, static_cast<uint64_t>(position_.epoch), all);
    order.resize(static_cast<size_t>(train_->rows()));
    return order;
  }

  /// Trains on the rest of the epoch; false if a signal arrived.
  bool trainEpoch() {
    std::vector<uint32_t> order = this->order();
    if (position_.rowsDone == 0)
      beginStreams();
    train_->beginEpoch(position_.seed, static_cast<uint64_t>(position_.epoch));
    Clock::time_point start = Clock::now();
    int64_t before = position_.rowsDone;
    ReadAhead batches(*train_, std::span(order).subspan(static_cast<size_t>(before)), position_.batch);
    SharedSignal signal(processes_, instance_);
    instance_.team().enter([&] {
      while (position_.rowsDone < train_->rows() && !isDone() && !signal.came())
        trainStep(batches.next());
    });
    seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
    rowsTimed_ = position_.rowsDone - before;
    return position_.rowsDone == train_->rows() || isDone();
  }

  void trainStep(const Batch &batch) {
    int64_t rows = std::min(position_.batch, train_->rows() - position_.rowsDone);
    train_->set(instance_, batch, rows);
    instance_.run(step_, rows);
    means_.add(rows);
    position_.rowsDone += rows;
    ++position_.step;
    if (position_.step % options_.checkpointEvery == 0)
      checkpoint();
    showProgress();
  }

  void showProgress() {
    if (!progress_.isDue())
      return;
    std::string text = concat(position_.rowsDone * 100 / train_->rows(), "%");
    if (std::optional<double> loss = means_.meanSoFar("loss"))
      text += "  loss " + fixedText(*loss, 4);
    progress_.update(concat("epoch ", position_.epoch + 1, "/", epochs()), position_.rowsDone, train_->rows(), text);
  }

  /// Writes a checkpoint, unless there is one for this step. All processes call this, because they collect shards.
  void checkpoint() {
    if (options_.checkpointFolder.empty() || saved_ == position_.step)
      return;
    instance_.collectShards();
    if (processes_.isFirst()) {
      position_.sums = means_.sums();
      folder_->save(instance_, position_);
    }
    saved_ = position_.rowsDone == train_->rows() ? -1 : position_.step;
  }

  /// Warns once, about the first step of this run whose loss is not finite. Waits for the steps so far, whose losses
  /// the devices keep.
  void warnOfNonFinite() {
    (void)means_.sums();
    const std::optional<Means::Call> &found = means_.firstNonFinite();
    if (nonFinite_ || !found)
      return;
    nonFinite_ = firstStep_ + found->number + 1;
    progress_.clear();
    if (processes_.isFirst())
      talk(concat("warning: the loss is ",
                  std::isnan(found->value) ? "nan"
                  : found->value > 0       ? "inf"
                                           : "-inf",
                  " at step ", *nonFinite_, " (epoch ", position_.epoch + 1, ")",
                  options_.allowsNonFinite ? "" : "; the exit code will be 1, or 0 with --allow-nonfinite"));
  }

  /// All processes have completed the same step. Launchers may kill the others when one process exits, so that all wait
  /// for the saved files.
  int endBySignal() {
    progress_.clear();
    checkpoint();
    warnOfNonFinite();
    processes_.finish();
    auto [signal, rank] = processes_.ending();
    std::string who = processes_.group() ? concat(" of rank ", rank) : "";
    std::string saved = folder_ ? "; continue with --resume" : "; nothing was saved: --checkpoint was not given";
    talk(concat("ended by signal ", signal, who, " after step ", position_.step, processes_.isFirst() ? saved : ""));
    return 128 + signal;
  }

  void report(std::optional<Means> &tested, EpochLog &log) {
    progress_.clear();
    double rate = seconds_ > 0 ? static_cast<double>(rowsTimed_) / seconds_ : 0;
    Json line;
    line["epoch"] = position_.epoch + 1;
    addFigures(line, means_.results(), /*isTest=*/false);
    if (tested)
      addFigures(line, tested->results(), /*isTest=*/true);
    line["step"] = position_.step;
    line[rateKey] = rate;
    if (nonFinite_)
      line["nonfinite_step"] = *nonFinite_;
    log.append(line);
    if (processes_.isFirst())
      printLine(options_.json ? line.dump() : textOf(line, rate));
  }

  /// Adds figures to a line of the log. The training loss and the evaluation metrics have no prefix; the other figures
  /// have one.
  void addFigures(Json &line, const std::vector<NamedFigure> &figures, bool isTest) const {
    for (const NamedFigure &figure : figures) {
      bool isPlain = isTest != (figure.name == "loss");
      std::string prefix = isPlain ? "" : isTest ? "test_" : "train_";
      line[prefix + figure.name] = figure.value;
      addOverCalls(line, {figure}, prefix);
      if (processes_.isFirst())
        warnOfUndefined({figure}, prefix);
    }
  }

  std::string textOf(const Json &line, double rate) const {
    std::string text = concat("epoch ", position_.epoch + 1, "/", epochs());
    if (line.contains("loss"))
      text += "  loss " + fixedText(line["loss"].get<double>(), 4);
    if (line.contains("accuracy"))
      text += "  test accuracy " + fixedText(100 * line["accuracy"].get<double>(), 2) + " %";
    else if (line.contains("perplexity"))
      text += "  test perplexity " + fixedText(line["perplexity"].get<double>(), 4);
    else if (line.contains("test_loss"))
      text += "  test loss " + fixedText(line["test_loss"].get<double>(), 4);
    for (const char *separator = "  (mean over calls: "; const Json &name : line.value(overCallsKey, Json::array()))
      text += std::exchange(separator, ", ") + name.get<std::string>();
    text += line.contains(overCallsKey) ? ")" : "";
    return text + "  " + rateText(rate) + " rows/s";
  }

  const Options &options_;
  Processes &processes_;
  Instance instance_;
  const Entry &step_;
  std::vector<Setting> settings_;
  Means means_;
  Progress progress_;
  std::optional<Feed> train_, test_;
  std::optional<CheckpointFolder> folder_;
  TrainPosition position_;
  /// The step of the last checkpoint. -1: none, or one at the end of an epoch, before `run` counts the epoch.
  int64_t saved_ = -1;
  bool shuffles_ = true;
  int64_t firstStep_ = 0;            ///< steps of the resumed run, before this one
  std::optional<int64_t> nonFinite_; ///< the first step whose loss is not finite
  double seconds_ = 0;               ///< time of this process for the epoch's `rowsTimed_` rows
  int64_t rowsTimed_ = 0;
};

} // namespace

int runTrain(const Options &options, Processes &processes) { return Trainer(options, processes).run(); }

} // namespace sluice::runtime
