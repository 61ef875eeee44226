// RUN: sluice-opt %s --split-input-file --verify-diagnostics

// Tests that an op with operands on two devices is rejected; the error names both.
module {
  sluice.entry @predict ["x", "w"] -> [] (%x: tensor<2xf32, #sluice.at<device = "cpu">>, %w: tensor<2xf32, #sluice.at<device = "acc0">>) {
    // expected-error @+1 {{acc0}}
    %y = sluice.add %x, %w : (tensor<2xf32, #sluice.at<device = "cpu">>, tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32, #sluice.at<device = "cpu">>
    sluice.return
  }
}
