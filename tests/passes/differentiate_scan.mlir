// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --sluice-canonicalize | FileCheck %s

// Tests that the scan of a recurrence stacks its carried value and its product. The gradient runs in the opposite
// direction, recomputes elementwise values and stacks the gradient of the product. The weight's gradient is one product
// after it, the bias's one sum.
// CHECK: sluice.entry @train_step
// CHECK: %[[F:.+]]:3 = sluice.scan 5 steps
// CHECK-NEXT: (%[[A:.+]] = %{{.+}} : tensor<?x4xf32>,
// CHECK-NEXT: %[[S:.+]] = %x : tensor<?x5x4xf32> along 1)
// CHECK-NEXT: stack 1, 1 {
// CHECK: %[[P:.+]] = sluice.einsum {{.+}} %[[A]], %w
// CHECK: sluice.step %{{.+}} : tensor<?x4xf32> stack
// CHECK: %[[B:.+]]:2 = sluice.scan 5 steps reverse
// CHECK: along 1
// CHECK: stack 1 {
// CHECK: sluice.tanh
// CHECK-NOT: sluice.einsum {{.+}} -> tensor<4x4xf32>
// CHECK: sluice.step %{{.+}} : tensor<?x4xf32> stack %{{.+}} : tensor<?x4xf32>
// CHECK: sluice.einsum {{.+}} -> tensor<4x4xf32>
// CHECK: sluice.sum %[[B]]#1 {axes = array<i64: 0, 1>} : (tensor<?x5x4xf32>) -> tensor<4xf32>
module @recurrence {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<4x4xf32> = <"constant", 0.5 : f64>
  sluice.state parameter @b : tensor<4xf32> = <"constant", 0.5 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.5 : f64>
  sluice.graph ["x"] (%x: tensor<?x5x4xf32>) {
    %w = sluice.get @w : tensor<4x4xf32>
    %b = sluice.get @b : tensor<4xf32>
    %h = sluice.full {value = 0.0 : f64, type = tensor<?x4xf32>} : () -> tensor<?x4xf32>
    %last = sluice.scan 5 steps (%a = %h : tensor<?x4xf32>, %s = %x : tensor<?x5x4xf32> along 1) {
      %p = sluice.einsum "ab,cb->ac" %a, %w : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
      %e = sluice.expand %b {dims = array<i64: 1>, shape = array<i64: ?, 4>} : (tensor<4xf32>) -> tensor<?x4xf32>
      %t = sluice.add %p, %e : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      %u = sluice.add %t, %s : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      %n = sluice.tanh %u : (tensor<?x4xf32>) -> tensor<?x4xf32>
      sluice.step %n : tensor<?x4xf32>
    }
    %loss = sluice.mean %last {axes = array<i64: 0, 1>} : (tensor<?x4xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w, @b] : tensor<f32>
  }
}

// -----

// Tests that the gradient of a weight outside products and sums is accumulated step by step.
// CHECK-LABEL: module @scaled
// CHECK: sluice.scan 3 steps reverse
// CHECK-NEXT: (%[[D:.+]] = %{{.+}} : tensor<2xf32>,
// CHECK-NEXT: %[[SUM:.+]] = %{{.+}} : tensor<2xf32>,
// CHECK: %[[NEXT:.+]] = sluice.add %[[SUM]], %{{.+}}
// CHECK: sluice.step %{{.+}}, %[[NEXT]] :
module @scaled {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<2xf32> = <"constant", 0.5 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.5 : f64>
  sluice.graph ["x"] (%x: tensor<3x2xf32>) {
    %w = sluice.get @w : tensor<2xf32>
    %h = sluice.full {value = 0.0 : f64, type = tensor<2xf32>} : () -> tensor<2xf32>
    %last = sluice.scan 3 steps (%a = %h : tensor<2xf32>, %s = %x : tensor<3x2xf32> along 0) {
      %t = sluice.mul %a, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %n = sluice.add %t, %s : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      sluice.step %n : tensor<2xf32>
    }
    %loss = sluice.mean %last {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}
