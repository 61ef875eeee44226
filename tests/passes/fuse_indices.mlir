// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --sluice-place-values --sluice-fuse-kernels | FileCheck %s

// Tests that rows selected by an index are gathered in the consumer's kernel.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "mul"
// CHECK: sluice.gather
// CHECK-NEXT: sluice.mul
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "w", "ids"] (%x: tensor<?x3xf32>, %w: tensor<9x3xf32>, %ids: tensor<?xi32>) {
    %g = sluice.gather %w, %ids {axis = 0 : i64} : (tensor<9x3xf32>, tensor<?xi32>) -> tensor<?x3xf32>
    %y = sluice.mul %x, %g : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.output "y", %y : tensor<?x3xf32>
  }
}

// -----

// Tests that an elementwise op that also reads a product's result at other indices is in another kernel: the product's kernel holds
// one tile of the result at a time.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_relu"
// CHECK: sluice.yield
// CHECK: sluice.kernel "sub"
// CHECK: sluice.slice
// CHECK: sluice.sub
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "w"] (%x: tensor<?x5xf32>, %w: tensor<19x5xf32>) {
    %h = sluice.einsum "ab,cb->ac" %x, %w : (tensor<?x5xf32>, tensor<19x5xf32>) -> tensor<?x19xf32>
    %r = sluice.relu %h : (tensor<?x19xf32>) -> tensor<?x19xf32>
    %0 = sluice.slice %r {end = array<i64: ?, 1>, start = array<i64: 0, 0>, step = array<i64: 1, 1>} : (tensor<?x19xf32>) -> tensor<?x1xf32>
    %1 = sluice.expand %0 {dims = array<i64: 0, 1>, shape = array<i64: ?, 19>} : (tensor<?x1xf32>) -> tensor<?x19xf32>
    %y = sluice.sub %r, %1 : (tensor<?x19xf32>, tensor<?x19xf32>) -> tensor<?x19xf32>
    sluice.output "y", %y : tensor<?x19xf32>
  }
}

// -----

// Tests that sums at indices have a separate launch, because no other op has their iteration order.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "relu"
// CHECK: sluice.kernel "scatter_add"
// CHECK: sluice.kernel "neg"
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "ids"] (%x: tensor<?x3xf32>, %ids: tensor<?xi32>) {
    %r = sluice.relu %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %s = sluice.scatter_add %r, %ids {axis = 0 : i64, size = 9 : i64} : (tensor<?x3xf32>, tensor<?xi32>) -> tensor<9x3xf32>
    %n = sluice.neg %s : (tensor<9x3xf32>) -> tensor<9x3xf32>
    sluice.output "n", %n : tensor<9x3xf32>
  }
}
