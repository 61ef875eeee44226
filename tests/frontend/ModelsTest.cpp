// The model programs: their output and exit codes.
#include "tests/TemporaryFolder.h"

#include <cstdio>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using sluice::test::TemporaryFolder;
using testing::HasSubstr;
using testing::Not;

namespace {

struct Outcome {
  int code;
  std::string text; ///< standard output and error
};

Outcome run(const std::string &arguments) {
  std::string command = SLUICE_BINARY_DIR "/bin/models/" + arguments + " 2>&1";
  FILE *pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, n);
  return {WEXITSTATUS(pclose(pipe)), text};
}

} // namespace

TEST(LeNet, HasPyTorchsParameters) {
  Outcome lenet = run("lenet -o -");
  EXPECT_EQ(lenet.code, 0);
  EXPECT_THAT(lenet.text, HasSubstr("lenet: 129068 parameters"));
  EXPECT_THAT(lenet.text, HasSubstr("[@conv1.weight, @conv1.bias, @conv2.weight, @conv2.bias, @fc1.weight, @fc1.bias, "
                                    "@fc2.weight, @fc2.bias]"));
}

TEST(Lstm, HasItsParametersAndAScanForEachLayer) {
  Outcome lstm = run("lstm -o -");
  EXPECT_EQ(lstm.code, 0);
  EXPECT_THAT(lstm.text, HasSubstr("lstm: 6180624 parameters"));
  EXPECT_THAT(lstm.text, HasSubstr("[@embedding.weight, @lstm.weight_ih_l0, @lstm.weight_hh_l0, @lstm.bias_ih_l0, "
                                   "@lstm.weight_ih_l1, @lstm.weight_hh_l1, @lstm.bias_ih_l1, @fc.weight, @fc.bias]"));
  EXPECT_THAT(lstm.text, HasSubstr("sluice.state slot @lstm.c_l1 : tensor<?x256xf32>"));
  EXPECT_THAT(lstm.text, HasSubstr("clip [#sluice.clip_grad_norm<"));
  EXPECT_THAT(lstm.text, HasSubstr("sluice.scan 32 steps"));
}

TEST(Lstm, TakesOtherNumbersOfWords) {
  std::string text = run("lstm --words 256 --length 8 -o -").text;
  EXPECT_THAT(text, HasSubstr("lstm: 1181952 parameters")); // 256 * 256 + 1050624 + 256 * 257
  EXPECT_THAT(text, HasSubstr("data \"kjv\""));
  EXPECT_THAT(text, HasSubstr("sluice.scan 8 steps"));
  EXPECT_EQ(run("lstm --words 10001 -o -").code, 2);
}

TEST(LstmLm, HasItsParameters) {
  std::string text = run("lstm_lm -o -").text;
  EXPECT_THAT(text, HasSubstr("lstm_lm: 19775200 parameters, up to 20 rows"));
  EXPECT_THAT(text, HasSubstr("@lstm2.weight_hh_l0 : tensor<2600x650xf32> = <\"uniform\", -5.0"));
  EXPECT_THAT(text, HasSubstr("sluice.scan 35 steps"));
  EXPECT_THAT(text, HasSubstr("p = 5.0"));
  EXPECT_THAT(run("lstm_lm --dropout 0 -o -").text, Not(HasSubstr("sluice.dropout")));
  for (const char *share : {"1", "-0.1", "nan"})
    EXPECT_EQ(run(std::string("lstm_lm -o - --dropout ") + share).code, 2) << share;
}

TEST(LeNet, ScalesBytesInTheGraph) {
  EXPECT_THAT(run("lenet -o -").text, HasSubstr("tensor<?x1x28x28xui8>"));
  EXPECT_THAT(run("lenet --input f32 -o -").text, testing::Not(HasSubstr("ui8")));
}

TEST(LeNet, TakesTheNotebooksInitialValues) {
  std::string text = run("lenet --init notebook -o -").text;
  EXPECT_THAT(text, HasSubstr("@fc1.weight : tensor<128x800xf32> = <\"normal\", 0.0"));
  EXPECT_THAT(text, HasSubstr("@fc1.bias : tensor<128xf32> = <\"constant\", 0.0"));
}

TEST(LeNet, TakesItsSettings) {
  std::string text = run("lenet --batch 64 --lr 0.25 -o -").text;
  EXPECT_THAT(text, HasSubstr(" capacity 64 data"));
  EXPECT_THAT(text, HasSubstr("@lr : tensor<f32> = <\"constant\", 2.5"));
}

