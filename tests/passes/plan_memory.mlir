// RUN: sluice-opt %s --sluice-build-entry-points --sluice-place-values --sluice-outline-kernels --sluice-plan-memory | FileCheck %s

// Tests that a value takes the place of one that is dead: a chain of four needs two places (of 64 bytes).
// CHECK: transient_bytes = array<i64: 128>
// CHECK: sluice.kernel "exp" {{.*}}buffers = [array<i64: 1, [[A:[0-9]+]]>, array<i64: 1, [[B:[0-9]+]]>]
// CHECK: sluice.kernel "sin" {{.*}}buffers = [array<i64: 1, [[B]]>, array<i64: 1, [[A]]>]
// CHECK: sluice.kernel "exp{{.*}}" {{.*}}buffers = [array<i64: 1, [[A]]>, array<i64: 1, [[B]]>]
module {
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %a = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %b = sluice.sin %a : (tensor<2xf32>) -> tensor<2xf32>
    %c = sluice.exp %b : (tensor<2xf32>) -> tensor<2xf32>
    sluice.output "y", %c : tensor<2xf32>
  }
}
