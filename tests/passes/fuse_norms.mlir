// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --sluice-place-values --sluice-fuse-kernels | FileCheck %s

// Tests that a normalisation is one launch together with what makes its operand and what follows it, and that its gradient is
// two: that of x, and that of the weight with x^ rematerialized. The bias's is summed where dY is made. What updates them joins the
// sums, once nothing reads the old weight.
// CHECK: sluice.entry @train_step
// CHECK: sluice.kernel "einsum"
// CHECK: sluice.kernel "normalize_tanh_mean_mul_etc"
// CHECK: sluice.sum
// CHECK: sluice.kernel "normalize_grad"
// CHECK: sluice.kernel "normalize_mul_sum_mul_etc"
// CHECK: sluice.sub
// CHECK-NOT: sluice.kernel "normalize
// CHECK: sluice.entry @eval_step
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_2"
// CHECK: sluice.kernel "normalize_tanh"
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @weight : tensor<32xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @bias : tensor<32xf32> = <"constant", 0.0 : f64>
  sluice.state parameter @fc : tensor<32x32xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.01 : f64>
  sluice.graph ["x"] (%x: tensor<?x3x32xf32>) {
    %w = sluice.get @weight : tensor<32xf32>
    %b = sluice.get @bias : tensor<32xf32>
    %f = sluice.get @fc : tensor<32x32xf32>
    %r = sluice.einsum "abc,dc->abd" %x, %f : (tensor<?x3x32xf32>, tensor<32x32xf32>) -> tensor<?x3x32xf32>
    %n = sluice.normalize %r, %w, %b {axis = 2 : i64, dims = array<i64: 2>, eps = 1.000000e-05 : f64} : (tensor<?x3x32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<?x3x32xf32>
    %y = sluice.tanh %n : (tensor<?x3x32xf32>) -> tensor<?x3x32xf32>
    sluice.output "y", %y : tensor<?x3x32xf32>
    %l = sluice.mean %y {axes = array<i64: 0, 1, 2>} : (tensor<?x3x32xf32>) -> tensor<f32>
    sluice.minimize %l, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@weight, @bias, @fc] : tensor<f32>
  }
}

// -----

// Tests that the operand of a normalization is computed in its launch.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "add_normalize"
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "y"] (%x: tensor<?x32xf32>, %y: tensor<?x32xf32>) {
    %one = sluice.full {value = 1.0 : f64, type = tensor<f32>} : () -> tensor<f32>
    %zero = sluice.full {value = 0.0 : f64, type = tensor<f32>} : () -> tensor<f32>
    %a = sluice.add %x, %y : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
    %n = sluice.normalize %a, %one, %zero {axis = 1 : i64, dims = array<i64>, eps = 1.0e-05 : f64, rms} : (tensor<?x32xf32>, tensor<f32>, tensor<f32>) -> tensor<?x32xf32>
    sluice.output "n", %n : tensor<?x32xf32>
  }
}

// -----

// Tests that index values are computed in their consumers' kernels: a triangle is one launch.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "compare_where"
// CHECK: sluice.iota
// CHECK: sluice.iota
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x"] (%x: tensor<?x5x5xf32>) {
    %i = sluice.iota {start = 0.0 : f64, step = 1.0 : f64, axis = 1 : i64, type = tensor<?x5x5xi32>} : () -> tensor<?x5x5xi32>
    %j = sluice.iota {start = 0.0 : f64, step = 1.0 : f64, axis = 2 : i64, type = tensor<?x5x5xi32>} : () -> tensor<?x5x5xi32>
    %c = sluice.compare %i, %j {predicate = #sluice<predicate ge>} : (tensor<?x5x5xi32>, tensor<?x5x5xi32>) -> tensor<?x5x5xi1>
    %z = sluice.full {value = 0.0 : f64, type = tensor<?x5x5xf32>} : () -> tensor<?x5x5xf32>
    %t = sluice.where %c, %x, %z : (tensor<?x5x5xi1>, tensor<?x5x5xf32>, tensor<?x5x5xf32>) -> tensor<?x5x5xf32>
    sluice.output "t", %t : tensor<?x5x5xf32>
  }
}

// -----

// Tests that sums over the rows of many columns do not join a fold of each row, which would be repeated for every few
// columns. x^ times dY is stored, and so is the gradient of x that a bias sums.
// CHECK: sluice.entry @train_step
// CHECK: sluice.kernel "normalize_mul"
// CHECK-NOT: sluice.kernel "normalize{{.*}}sum
// CHECK: sluice.entry @eval_step
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @weight : tensor<768xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @bias : tensor<768xf32> = <"constant", 0.0 : f64>
  sluice.state parameter @shift : tensor<768xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.01 : f64>
  sluice.graph ["x"] (%x: tensor<?x768xf32>) {
    %w = sluice.get @weight : tensor<768xf32>
    %b = sluice.get @bias : tensor<768xf32>
    %s = sluice.get @shift : tensor<768xf32>
    %e = sluice.expand %s {dims = array<i64: 1>, shape = array<i64: ?, 768>} : (tensor<768xf32>) -> tensor<?x768xf32>
    %r = sluice.add %x, %e : (tensor<?x768xf32>, tensor<?x768xf32>) -> tensor<?x768xf32>
    %n = sluice.normalize %r, %w, %b {axis = 1 : i64, dims = array<i64: 1>, eps = 1.000000e-05 : f64} : (tensor<?x768xf32>, tensor<768xf32>, tensor<768xf32>) -> tensor<?x768xf32>
    %y = sluice.tanh %n : (tensor<?x768xf32>) -> tensor<?x768xf32>
    %l = sluice.mean %y {axes = array<i64: 0, 1>} : (tensor<?x768xf32>) -> tensor<f32>
    sluice.minimize %l, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@weight, @bias, @shift] : tensor<f32>
  }
}