TEST(LeNet, IsSplitOverDevicesFromScratch) {
  Outcome lenet = run("lenet_data_parallel --batch 51 --devices sim:0-1 -o -");
  EXPECT_EQ(lenet.code, 0);
  EXPECT_THAT(lenet.text, HasSubstr("lenet_data_parallel: 387204 parameters")) << "the host's, and two devices' own";
  for (const char *set : {"sluice.set @W1.gpu0, ", "sluice.set @b4.gpu1, "})
    EXPECT_THAT(lenet.text, HasSubstr(set));
  for (const char *part : {"tensor<26x1x28x28xui8, #acc0", "tensor<25x1x28x28xui8, #acc1", "tensor<51x10xf32, #acc0"})
    EXPECT_THAT(lenet.text, HasSubstr(part));
  EXPECT_EQ(run("lenet_data_parallel --devices sim:0-1 --pin conv=gpu:0 -o -").code, 2);
}

TEST(LeNet, PinsItsGroups) {
  std::string conv = run("lenet --devices cpu,sim:0 --pin conv=gpu:0 --copies insert -o -").text;
  EXPECT_THAT(conv, HasSubstr(" copies insert data"));
  EXPECT_THAT(conv, HasSubstr("physical tensor<50x20x5x5xf32, #acc0"));
  EXPECT_THAT(conv, Not(HasSubstr("physical tensor<128x800xf32")));
  std::string fc = run("lenet --devices cpu,sim:0 --pin fc=sim:0 -o -").text;
  EXPECT_THAT(fc, HasSubstr("physical tensor<128x800xf32, #acc0"));
  EXPECT_THAT(fc, Not(HasSubstr("physical tensor<50x20x5x5xf32")));
}

TEST(LeNet, PinsToDevicesAsTheyAreListed) {
  std::string text = run("lenet --devices cpu,sim:2,cuda:1 --pin conv=cuda:1 --pin fc=sim:2 -o -").text;
  EXPECT_THAT(text, HasSubstr("physical tensor<50x20x5x5xf32, #acc1"));
  EXPECT_THAT(text, HasSubstr("physical tensor<128x800xf32, #acc0"));
}

TEST(LeNet, PinsPartsWithinGroups) {
  std::string text = run("lenet --devices cpu,sim:0,sim:1 --pin conv2=gpu:1 --pin conv=gpu:0 -o -").text;
  EXPECT_THAT(text, HasSubstr("physical tensor<50x20x5x5xf32, #acc1"));
  EXPECT_THAT(text, HasSubstr("physical tensor<20x1x3x3xf32, #acc0"));
}

TEST(Mlp, HasMomentumAndWeightDecay) {
  std::string text = run("mlp -o -").text;
  EXPECT_THAT(text, HasSubstr("mlp: 235146 parameters"));
  EXPECT_THAT(text, HasSubstr("momentum = 9.0"));
  EXPECT_THAT(text, HasSubstr("weight_decay = 1.000000e-03"));
}

TEST(MlpMixer, HasItsParameters) {
  std::string text = run("mlp_mixer -o -").text;
  EXPECT_THAT(text, HasSubstr("mlp_mixer: 18528264 parameters, up to 16 rows"));
  EXPECT_THAT(text, HasSubstr("@blocks.7.mlp_tokens.fc1.weight : tensor<256x196xf32>"));
  EXPECT_THAT(text, HasSubstr("@norm.bias : tensor<512xf32> = <\"constant\", 0.0"));
}

TEST(VitS, HasItsParameters) {
  std::string text = run("vit_s -o -").text;
  EXPECT_THAT(text, HasSubstr("vit_s: 22050664 parameters, up to 16 rows"));
  EXPECT_THAT(text, HasSubstr("@blocks.11.attn.qkv.weight : tensor<1152x384xf32>"));
  EXPECT_THAT(text, HasSubstr("@pos_embed : tensor<1x197x384xf32>"));
  EXPECT_THAT(text, HasSubstr("sluice.scaled_dot_product_attention"));
}

// The encoder's parameters, 109,482,240, and those of a classifier of two classes, 2 * 768 + 2.
TEST(BertBase, HasItsParameters) {
  std::string text = run("bert_base -o -").text;
  EXPECT_THAT(text, HasSubstr("bert_base: 109483778 parameters, up to 8 rows"));
  EXPECT_THAT(text, HasSubstr("@bert.encoder.layer.11.attention.output.LayerNorm.weight : tensor<768xf32>"));
  EXPECT_THAT(text, HasSubstr("@classifier.weight : tensor<2x768xf32>"));
  EXPECT_THAT(text, HasSubstr("@classifier.bias : tensor<2xf32>"));
}

