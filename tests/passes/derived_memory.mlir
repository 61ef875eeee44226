// RUN: sluice-opt %s --sluice-place-values --sluice-derive-states --sluice-isolate-ops --sluice-prepare-kernels --sluice-schedule-actions --sluice-plan-memory | FileCheck %s

// Tests that buffers of a derivation follow all bytes of the entry points that read its states. When the derivation
// runs, the host has already written the inputs of these entry points.
// CHECK: sluice.entry @predict ["x"]
// CHECK: sluice.receive %x : tensor<3xf32, #cpu> at cpu.transient[0]
// CHECK: sluice.return {{.*}} slots [{{.*}}cpu.transient[64]
// CHECK: sluice.entry @predict.derive
// CHECK: sluice.launch "exp"
// CHECK: out tensor<3xf32, #cpu> at cpu.transient[128]
// CHECK: sluice.launch "sin"
// CHECK: out tensor<3xf32, #cpu> at cpu.state[64]
module {
  sluice.model "model" format 2 phase "model"
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %e = sluice.exp %w : (tensor<3xf32>) -> tensor<3xf32>
    %s = sluice.sin %e : (tensor<3xf32>) -> tensor<3xf32>
    %y = sluice.add %x, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.return %y : tensor<3xf32>
  }
}
