// Tests inputs and outputs of verbs other than data sets. Covers settings, arrays of other types and from pipes,
// weights of other types and formats, losses that are not finite, and files of killed processes.
#include "Process.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"
#include "tests/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sluice;
using namespace sluice::runtime;
using test::ProcessResult;
using test::TemporaryFolder;
using Json = nlohmann::json;
using testing::Test;

static ProcessResult ran(const std::vector<std::string> &arguments) {
  setenv("SLUICE_DATA", SLUICE_MNIST, 1);
  return test::run(LOGREG, arguments);
}

/// Runs a shell command in the folder; $0 is the executable.
static ProcessResult inShell(const TemporaryFolder &folder, const std::string &command) {
  setenv("SLUICE_DATA", SLUICE_MNIST, 1);
  return test::run("/bin/sh", {"-c", "cd '" + folder.path() + "' && " + command, LOGREG});
}

static bool tells(const ProcessResult &result, const std::string &text) {
  return result.err.find(text) != std::string::npos;
}

namespace {
/// A folder with weights, three images, and their labels in three types.
class VerbInputs : public Test {
protected:
  VerbInputs() {
    EXPECT_EQ(ran({"train", "--epochs", "0", "--save", folder / "w.safetensors"}).code, 0);
    HostTensor images{DType::u8, {3, 1, 28, 28}, Bytes(3 * 784)};
    for (size_t i = 0; i < images.data.size(); ++i)
      images.data[i] = static_cast<std::byte>(i * i % 251);
    writeNpy(folder / "x.npy", images);
    writeNpy(folder / "bytes.npy", {DType::u8, {3}, {std::byte(1), std::byte(9), std::byte(0)}});
    writeNpy(folder / "words.npy", {DType::i32, {3}, bytesOf(std::vector<int32_t>{1, 9, 0})});
    writeNpy(folder / "wide.npy", {DType::i64, {3}, bytesOf(std::vector<int64_t>{1, 9, 0})});
  }

  template <typename T> static Bytes bytesOf(const std::vector<T> &values) {
    auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
  }

  /// Runs eval_step on the images and on the labels of a file.
  ProcessResult evaluate(const std::string &labels) const {
    return ran({"predict", "--json", "--entry", "eval_step", "--weights", folder / "w.safetensors", "--input",
                "image=@" + folder / "x.npy", "--input", "label=@" + folder / labels});
  }

  /// Writes the weights in another type, with each value mapped by `change`.
  template <typename T> void writeWeights(const std::string &name, DType type, double (*change)(float)) const {
    Safetensors file = readSafetensors(folder / "w.safetensors");
    std::vector<std::vector<T>> values;
    std::vector<Safetensors::Tensor> tensors;
    for (const Safetensors::Tensor &tensor : file.tensors()) {
      std::vector<T> &all = values.emplace_back();
      for (size_t at = 0; at < tensor.data.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, tensor.data.data() + at, sizeof value);
        all.push_back(static_cast<T>(change(value)));
      }
    }
    for (size_t i = 0; i < values.size(); ++i)
      tensors.push_back({file.tensors()[i].name, type, file.tensors()[i].shape, std::as_bytes(std::span(values[i]))});
    writeSafetensors(folder / name, tensors, {});
  }

  TemporaryFolder folder;
};
} // namespace

//===- settings ---------------------------------------------------------------------------------------------------===//

// Tests that every verb that runs a model accepts the settings of `train` with the same checks.
TEST_F(VerbInputs, AllVerbsTakeSettings) {
  const std::string weights = folder / "w.safetensors", image = "image=@" + folder / "x.npy";
  const std::vector<std::vector<std::string>> calls = {
      {"train", "--epochs", "0"},
      {"eval", "--weights", weights},
      {"predict", "--weights", weights, "--input", image},
      {"bench", "--seconds", "0"},
  };
  for (std::vector<std::string> call : calls) {
    call.insert(call.end(), {"--set", "lr=0.5"});
    ProcessResult result = ran(call);
    EXPECT_EQ(result.code, 0) << call[0] << result.err;
    call.back() = "rate=0.5";
    result = ran(call);
    EXPECT_EQ(result.code, 2) << call[0] << result.err;
    EXPECT_TRUE(tells(result, "--set: the model has no setting 'rate'")) << result.err;
  }
  EXPECT_NE(ran({"generate", "--help"}).out.find("--set"), std::string::npos);
}