TEST(Gpt2, HasItsParametersOnce) {
  std::string text = run("gpt2 -o -").text;
  EXPECT_THAT(text, HasSubstr("gpt2: 124439808 parameters, up to 4 rows"));
  EXPECT_THAT(text, HasSubstr("@h.11.mlp.c_fc.weight : tensor<768x3072xf32>"));
  EXPECT_THAT(text, Not(HasSubstr("lm_head")));
  EXPECT_THAT(text, HasSubstr("causal"));
}

TEST(Gpt2, TakesItsSizes) {
  EXPECT_THAT(run("gpt2 --layers 2 --width 128 --words 100 --length 16 -o -").text,
              HasSubstr("gpt2: 540672 parameters")); // 100 * 128 + 1024 * 128 + 2 * 198272 + 256
  EXPECT_EQ(run("gpt2 --width 100 -o -").code, 2);
  EXPECT_EQ(run("gpt2 --length 2000 -o -").code, 2);
  EXPECT_EQ(run("lenet --layers 2 -o -").code, 2);
}

TEST(AlexNetS, HasItsParameters) {
  std::string text = run("alexnet_s -o -").text;
  EXPECT_THAT(text, HasSubstr("alexnet_s: 62378344 parameters, up to 16 rows"));
  EXPECT_THAT(text, HasSubstr("@fc6.weight : tensor<4096x9216xf32> = <\"normal\", 0.0"));
}

TEST(AlexNetR, HasItsParametersAndOptimizer) {
  std::string text = run("alexnet_r -o -").text;
  EXPECT_THAT(text, HasSubstr("alexnet_r: 85098 parameters, up to 1024 rows"));
  EXPECT_THAT(text, HasSubstr("@fc.weight : tensor<10x576xf32> = <\"normal\", 0.0"));
  EXPECT_THAT(text, HasSubstr("momentum = 9.0"));
}

TEST(FcnS, HasItsParameters) {
  std::string text = run("fcn_s -o -").text;
  EXPECT_THAT(text, HasSubstr("fcn_s: 117997696 parameters, up to 64 rows"));
  EXPECT_THAT(text, HasSubstr("[@fc.0.weight, @fc.0.bias, @fc.1.weight, @fc.1.bias, @fc.2.weight, @fc.2.bias, "
                              "@fc.3.weight, @fc.3.bias]"));
  EXPECT_THAT(text, HasSubstr("@fc.3.bias : tensor<26752xf32> = <\"uniform\", -0.0220970")); // 1 / sqrt(2048)
}

TEST(FcnR, BeginsAsXavierAndScalesBytesByTwoHundredAndFiftySix) {
  std::string text = run("fcn_r -o -").text;
  EXPECT_THAT(text, HasSubstr("fcn_r: 14205962 parameters, up to 1024 rows"));
  EXPECT_THAT(text, HasSubstr("@fc.2.weight : tensor<1024x4096xf32> = <\"uniform\", -0.0342326")); // sqrt(6 / 5120)
  EXPECT_THAT(text, HasSubstr("@fc.2.bias : tensor<1024xf32> = <\"constant\", 0.0"));
  EXPECT_THAT(text, HasSubstr("2.560000e+02"));
  EXPECT_THAT(text, HasSubstr("momentum = 9.0"));
  EXPECT_THAT(run("fcn_r --input f32 -o -").text, Not(HasSubstr("2.560000e+02")));
}

TEST(MobileNetV2, HasItsParametersAndAConvolutionOfEachChannelByItself) {
  std::string text = run("mobilenetv2 -o -").text;
  EXPECT_THAT(text, HasSubstr("mobilenetv2: 3504872 parameters, up to 16 rows"));
  EXPECT_THAT(text, HasSubstr("@features.19.conv.3.weight : tensor<960x1x3x3xf32>"));
  EXPECT_THAT(text, HasSubstr("groups = 960"));
}

TEST(UNet, HasItsParametersAndALabelForEachPixel) {
  std::string text = run("unet -o -").text;
  EXPECT_THAT(text, HasSubstr("unet: 31037698 parameters, up to 4 rows"));
  EXPECT_THAT(text, HasSubstr("@up1.up.weight : tensor<1024x512x2x2xf32>"));
  EXPECT_THAT(text, HasSubstr("tensor<?x256x256xi32>"));
}

