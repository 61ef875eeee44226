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

// -----

// Tests that a count of rows asks the smallest input, so that what is counted need not be computed.
// CHECK: sluice.entry @predict ["x", "y"] -> ["n", "m", "k"] (%{{.+}}: tensor<?x9xf32>, %[[Y:.+]]: tensor<?x2xf32>)
// CHECK-NOT: sluice.exp
// CHECK: sluice.count %[[Y]] {axes = array<i64: 0>
// CHECK: sluice.count %{{.+}} {axes = array<i64: 0, 1>
module {
  sluice.graph ["x", "y"] (%x: tensor<?x9xf32>, %y: tensor<?x2xf32>) {
    %e = sluice.exp %x : (tensor<?x9xf32>) -> tensor<?x9xf32>
    %n = sluice.count %e {axes = array<i64: 0>, to = f32} : (tensor<?x9xf32>) -> tensor<f32>
    %m = sluice.count %x {axes = array<i64: 0, 1>, to = f32} : (tensor<?x9xf32>) -> tensor<f32>
    %k = sluice.mul %y, %y : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.output "n", %n : tensor<f32>
    sluice.output "m", %m : tensor<f32>
    sluice.output "k", %k : tensor<?x2xf32>
  }
}
