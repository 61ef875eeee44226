// RUN: sluice-opt %s --verify-diagnostics --sluice-build-entry-points --sluice-place-values

// Tests that the device of an input must be one of the target.
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  // expected-error @+1 {{unsupported: cannot place input 'x' on gpu(1): the target cpu,sim:0 has no such device}}
  sluice.graph ["x"] (%x: tensor<?x3xf32, #sluice.at<device = "acc1">>) {
    sluice.output "y", %x : tensor<?x3xf32, #sluice.at<device = "acc1">>
  }
}
