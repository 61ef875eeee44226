// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points | FileCheck %s

// Tests that states of the optimizer are left out if training is, and that the second parameter still draws from
// the stream that it has beside the optimizer state.
// CHECK-LABEL: module @predicted
// CHECK: entries ["predict"]
// CHECK: sluice.state parameter @w
// CHECK-NOT: sluice.state
// CHECK: sluice.state parameter @v
// CHECK-NOT: sluice.state
// CHECK-NOT: train_step
// CHECK-NOT: eval_step
// CHECK: sluice.entry @predict ["x"] -> ["y"]
// CHECK: sluice.entry @init ["key"] -> []
// CHECK: sluice.uniform
// CHECK-SAME: stream = 1
// CHECK: sluice.set @w
// CHECK: sluice.uniform
// CHECK-SAME: stream = 3
// CHECK: sluice.set @v
// CHECK-NOT: sluice.set
module @predicted {
  sluice.model "model" format 2 phase "model" capacity 4 entries ["predict"]
  sluice.state parameter @w : tensor<3x2xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state slot @momentum.w : tensor<3x2xf32> = <"constant", 0.0 : f64> of @w
  sluice.state parameter @v : tensor<2xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x", "label"] (%x: tensor<?x3xf32>, %label: tensor<?xi32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %v = sluice.get @v : tensor<2xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %b = sluice.expand %v {dims = array<i64: 1>, shape = array<i64: ?, 2>} : (tensor<2xf32>) -> tensor<?x2xf32>
    %y = sluice.add %p, %b : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
    %losses = sluice.softmax_cross_entropy %y, %label : (tensor<?x2xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %losses {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}

// -----

// Tests that a user-defined entry point keeps its cache, and only its parameters.
// CHECK-LABEL: module @own
// CHECK: sluice.state cache @sum
// CHECK-NOT: sluice.state
// CHECK-NOT: @predict
// CHECK: sluice.entry @add ["x"] -> ["total"]
// CHECK: sluice.set @sum
module @own {
  sluice.model "model" format 2 phase "model" entries ["add"]
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.state cache @sum : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %w = sluice.get @w : tensor<2xf32>
    %y = sluice.mul %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.output "y", %y : tensor<2xf32>
    %sum = sluice.get @sum : tensor<2xf32>
    %next = sluice.add %sum, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.set @sum, %next in "add" : tensor<2xf32>
    sluice.output "total", %next in "add" : tensor<2xf32>
  }
}