TEST(UNet, TakesTheSizeOfItsImages) {
  EXPECT_THAT(run("unet --size 64 -o -").text, HasSubstr("tensor<?x3x64x64xui8>"));
  Outcome odd = run("unet --size 72 -o -");
  EXPECT_EQ(odd.code, 2);
  EXPECT_THAT(odd.text, HasSubstr("a size is a multiple of 16 up to 4096, not 72"));
}

TEST(ResNet18, HasItsParametersAndOptimizer) {
  std::string text = run("resnet18 -o -").text;
  EXPECT_THAT(text, HasSubstr("resnet18: 11689512 parameters, up to 16 rows"));
  EXPECT_THAT(text, HasSubstr("@layer4.0.downsample.1.running_mean"));
  EXPECT_THAT(text, HasSubstr("nesterov = true"));
}

TEST(ResNet56, HasItsParametersAndOptimizer) {
  std::string text = run("resnet56 -o -").text;
  EXPECT_THAT(text, HasSubstr("resnet56: 853018 parameters, up to 128 rows"));
  EXPECT_THAT(text, HasSubstr("@layer3.8.bn2.running_var"));
  EXPECT_THAT(text, HasSubstr("momentum = 9.0"));
  EXPECT_THAT(text, HasSubstr("weight_decay = 1.000000e-04"));
}

TEST(ResNet50, HasItsParametersAndOptimizer) {
  std::string text = run("resnet50 -o -").text;
  EXPECT_THAT(text, HasSubstr("resnet50: 25557032 parameters, up to 16 rows"));
  EXPECT_THAT(text, HasSubstr("@layer4.0.downsample.1.running_mean"));
  EXPECT_THAT(text, HasSubstr("nesterov = true"));
}

TEST(ResNet50, BeginsWithHesDeviations) {
  std::string text = run("resnet50 -o -").text;
  EXPECT_THAT(
      text,
      HasSubstr(
          "@conv1.weight : tensor<64x3x7x7xf32> = <\"normal\", 0.000000e+00 : f64, 0.0252538")); // sqrt(2 / (49 * 64))
  EXPECT_THAT(text, HasSubstr("@layer1.0.downsample.0.weight : tensor<256x64x1x1xf32> = <\"normal\", 0.000000e+00 : "
                              "f64, 0.0883883")); // sqrt(2 / 256)
  EXPECT_THAT(run("resnet50 --init torch -o -").text, HasSubstr("@conv1.weight : tensor<64x3x7x7xf32> = <\"uniform\""));
  EXPECT_EQ(run("resnet50 --init notebook -o -").code, 2);
}

TEST(ResNet50, HasPartsToPin) {
  std::string text = run("resnet50 --devices cpu,sim:0 --pin layer4=gpu:0 --copies insert -o -").text;
  EXPECT_THAT(text, HasSubstr("physical tensor<2048x512x1x1xf32, #acc0"));
  EXPECT_THAT(text, Not(HasSubstr("physical tensor<64x3x7x7xf32")));
}

TEST(ModelPrograms, WriteAFile) {
  TemporaryFolder folder;
  std::string path = folder / "x.mlir";
  EXPECT_EQ(run("mlp -o " + path).code, 0);
  EXPECT_EQ(access(path.c_str(), R_OK), 0);
}

TEST(ModelPrograms, RefuseWrongUsageWithCode2) {
  EXPECT_EQ(run("lenet --batch 0").code, 2);
  EXPECT_EQ(run("lenet --batch 99999999999999999999").code, 2);
  EXPECT_EQ(run("lenet --input f16").code, 2);
  EXPECT_EQ(run("lenet --init xavier").code, 2);
  EXPECT_EQ(run("lenet --lr nan").code, 2);
  EXPECT_EQ(run("lenet --no-such-flag").code, 2);
  EXPECT_EQ(run("lenet --size 32").code, 2); // the model has a fixed image size
  EXPECT_EQ(run("lenet --devices sim:0,sim:0").code, 2);
  EXPECT_EQ(run("lenet --devices gpu:0").code, 2);
  EXPECT_EQ(run("lenet --devices ''").code, 2);
  EXPECT_EQ(run("lenet --copies never").code, 2);
  EXPECT_EQ(run("lenet --pin conv").code, 2);
  EXPECT_EQ(run("lenet --pin =gpu:0").code, 2);
  EXPECT_EQ(run("lenet --pin conv=").code, 2);
  EXPECT_EQ(run("lenet --pin conv=gpu:x -o -").code, 2);
  EXPECT_EQ(run("lenet --pin conv=gpu:0 conv2=gpu:0").code, 2);
  EXPECT_EQ(run("lenet --help").code, 0);
}

