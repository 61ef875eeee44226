// RUN: sluice-opt %s --sluice-build-entry-points --sluice-canonicalize | FileCheck %s

// Tests that the gradient is a branch that recomputes the values it needs and yields zeros for values that a branch
// does not read.
// CHECK: sluice.entry @train_step
// CHECK: sluice.if
// CHECK: sluice.if %flag : tensor<i1> -> tensor<2xf32>, tensor<2xf32> {
// CHECK-NOT: %b
// CHECK: %[[E:.+]] = sluice.exp %a
// CHECK: %[[D:.+]] = sluice.mul %{{.+}}, %[[E]]
// CHECK: sluice.yield %[[D]], %{{.+}} : tensor<2xf32>, tensor<2xf32>
// CHECK: } else {
// CHECK-NOT: sluice.exp
// CHECK: sluice.yield %{{.+}}, %{{.+}} : tensor<2xf32>, tensor<2xf32>
module @gradient {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @a : tensor<2xf32> = <"constant", 0.5 : f64>
  sluice.state parameter @b : tensor<2xf32> = <"constant", 0.5 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.5 : f64>
  sluice.graph ["flag"] (%flag: tensor<i1>) {
    %a = sluice.get @a : tensor<2xf32>
    %b = sluice.get @b : tensor<2xf32>
    %y = sluice.if %flag : tensor<i1> -> tensor<2xf32> {
      %e = sluice.exp %a : (tensor<2xf32>) -> tensor<2xf32>
      sluice.yield %e : tensor<2xf32>
    } else {
      %m = sluice.mul %b, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      sluice.yield %m : tensor<2xf32>
    }
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@a, @b] : tensor<f32>
  }
}
