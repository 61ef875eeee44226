// RUN: sluice-opt %s --split-input-file --sluice-verify-placed --verify-diagnostics

// Tests that an op with operands on two devices is rejected; the error names both.
module {
  sluice.entry @predict ["x", "w"] -> [] (%x: tensor<2xf32, #sluice.at<device = "cpu">>, %w: tensor<2xf32, #sluice.at<device = "acc0">>) {
    // expected-error @+1 {{acc0}}
    %y = sluice.add %x, %w : (tensor<2xf32, #sluice.at<device = "cpu">>, tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32, #sluice.at<device = "cpu">>
    sluice.return
  }
}

// -----

// Tests that a branch contains no copies between devices.
module {
  sluice.entry @predict ["x", "p"] -> ["y"] (%x: tensor<2xf32, #sluice.at<device = "cpu">>, %p: tensor<i1, #sluice.at<device = "cpu">>) {
    %y = sluice.loop "then" 1 times (%a = %x : tensor<2xf32, #sluice.at<device = "cpu">>) if %p : tensor<i1, #sluice.at<device = "cpu">> {
      %b = sluice.exp %a : (tensor<2xf32, #sluice.at<device = "cpu">>) -> tensor<2xf32, #sluice.at<device = "cpu">>
      // expected-error @+1 {{cannot copy a value from cpu to gpu(0) in a branch of cond: a branch runs on one device; compute the value outside of the branch}}
      %c = sluice.copy %b pin : (tensor<2xf32, #sluice.at<device = "cpu">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
      sluice.next %b : tensor<2xf32, #sluice.at<device = "cpu">>
    }
    sluice.return %y : tensor<2xf32, #sluice.at<device = "cpu">>
  }
}