TEST(ModelPrograms, SayHowToFixArguments) {
  for (auto [arguments, error] : {
           std::pair("lenet --bacth 3", "lenet: error: unknown option '--bacth'; did you mean '--batch'?\n"),
           std::pair("lenet --frobnicate", "lenet: error: unknown option '--frobnicate'; see `lenet --help`\n"),
           std::pair("lenet x.mlir", "lenet: error: unexpected argument 'x.mlir'; see `lenet --help`\n"),
           std::pair("lenet --batch", "lenet: error: --batch requires a value: N; see `lenet --help`\n"),
           std::pair("lenet --batch 0",
                     "lenet: error: --batch: '0' is not a whole number from 1 to 1048576; see `lenet --help`\n"),
           std::pair("lenet --batch 2 --batch 3",
                     "lenet: error: --batch is given 2 times; give it once; see `lenet --help`\n"),
           std::pair("lenet --lr fast", "lenet: error: --lr: 'fast' is not a number; see `lenet --help`\n"),
           std::pair("lenet --lr 1e7", "lenet: error: --lr: a learning rate is between 0 and 1e6, not 1e7; see"),
           std::pair("lenet --devices gpu:0", "lenet: error: --devices: 'gpu:0' names no backend; gpu(0) is the first"),
           std::pair("lenet -o /no/such/x", "lenet: error: /no/such/x: cannot create: No such file or directory\n"),
           std::pair("lenet --init torhc",
                     "lenet: error: --init: 'torhc' is none of torch, notebook; did you mean 'torch'?\n"),
       }) {
    Outcome outcome = run(arguments);
    EXPECT_NE(outcome.code, 0) << arguments;
    EXPECT_THAT(outcome.text, testing::StartsWith(error));
  }
}

TEST(ModelPrograms, HelpListsOnlyTheirOptions) {
  auto options = [](const std::string &program) { return run(program + " --help").text; };
  EXPECT_THAT(options("lenet"), testing::AllOf(HasSubstr("--input "), HasSubstr("--init torch|notebook")));
  EXPECT_THAT(options("lenet"), Not(testing::AnyOf(HasSubstr("xavier"), HasSubstr("he ("))));
  EXPECT_THAT(options("fcn_r"), HasSubstr("--init xavier|torch"));
  EXPECT_THAT(options("fcn_r"), Not(HasSubstr("notebook")));
  for (const char *language : {"gpt2", "bert_base", "lstm", "lstm_lm"})
    EXPECT_THAT(options(language), Not(testing::AnyOf(HasSubstr("images"), HasSubstr("--init")))) << language;
  EXPECT_THAT(options("lenet_data_parallel"), Not(testing::AnyOf(HasSubstr("--init"), HasSubstr("--pin"))));
  EXPECT_EQ(run("gpt2 --input u8").code, 2);
}

TEST(ModelPrograms, NameThePartsThatOneCanPin) {
  Outcome unknown = run("lenet --pin head=cpu -o -");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.text, HasSubstr("'lenet' has no part 'head'; it has conv, conv1, conv2, fc, fc1, fc2"));
}

TEST(ModelPrograms, RefusePinsToAbsentDevicesWithCode4) {
  Outcome absent = run("mlp --devices cpu,sim:0 --pin hidden=gpu:1 -o -");
  EXPECT_EQ(absent.code, 4);
  EXPECT_THAT(absent.text,
              HasSubstr("mlp: error: cannot apply --pin hidden=gpu:1: there is no device 'gpu:1'; --devices "
                        "has cpu, sim:0 (gpu:0)\n"));
  for (const char *other : {"cuda:0", "cuda", "sim:1", "tpu:0"}) {
    Outcome wrong = run(std::string("mlp --devices cpu,sim:0 --pin hidden=") + other + " -o -");
    EXPECT_EQ(wrong.code, 4) << other;
    EXPECT_THAT(wrong.text, HasSubstr(std::string("there is no device '") + other + "'"));
  }
}

TEST(ModelPrograms, ReportUnwritableFilesWithCode3) {
  Outcome full = run("lenet -o /dev/full");
  EXPECT_EQ(full.code, 3);
  EXPECT_THAT(full.text, HasSubstr("error: /dev/full: cannot write: No space left on device"));
  EXPECT_EQ(run("lenet -o /no/such/folder/x.mlir").code, 3);
}
