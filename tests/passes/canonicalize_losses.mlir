// Cross-entropies read logits in place.
// RUN: sluice-opt %s --sluice-canonicalize | FileCheck %s

module @losses {
  sluice.model "losses" format 2 phase "model" capacity 4

  sluice.graph ["x", "label", "target"] (%x: tensor<?x3x5xf32>, %label: tensor<?x3xi32>, %target: tensor<?x5x3xf32>) {
    // Tests that the class dimension follows a transposition of the logits.
    // CHECK: sluice.softmax_cross_entropy %x, %label {axis = 2 : i64}
    %classes = sluice.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<?x3x5xf32>) -> tensor<?x5x3xf32>
    %a = sluice.softmax_cross_entropy %classes, %label : (tensor<?x5x3xf32>, tensor<?x3xi32>) -> tensor<?x3xf32>
    sluice.output "a", %a : tensor<?x3xf32>

    // Tests that the target is transposed instead of the logits.
    // CHECK: %[[TARGET:.+]] = sluice.transpose %target {permutation = array<i64: 0, 2, 1>}
    // CHECK: sluice.soft_cross_entropy %x, %[[TARGET]] {axis = 2 : i64}
    %b = sluice.soft_cross_entropy %classes, %target : (tensor<?x5x3xf32>, tensor<?x5x3xf32>) -> tensor<?x3xf32>
    sluice.output "b", %b : tensor<?x3xf32>

    // Tests that a transposition that also moves other dimensions stays.
    // CHECK: %[[MOVED:.+]] = sluice.transpose %x {permutation = array<i64: 2, 1, 0>}
    // CHECK: sluice.softmax_cross_entropy %[[MOVED]]
    %moved = sluice.transpose %x {permutation = array<i64: 2, 1, 0>} : (tensor<?x3x5xf32>) -> tensor<5x3x?xf32>
    %turned = sluice.transpose %label {permutation = array<i64: 1, 0>} : (tensor<?x3xi32>) -> tensor<3x?xi32>
    %c = sluice.softmax_cross_entropy %moved, %turned {axis = 0 : i64} : (tensor<5x3x?xf32>, tensor<3x?xi32>) -> tensor<3x?xf32>
    sluice.output "c", %c : tensor<3x?xf32>
  }
}
