// RUN: sluice-opt %s --sluice-check-support --verify-diagnostics

// Tests that an op that the backend of its device cannot run is an error that names the op, the device and the reason.
#acc0 = #sluice.at<device = "acc0">
module {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "null" 0
  sluice.entry @predict [] -> [] () {
    // expected-error @+1 {{unsupported: 'sluice.full' cannot run on gpu(0) (backend 'null'): null has memory but no kernels}}
    %w = sluice.full {value = 0.5 : f64, type = tensor<2xf32>} : () -> tensor<2xf32, #acc0>
    sluice.return
  }
}
