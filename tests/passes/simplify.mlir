// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --sluice-simplify | FileCheck %s

// Tests that equal ops become one, and that what nothing uses is gone.
// CHECK: sluice.entry @predict
// CHECK: %[[E:.+]] = sluice.exp
// CHECK-NOT: sluice.exp
// CHECK-NOT: sluice.sin
// CHECK: sluice.add %[[E]], %[[E]]
module {
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %a = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %b = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %unused = sluice.sin %x : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.output "y", %y : tensor<2xf32>
  }
}
