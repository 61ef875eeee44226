// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points | FileCheck %s

// Tests that a graph that sets a parameter from a gradient has a training step without an optimizer. Evaluation and
// prediction neither set anything nor compute gradients.
// CHECK-LABEL: module @own
module @own {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step ["x"] -> ["loss"]
  // CHECK: %[[LR:.+]] = sluice.expand
  // CHECK: %[[ONES:.+]] = sluice.expand
  // CHECK: %[[DW:.+]] = sluice.mul %[[ONES]], %x
  // CHECK: %[[STEP:.+]] = sluice.mul %[[LR]], %[[DW]]
  // CHECK: %[[NEW:.+]] = sluice.sub %w, %[[STEP]]
  // CHECK: sluice.set @w, %[[NEW]]
  // CHECK: sluice.entry @eval_step ["x"] -> ["loss"]
  // CHECK-NEXT: sluice.get @w
  // CHECK-NEXT: sluice.mul
  // CHECK-NEXT: sluice.sum
  // CHECK-NEXT: sluice.return
  // CHECK: sluice.entry @predict ["x"] -> ["y"]
  // CHECK-NEXT: sluice.get @w
  // CHECK-NEXT: sluice.mul
  // CHECK-NEXT: sluice.return
  // CHECK: sluice.entry @init
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %lr = sluice.get @lr : tensor<f32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %rate = sluice.expand %lr {dims = array<i64>, shape = array<i64: 3>} : (tensor<f32>) -> tensor<3xf32>
    %dw = sluice.gradient %loss by %w : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
    %step = sluice.mul %rate, %dw : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %new = sluice.sub %w, %step : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.set @w, %new : tensor<3xf32>
    sluice.metric "loss", %loss : tensor<f32>
    sluice.output "y", %y : tensor<3xf32>
  }
}

// -----

// Tests that a graph that only sets statistics does not train.
// CHECK-LABEL: module @statistic
// CHECK-NOT: train_step
// CHECK: sluice.entry @predict
module @statistic {
  sluice.state statistic @s : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    sluice.set @s, %x : tensor<3xf32>
    sluice.output "x", %x : tensor<3xf32>
  }
}

// -----

// Tests gradients of gradients: the sum of 2 x is differentiated once more.
// CHECK-LABEL: module @twice
// CHECK: sluice.entry @predict
// CHECK-NOT: sluice.gradient
// CHECK: sluice.return
module @twice {
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %square = sluice.mul %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %square {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %dx = sluice.gradient %loss by %x : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
    %norm = sluice.sum %dx {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %ddx = sluice.gradient %norm by %x : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.output "ddx", %ddx : tensor<3xf32>
  }
}

// -----

// Tests that training drops elements and evaluation does not: gradients are built after mode-dependent ops have their
// meaning. Prediction's gradient uses the whole value. A step sets the next key, even without an optimizer.
// CHECK-LABEL: module @modes
module @modes {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state key @random_key : tensor<2xi32> = <"key", 0.0 : f64>
  // CHECK: sluice.entry @train_step
  // CHECK: %[[DW:.+]] = sluice.dropout %{{.+}}, %{{.+}} {{.*}}training
  // CHECK: sluice.set @w, %[[DW]]
  // CHECK: sluice.set @random_key
  // CHECK: sluice.entry @predict
  // CHECK-NOT: sluice.dropout
  // CHECK: sluice.return
  sluice.graph [] () {
    %key = sluice.get @random_key : tensor<2xi32>
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.dropout %w, %key {p = 0.5 : f64, stream = 3 : i64} : (tensor<3xf32>, tensor<2xi32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %dw = sluice.gradient %loss by %w : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.set @w, %dw : tensor<3xf32>
    sluice.output "dw", %dw : tensor<3xf32>
  }
}

// -----

// Tests that a mirror of a state starts with the same elements, and that other states draw as if it drew, too.
// CHECK-LABEL: module @like
// CHECK: sluice.entry @init ["key"]
// CHECK: %[[W:.+]] = sluice.normal {{.*}}
// CHECK: sluice.set @w, %[[W]]
// CHECK: sluice.set @w.gpu0, %[[W]]
// CHECK: stream = 3
module @like {
  sluice.state parameter @w : tensor<3xf32> = <"normal", 0.0 : f64, 1.0 : f64>
  sluice.state parameter @w.gpu0 : tensor<3xf32> = <"normal", 0.0 : f64, 1.0 : f64> like @w
  sluice.state parameter @v : tensor<3xf32> = <"normal", 0.0 : f64, 1.0 : f64>
  sluice.graph [] () {
    %w = sluice.get @w.gpu0 : tensor<3xf32>
    sluice.output "w", %w : tensor<3xf32>
  }
}