TEST_F(VerbInputs, ALearningRateBelowZeroIsRefused) {
  ProcessResult result = ran({"train", "--epochs", "1", "--set", "lr=-0.1"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(tells(result, "--set: a learning rate is at least 0, and 'lr' is set to -0.1")) << result.err;
}

//===- arrays -----------------------------------------------------------------------------------------------------===//

TEST_F(VerbInputs, PredictWidensInputs) {
  ProcessResult same = evaluate("words.npy"), narrow = evaluate("bytes.npy"), wide = evaluate("wide.npy");
  ASSERT_EQ(same.code, 0) << same.err;
  ASSERT_EQ(narrow.code, 0) << narrow.err;
  EXPECT_EQ(narrow.out, same.out);
  EXPECT_EQ(wide.code, 3); // an i64 may be out of range
  EXPECT_TRUE(tells(wide, "wide.npy: is i64[3], but input 'label' is i32")) << wide.err;
  EXPECT_TRUE(tells(wide, "a file has its input's type or a narrower one of its kind")) << wide.err;
}

TEST_F(VerbInputs, PredictReadsAndWritesPipes) {
  const std::string predict = "\"$0\" predict --weights w.safetensors ";
  ASSERT_EQ(inShell(folder, predict + "--input image=@x.npy --output logits=@y.npy").code, 0);
  const std::string wanted = test::contentOf(folder / "y.npy");
  for (const char *command :
       {"cat x.npy | "
        "\"$0\" predict --weights w.safetensors --input image=@- --output logits=@-",
        "\"$0\" predict --weights w.safetensors --input image=@- --output logits=@- < x.npy",
        "cat x.npy | \"$0\" predict --weights w.safetensors --input image=@/dev/stdin --output logits=@-"}) {
    ProcessResult result = inShell(folder, command);
    EXPECT_EQ(result.code, 0) << command << result.err;
    EXPECT_TRUE(result.out == wanted) << command;
    EXPECT_TRUE(tells(result, "wrote the standard output: f32[3, 10]")) << result.err;
  }
  EXPECT_EQ(inShell(folder, predict + "--input image=@x.npy --output logits=@- >> y.npy").code, 0);
  EXPECT_TRUE(test::contentOf(folder / "y.npy") == wanted + wanted);
}

TEST_F(VerbInputs, PredictRefusesBrokenPipes) {
  auto refused = [&](const std::string &before, const std::string &flags, int code, const std::string &message) {
    ProcessResult result = inShell(folder, before + "\"$0\" predict --weights w.safetensors " + flags);
    EXPECT_EQ(result.code, code) << flags << result.err;
    EXPECT_TRUE(tells(result, message)) << result.err;
    EXPECT_EQ(result.out.find("NUMPY"), std::string::npos);
  };
  refused("head -c 1000 x.npy | ", "--input image=@-", 3,
          "standard input: u8[3, 1, 28, 28] needs 2352 bytes, but 872 follow");
  refused("(cat x.npy; echo) | ", "--input image=@-", 3,
          "standard input: u8[3, 1, 28, 28] needs 2352 bytes, but 2353 follow");
  refused(": | ", "--input image=@-", 3, "standard input: is empty");
  refused("cat x.npy | ", "--entry eval_step --input image=@- --input label=@-", 2,
          "--input: 'image' and 'label' are both read from the standard input");
  refused("", "--input image=@x.npy --output logits=@- --json", 2, "--json prints to the standard output, too");
  refused("", "--input image=@x.npy --output logits=@- --report", 2, "--report prints to the standard output, too");
}

//===- weights ----------------------------------------------------------------------------------------------------===//

TEST_F(VerbInputs, WeightsOfAnotherFloatTypeLoadWithANote) {
  writeWeights<double>("wide.safetensors", DType::f64, [](float value) { return double(value) * (1 + 0x1p-30); });
  ProcessResult same = ran({"eval", "--json", "--weights", folder / "w.safetensors"});
  ProcessResult wide = ran({"eval", "--json", "--weights", folder / "wide.safetensors"});
  ASSERT_EQ(wide.code, 0) << wide.err;
  EXPECT_EQ(wide.out, same.out); // rounding restores the original values
  EXPECT_EQ(same.err, "");
  EXPECT_EQ(wide.err, "note: " + folder / "wide.safetensors" + ": 2 tensors of f64 are rounded to f32\n");
  EXPECT_EQ(ran({"eval", "-q", "--json", "--weights", folder / "wide.safetensors"}).err, "");

  writeWeights<sluice_f16>("half.safetensors", DType::f16, [](float value) { return double(value); });
  ProcessResult half = ran({"eval", "--weights", folder / "half.safetensors"});
  EXPECT_EQ(half.code, 0) << half.err;
  EXPECT_TRUE(tells(half, "note: " + folder / "half.safetensors" + ": 2 tensors of f16 are widened to f32\n"))
      << half.err;

  writeWeights<double>("huge.safetensors", DType::f64, [](float) { return 1e39; });
  ProcessResult huge = ran({"eval", "--weights", folder / "huge.safetensors"});
  EXPECT_EQ(huge.code, 3);
  EXPECT_TRUE(tells(huge, "'fc.weight' has 1e+39, which f32 does not hold")) << huge.err;
}

TEST_F(VerbInputs, OtherFormatsOfWeightsAreNamed) {
  using namespace std::string_literals;
  auto zip = [](const std::string &member) {
    std::string length(1, static_cast<char>(member.size()));
    return "PK\x03\x04"s + std::string(22, '\0') + length + "\0\0\0"s + member + std::string(64, 'x');
  };
  struct Case {
    const char *name;
    std::string content, what, how;
  };
  const Case cases[] = {
      {"x.pt", zip("archive/data.pkl"), "is a zip archive as torch.save writes",
       "safetensors.torch.save_file(torch.load("},
      {"y.npz", zip("w.npy"), "is an npz archive of NumPy", "safetensors.numpy.save_file("},
      {"pytorch_model.bin", "\x80\x02\x8a\nl\xfc\x9c"s + std::string(64, 'x'),
       "is a pickle, as torch.save of old versions writes", "safetensors.torch.save_file(torch.load("},
      {"model.safetensors.index.json", "{\n  \"metadata\": {\"total_size\": 1},\n  \"weight_map\": {\"a\": \"b\"}}",
       "is the index of weights in several files", "safetensors.torch.load_file("},
      {"config.json", "{\n  \"architectures\": [\"GPT2LMHeadModel\"]}", "is a JSON text", "give the safetensors file"},
      {"net.onnx",
       "\x08\x07\x12\x07pytorch\x1a\x05"
       "2.0.0" +
           std::string(64, 'x'),
       "is an ONNX model", "onnx.numpy_helper.to_array("},
      {"keras.h5", "\x89HDF\r\n\x1a\n" + std::string(64, 'x'), "is an HDF5 file", "safetensors.numpy.save_file("},
      {"a.npy", "\x93NUMPY\x01\x00"s + std::string(64, 'x'), "is an npy array", "safetensors.numpy.save_file("},
      {"llama.gguf", "GGUF\x03\0\0\0"s + std::string(64, 'x'), "is a GGUF file", "safetensors"},
  };
  for (const Case &one : cases) {
    folder.write(one.name, one.content);
    ProcessResult result = ran({"eval", "--weights", folder / one.name});
    EXPECT_EQ(result.code, 3) << one.name << result.err;
    EXPECT_TRUE(tells(result, std::string(one.name) + ": " + one.what)) << result.err;
    EXPECT_TRUE(tells(result, one.how)) << result.err;
  }
}

//===- losses that are not finite ---------------------------------------------------------------------------------===//

TEST_F(VerbInputs, ALossThatIsNotFiniteIsToldAndEndsWithCodeOne) {
  // Weights that make the loss of the first step infinite or NaN, and a learning rate that preserves them.
  writeWeights<float>("nan.safetensors", DType::f32, [](float) { return std::nan(""); });
  std::vector<std::string> train = {"train",        "--json",
                                    "--epochs",     "2",
                                    "--set",        "lr=0",
                                    "--batch",      "50",
                                    "--weights",    folder / "nan.safetensors",
                                    "--save",       folder / "s.safetensors",
                                    "--checkpoint", folder / "c"};
  ProcessResult result = ran(train);
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "warning: the loss is nan at step 1 (epoch 1); the exit code will be 1, or 0 with "
                        "--allow-nonfinite\n");
  EXPECT_NE(result.out.find("\"nonfinite_step\":1}"), std::string::npos) << result.out;
  EXPECT_TRUE(std::filesystem::exists(folder / "s.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(folder / "c/step-000000000320.safetensors")) << result.out;
  std::filesystem::remove_all(folder / "c");
  train.push_back("--allow-nonfinite");
  result = ran(train);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "warning: the loss is nan at step 1 (epoch 1)\n");
}

TEST_F(VerbInputs, TheStepOfALossThatBecomesNonFiniteIsExact) {
  // The first batch has a finite loss; its step makes the weights overflow.
  ProcessResult result = ran({"train", "--epochs", "1", "--set", "lr=3e38", "--quiet"});
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(tells(result, " at step 2 (epoch 1)")) << result.err;
  // A resumed run counts its steps from the start of training.
  std::vector<std::string> train = {"train", "--batch", "50", "--epochs", "1", "--checkpoint", folder / "c"};
  ASSERT_EQ(ran(train).code, 0);
  train.insert(train.end(), {"--epochs=2", "--resume", "--set", "lr=3e38"});
  train.erase(train.begin() + 3, train.begin() + 5);
  result = ran(train);
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(tells(result, " at step 162 (epoch 2)")) << result.err;
}

//===- names of files ---------------------------------------------------------------------------------------------===//

TEST_F(VerbInputs, EmptyNamesOfFilesAreRefused) {
  for (const char *flag : {"--save", "--save-averages", "--log", "--trace", "--checkpoint", "--weights", "--data",
                           "--test-data", "--tokenizer"}) {
    ProcessResult result = ran({"train", "--epochs", "0", flag, ""});
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_TRUE(tells(result, std::string(flag) + ": the name of the file is empty")) << result.err;
  }
  for (const char *flag : {"--save", "--save-averages", "--log", "--trace"}) {
    ProcessResult result = ran({"train", "--epochs", "0", flag, "-"});
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_TRUE(tells(result, std::string(flag) + ": '-' is not accepted; name a file, such as ./- or /dev/stdout"))
        << result.err;
  }
}

TEST_F(VerbInputs, AllOfTheBestTokensIsZero) {
  ProcessResult result = ran({"generate", "--top-k", "0", "--prompt", "a"});
  EXPECT_FALSE(tells(result, "--top-k")) << result.err; // this model cannot generate text
}

//===- files of killed processes ----------------------------------------------------------------------------------===//

// Tests that a process that writes a file removes the temporary files of killed processes for the same file, but not
// those of live processes.
TEST_F(VerbInputs, FilesOfDeadProcessesAreRemoved) {
  pid_t dead = fork();
  if (dead == 0)
    _exit(0);
  waitpid(dead, nullptr, 0);
  auto left = [](const std::string &file, pid_t process) {
    return file + ".sluice-tmp-" + std::to_string(process) + "-1";
  };
  const std::string mine = left("w.safetensors", dead), others = left("other.safetensors", dead),
                    living = left("w.safetensors", getpid()), locked = left("w.safetensors", dead) + "2",
                    strange = "w.safetensors.sluice-tmp-notes";
  for (const std::string &name : {mine, others, living, locked, strange})
    folder.write(name, "half");
  int descriptor = open((folder / locked).c_str(), O_RDWR); // simulates a process of another container, which has
                                                            // another process ID
  ASSERT_EQ(flock(descriptor, LOCK_EX), 0);
  EXPECT_EQ(ran({"train", "--epochs", "0", "--save", folder / "w.safetensors"}).code, 0);
  close(descriptor);
  std::vector<std::string> names = folder.names();
  auto has = [&](const std::string &name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  EXPECT_FALSE(has(mine));
  for (const std::string &name : {others, living, locked, strange})
    EXPECT_TRUE(has(name)) << name;
}
