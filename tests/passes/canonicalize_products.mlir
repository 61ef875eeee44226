// Products absorb permutations and broadcasts of their operands, and a permutation that is the only consumer of their
// result.
// RUN: sluice-opt %s --sluice-canonicalize | FileCheck %s

module @products {
  sluice.model "products" format 2 phase "model" capacity 4

  sluice.graph ["q", "k", "w", "s"] (%q: tensor<?x5x2x4xf32>, %k: tensor<?x5x2x4xf32>, %w: tensor<6x4xf32>, %s: tensor<3x4xf32>) {
    // Tests that attention in its usual form, with transposed heads, stores no transposition.
    // CHECK-NOT: sluice.transpose
    // CHECK: %[[SCORES:.+]] = sluice.einsum "abcd,aecd->acbe" %q, %k
    // CHECK: %[[P:.+]] = sluice.softmax %[[SCORES]]
    // CHECK: sluice.einsum "abcd,adbe->acbe" %[[P]], %k
    %qh = sluice.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<?x5x2x4xf32>) -> tensor<?x2x5x4xf32>
    %kh = sluice.transpose %k {permutation = array<i64: 0, 2, 1, 3>} : (tensor<?x5x2x4xf32>) -> tensor<?x2x5x4xf32>
    %kt = sluice.transpose %kh {permutation = array<i64: 0, 1, 3, 2>} : (tensor<?x2x5x4xf32>) -> tensor<?x2x4x5xf32>
    %scores = sluice.einsum "abcd,abde->abce" %qh, %kt : (tensor<?x2x5x4xf32>, tensor<?x2x4x5xf32>) -> tensor<?x2x5x5xf32>
    %p = sluice.softmax %scores {axis = 3 : i64} : (tensor<?x2x5x5xf32>) -> tensor<?x2x5x5xf32>
    %y = sluice.einsum "abcd,abde->abce" %p, %kh : (tensor<?x2x5x5xf32>, tensor<?x2x5x4xf32>) -> tensor<?x2x5x4xf32>
    %yt = sluice.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : (tensor<?x2x5x4xf32>) -> tensor<?x5x2x4xf32>
    sluice.output "attention", %yt : tensor<?x5x2x4xf32>

    // Tests that a weight that is broadcast to each row is used directly.
    // CHECK: sluice.einsum "abcd,ed->abce" %q, %w
    %each = sluice.expand %w {dims = array<i64: 2, 3>, shape = array<i64: ?, 5, 6, 4>} : (tensor<6x4xf32>) -> tensor<?x5x6x4xf32>
    %l = sluice.einsum "abcd,abed->abce" %q, %each : (tensor<?x5x2x4xf32>, tensor<?x5x6x4xf32>) -> tensor<?x5x2x6xf32>
    sluice.output "linear", %l : tensor<?x5x2x6xf32>

    // Tests that a broadcast along a letter of one operand alone, or along a summed letter, stays.
    // CHECK: sluice.expand
    // CHECK: sluice.einsum "ab,cb->ac"
    // CHECK: sluice.expand
    // CHECK: sluice.einsum "abc,bd->adc"
    %row = sluice.slice %s {start = array<i64: 0, 0>, end = array<i64: 1, 4>, step = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<1x4xf32>
    %rows = sluice.expand %row {dims = array<i64: 0, 1>, shape = array<i64: 3, 4>} : (tensor<1x4xf32>) -> tensor<3x4xf32>
    %f = sluice.einsum "ab,cb->ac" %w, %rows : (tensor<6x4xf32>, tensor<3x4xf32>) -> tensor<6x3xf32>
    sluice.output "free", %f : tensor<6x3xf32>
    %many = sluice.expand %s {dims = array<i64: 0, 2>, shape = array<i64: 3, 7, 4>} : (tensor<3x4xf32>) -> tensor<3x7x4xf32>
    %more = sluice.full {value = 1.0 : f64, type = tensor<7x2xf32>} : () -> tensor<7x2xf32>
    %g = sluice.einsum "abc,bd->adc" %many, %more : (tensor<3x7x4xf32>, tensor<7x2xf32>) -> tensor<3x2x4xf32>
    sluice.output "summed", %g : tensor<3x2x4xf32>

    // Tests that a result with other consumers stays, and so does one pinned to another device.
    // CHECK: sluice.einsum "ab,cb->ac" %w, %s :
    // CHECK: sluice.transpose
    // CHECK: sluice.transpose %s {{.*}}sluice.pin = "acc0"
    // CHECK: sluice.einsum "ab,bc->ac" %w,
    %shared = sluice.einsum "ab,cb->ac" %w, %s : (tensor<6x4xf32>, tensor<3x4xf32>) -> tensor<6x3xf32>
    %turned = sluice.transpose %shared {permutation = array<i64: 1, 0>} : (tensor<6x3xf32>) -> tensor<3x6xf32>
    sluice.output "shared", %shared : tensor<6x3xf32>
    sluice.output "turned", %turned : tensor<3x6xf32>
    %pinned = sluice.transpose %s {permutation = array<i64: 1, 0>, sluice.pin = "acc0"} : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %h = sluice.einsum "ab,bc->ac" %w, %pinned : (tensor<6x4xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
    sluice.output "pinned", %h : tensor<6x3xf32>
  }
}
