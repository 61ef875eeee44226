// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points | FileCheck %s

// Tests that gradient ops are pinned with their forward ops, updates and slots with their parameter, and that a state's
// initial value is computed on the state's device.
// CHECK-LABEL: module @pinned
module @pinned {
  // CHECK: sluice.state parameter @w {{.*}} physical tensor<3x2xf32, [[ACC:#acc0_?]]>
  sluice.state parameter @w : tensor<3x2xf32> = <"normal", 0.0 : f64, 1.0 : f64> physical tensor<3x2xf32, #sluice.at<device = "acc0">>
  sluice.state parameter @b : tensor<4x2xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step
  // CHECK: sluice.einsum {{.*}}sluice.pin = "acc0"
  // CHECK: sluice.add %{{.*}} : (
  // CHECK: sluice.einsum {{.*}}sluice.pin = "acc0"
  // CHECK: sluice.expand {{.*}}sluice.pin = "acc0"
  // CHECK: sluice.mul {{.*}}sluice.pin = "acc0"
  // CHECK: sluice.set @w
  // CHECK-NOT: sluice.pin
  // CHECK: sluice.set @b,
  // CHECK: sluice.state slot @w.momentum_buffer {{.*}} physical tensor<3x2xf32, [[ACC]]>
  // CHECK: sluice.state slot @b.momentum_buffer : tensor<4x2xf32> = <"constant", 0.000000e+00 : f64> of @b{{$}}
  // CHECK: sluice.entry @init
  // CHECK: sluice.normal {{.*}}sluice.pin = "acc0"
  sluice.graph ["x"] (%x: tensor<4x3xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %b = sluice.get @b : tensor<4x2xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %w {sluice.pin = "acc0"} : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    %y = sluice.add %p, %b : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %loss = sluice.mean %y {axes = array<i64: 0, 1>} : (tensor<4x2xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w, @b] : tensor<f32>
  }
}

// -----

// Tests that the gradient of a value without a fixed device is copied back from its user's device. The gradients of a
// value with a fixed device are on that device.
// CHECK-LABEL: module @fixed
module @fixed {
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @v : tensor<2xf32> = <"constant", 1.0 : f64> physical tensor<2xf32, #sluice.at<device = "acc0">>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step
  // CHECK: %[[W:.+]] = sluice.get @w : tensor<2xf32>
  // CHECK: %[[V:.+]] = sluice.get @v : tensor<2xf32, [[ACC:#acc0_?]]>
  // CHECK: %[[E:.+]] = sluice.exp %[[W]] : (tensor<2xf32>) -> tensor<2xf32>
  // CHECK: sluice.mean
  // CHECK: %[[DE:.+]] = sluice.mul %{{.+}}, %[[V]] : {{.*}} -> tensor<2xf32, [[ACC]]>
  // CHECK: %[[BACK:.+]] = sluice.copy %[[DE]] placement : (tensor<2xf32, [[ACC]]>) -> tensor<2xf32>
  // CHECK: sluice.mul %[[BACK]], %[[E]] : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  // CHECK: sluice.set @v, %{{.+}} : tensor<2xf32, [[ACC]]>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %w = sluice.get @w : tensor<2xf32>
    %v = sluice.get @v : tensor<2xf32, #sluice.at<device = "acc0">>
    %e = sluice.exp %w : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.mul %e, %v : (tensor<2xf32>, tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %loss = sluice.mean %y {axes = array<i64: 0>} : (tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<f32, #sluice.at<device = "acc0">>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w, @v] : tensor<f32, #sluice.at<device = "acc0">>
  }
}

// -----

// Tests that the gradients of a value that is used on two devices are added, and that a copy's gradient is copied back.
// CHECK-LABEL: module @two
module @two {
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step
  // CHECK-DAG: %[[A:.+]] = sluice.copy %{{.+}} to : (tensor<2xf32, #acc0{{_?}}>) -> tensor<2xf32>
  // CHECK-DAG: %[[B:.+]] = sluice.copy %{{.+}} to : (tensor<2xf32, #acc1{{_?}}>) -> tensor<2xf32>
  // CHECK: sluice.add %{{.+}}, %{{.+}} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %w = sluice.get @w : tensor<2xf32>
    %w0 = sluice.copy %w to : (tensor<2xf32>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %w1 = sluice.copy %w to : (tensor<2xf32>) -> tensor<2xf32, #sluice.at<device = "acc1">>
    %e0 = sluice.exp %w0 : (tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %e1 = sluice.sin %w1 : (tensor<2xf32, #sluice.at<device = "acc1">>) -> tensor<2xf32, #sluice.at<device = "acc1">>
    %back = sluice.copy %e1 to : (tensor<2xf32, #sluice.at<device = "acc1">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %y = sluice.add %e0, %back : (tensor<2xf32, #sluice.at<device = "acc0">>, tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %loss = sluice.mean %y {axes = array<i64: 0>} : (tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<f32, #sluice.at<device = "acc0">>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32, #sluice.at<device = "acc0">>
  }
}
