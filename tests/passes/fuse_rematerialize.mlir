// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --sluice-place-values --sluice-fuse-kernels | FileCheck %s

// Tests that a launch rematerializes a wide operand from the two-byte values that it is computed from.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_silu_tanh"
// CHECK: -> (tensor<?x8xbf16, #cpu>, tensor<?x8xbf16, #cpu>) {
// CHECK: sluice.kernel "einsum_mul"
// CHECK: -> tensor<?x8xf32, #cpu> {
// CHECK: sluice.einsum
// CHECK: sluice.exp
// CHECK: sluice.mul
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @v : tensor<8x8xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x8xf32>) {
    %v = sluice.get @v : tensor<8x8xf32>
    %w = sluice.cast %v {to = bf16} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
    %n = sluice.cast %x {to = bf16} : (tensor<?x8xf32>) -> tensor<?x8xbf16>
    %p = sluice.einsum "ab,bc->ac" %n, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    %a = sluice.silu %p : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %h = sluice.tanh %a : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %wide = sluice.cast %a {to = f32} : (tensor<?x8xbf16>) -> tensor<?x8xf32>
    %e = sluice.exp %wide : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %q = sluice.einsum "ab,bc->ac" %h, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    %r = sluice.cast %q {to = f32} : (tensor<?x8xbf16>) -> tensor<?x8xf32>
    %y = sluice.mul %e, %r : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    sluice.output "y", %y : tensor<?x8xf32>
  }
}

// -----

// Tests that a stored value is read instead of storing two-byte values and repeating the ops in between.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_silu_tanh"
// CHECK: -> (tensor<?x8xbf16, #cpu>, tensor<?x8xbf16, #cpu>) {
// CHECK: %[[P:.*]] = sluice.einsum
// CHECK: %[[A:.*]] = sluice.silu
// CHECK: %[[H:.*]] = sluice.tanh
// CHECK: sluice.yield %[[P]], %[[H]]
// CHECK: sluice.kernel "einsum_mul"
// CHECK: sluice.silu
// CHECK: sluice.exp
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @v : tensor<8x8xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x8xf32>) {
    %v = sluice.get @v : tensor<8x8xf32>
    %w = sluice.cast %v {to = bf16} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
    %n = sluice.cast %x {to = bf16} : (tensor<?x8xf32>) -> tensor<?x8xbf16>
    %p = sluice.einsum "ab,bc->ac" %n, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    %a = sluice.silu %p : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %h = sluice.tanh %a : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %wide = sluice.cast %a {to = f32} : (tensor<?x8xbf16>) -> tensor<?x8xf32>
    %e = sluice.exp %wide : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %q = sluice.einsum "ab,bc->ac" %h, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    %r = sluice.cast %q {to = f32} : (tensor<?x8xbf16>) -> tensor<?x8xf32>
    %y = sluice.mul %e, %r : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    sluice.output "y", %y : tensor<?x8xf32>
    sluice.output "p", %p : tensor<?x8xbf16>
  }
}

// -----

// Tests that values are not rematerialized at equal cost.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_silu_tanh_exp"
// CHECK: sluice.kernel "einsum_mul"
// CHECK-NOT: sluice.exp
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @v : tensor<8x8xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x8xf32>) {
    %v = sluice.get @v : tensor<8x8xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %v : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %a = sluice.silu %p : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %h = sluice.tanh %a : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %e = sluice.exp %a : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %q = sluice.einsum "ab,bc->ac" %h, %v : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %y = sluice.mul %e, %q : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    sluice.output "y", %y : tensor<?x8xf32>
  }
}

// -----

// Tests that values with equal cost each are rematerialized together from one source.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_silu_tanh"
// CHECK: -> (tensor<?x8xf32, #cpu>, tensor<?x8xf32, #cpu>) {
// CHECK: sluice.kernel "einsum_mul"
// CHECK: sluice.sin
// CHECK: sluice.exp
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @v : tensor<8x8xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x8xf32>) {
    %v = sluice.get @v : tensor<8x8xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %v : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %a = sluice.silu %p : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %h = sluice.tanh %a : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %e = sluice.exp %a : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %s = sluice.sin %a : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %q = sluice.einsum "ab,bc->ac" %h, %v : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %r = sluice.mul %q, %s : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %y = sluice.mul %e, %r : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    sluice.output "y", %y : tensor<?x8xf32>
  }
}

// -----

// Tests that a value that a product reads from memory is read from there by all consumers.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_silu_exp"
// CHECK: -> tensor<?x8xf32, #cpu> {
// CHECK: sluice.kernel "einsum_mul"
// CHECK-NOT: sluice.exp
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @v : tensor<8x8xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x8xf32>) {
    %v = sluice.get @v : tensor<8x8xf32>
    %w = sluice.cast %v {to = bf16} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
    %n = sluice.cast %x {to = bf16} : (tensor<?x8xf32>) -> tensor<?x8xbf16>
    %p = sluice.einsum "ab,bc->ac" %n, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    %a = sluice.silu %p : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %wide = sluice.cast %a {to = f32} : (tensor<?x8xbf16>) -> tensor<?x8xf32>
    %e = sluice.exp %wide : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %q = sluice.einsum "ab,bc->ac" %e, %v : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %y = sluice.mul %e, %q : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    sluice.output "y", %y : tensor<?x8xf32>
  }
}

// -----

// Tests that a value of a state's old value is not rematerialized after the update: the old value would have to be kept.
// CHECK: sluice.entry @step
// CHECK: sluice.kernel "einsum_add_tanh_cast_etc"
// CHECK: -> (tensor<?x8xbf16, #cpu>, tensor<?x8xbf16, #cpu>, tensor<?x8xf32, #cpu>) {
// CHECK: sluice.exp %
// CHECK: sluice.kernel "einsum_mul"
// CHECK-NOT: sluice.exp %
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @v : tensor<8x8xf32> = <"constant", 1.0 : f64>
  sluice.state cache @s : tensor<8xf32> = <"constant", 0.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x8xf32>) {
    %v = sluice.get @v : tensor<8x8xf32>
    %s = sluice.get @s : tensor<8xf32>
    %w = sluice.cast %v {to = bf16} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
    %n = sluice.cast %x {to = bf16} : (tensor<?x8xf32>) -> tensor<?x8xbf16>
    %p = sluice.einsum "ab,bc->ac" %n, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    %wide = sluice.cast %p {to = f32} : (tensor<?x8xbf16>) -> tensor<?x8xf32>
    %b = sluice.expand %s {dims = array<i64: 1>, shape = array<i64: ?, 8>} : (tensor<8xf32>) -> tensor<?x8xf32>
    %a = sluice.add %wide, %b : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %t = sluice.tanh %a : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %h = sluice.cast %t {to = bf16} : (tensor<?x8xf32>) -> tensor<?x8xbf16>
    %e = sluice.exp %a : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %q = sluice.einsum "ab,bc->ac" %h, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    %r = sluice.cast %q {to = f32} : (tensor<?x8xbf16>) -> tensor<?x8xf32>
    %next = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x8xf32>) -> tensor<8xf32>
    sluice.set @s, %next in "step" : tensor<8xf32>
    %nb = sluice.expand %next {dims = array<i64: 1>, shape = array<i64: ?, 8>} : (tensor<8xf32>) -> tensor<?x8xf32>
    %z = sluice.mul %e, %r : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %y = sluice.mul %z, %nb : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    sluice.output "y", %y in "step" : tensor<?x8xf32>
    sluice.output "p", %p in "step" : tensor<?x8xbf16>
  }
}

// -----

// Tests that a fold with several passes over its operands rematerializes none.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_silu_tanh_exp"
// CHECK: -> (tensor<?x8xbf16, #cpu>, tensor<?x8xf32, #cpu>) {
// CHECK: sluice.kernel "softmax"
// CHECK-NEXT: (%arg0 = %{{.*}} : tensor<?x8xf32, #cpu>)
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @v : tensor<8x8xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x8xf32>) {
    %v = sluice.get @v : tensor<8x8xf32>
    %w = sluice.cast %v {to = bf16} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
    %n = sluice.cast %x {to = bf16} : (tensor<?x8xf32>) -> tensor<?x8xbf16>
    %p = sluice.einsum "ab,bc->ac" %n, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    %a = sluice.silu %p : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %h = sluice.tanh %a : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %wide = sluice.cast %a {to = f32} : (tensor<?x8xbf16>) -> tensor<?x8xf32>
    %e = sluice.exp %wide : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %s = sluice.softmax %e {axis = 1 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %q = sluice.einsum "ab,bc->ac" %h, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    sluice.output "s", %s : tensor<?x8xf32>
    sluice.output "q", %q : tensor<?x8xbf16>
  }
}

// -----

// Tests that a long chain of ops is not repeated to save two bytes per element.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_tanh"
// CHECK: -> (tensor<?x8xbf16, #cpu>, tensor<?x8xbf16, #cpu>) {
// CHECK: sluice.kernel "mul"
// CHECK-NOT: sluice.tanh
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @v : tensor<8x8xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x8xf32>) {
    %v = sluice.get @v : tensor<8x8xf32>
    %w = sluice.cast %v {to = bf16} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
    %n = sluice.cast %x {to = bf16} : (tensor<?x8xf32>) -> tensor<?x8xbf16>
    %t0 = sluice.einsum "ab,bc->ac" %n, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    sluice.output "p", %t0 : tensor<?x8xbf16>
    %t1 = sluice.tanh %t0 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t2 = sluice.tanh %t1 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t3 = sluice.tanh %t2 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t4 = sluice.tanh %t3 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t5 = sluice.tanh %t4 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t6 = sluice.tanh %t5 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t7 = sluice.tanh %t6 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t8 = sluice.tanh %t7 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t9 = sluice.tanh %t8 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t10 = sluice.tanh %t9 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t11 = sluice.tanh %t10 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t12 = sluice.tanh %t11 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t13 = sluice.tanh %t12 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t14 = sluice.tanh %t13 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t15 = sluice.tanh %t14 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %t16 = sluice.tanh %t15 : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %s = sluice.cumsum %t0 {axis = 1 : i64} : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %y = sluice.mul %t16, %s : (tensor<?x8xbf16>, tensor<?x8xbf16>) -> tensor<?x8xbf16>
    sluice.output "y", %y : tensor<?x8xbf16>
  }
}

// -----

// Tests that a weight gradient computes its image from the convolution's result, which other gradients read anyway, so
// that the image is not kept until then; and that the factor is updated after that.
// CHECK: sluice.entry @train_step
// CHECK: %[[Z:.+]]:2 = sluice.kernel "conv2d_mul_relu"
// CHECK: sluice.kernel "conv2d_relu_compare"
// CHECK-NEXT: ({{.+}} = %[[Z]]#1 :
// CHECK: sluice.kernel "conv2d_weight_grad_mul_sub"
// CHECK-NEXT: ({{.+}} = %[[Z]]#0 :
// CHECK-NEXT: = %scale :
// CHECK: sluice.relu
// CHECK: sluice.conv2d_weight_grad
// CHECK: sluice.kernel "sum_mul_sub"
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @v : tensor<64x3x3x3xf32> = <"constant", 0.0 : f64>
  sluice.state parameter @scale : tensor<64xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @w : tensor<64x64x3x3xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 1.000000e-01 : f64>
  sluice.graph ["x"] (%x: tensor<?x3x8x8xf32>) {
    %v = sluice.get @v : tensor<64x3x3x3xf32>
    %s = sluice.get @scale : tensor<64xf32>
    %w = sluice.get @w : tensor<64x64x3x3xf32>
    %z = sluice.conv2d %x, %v {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<?x3x8x8xf32>, tensor<64x3x3x3xf32>) -> tensor<?x64x8x8xf32>
    %e = sluice.expand %s {dims = array<i64: 1>, shape = array<i64: ?, 64, 8, 8>} : (tensor<64xf32>) -> tensor<?x64x8x8xf32>
    %m = sluice.mul %z, %e : (tensor<?x64x8x8xf32>, tensor<?x64x8x8xf32>) -> tensor<?x64x8x8xf32>
    %y = sluice.relu %m : (tensor<?x64x8x8xf32>) -> tensor<?x64x8x8xf32>
    %c = sluice.conv2d %y, %w {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<?x64x8x8xf32>, tensor<64x64x3x3xf32>) -> tensor<?x64x8x8xf32>
    %r = sluice.relu %c : (tensor<?x64x8x8xf32>) -> tensor<?x64x8x8xf32>
    %g = sluice.mean %r {axes = array<i64: 2, 3>} : (tensor<?x64x8x8xf32>) -> tensor<?x64xf32>
    %q = sluice.softmax %g {axis = 1 : i64} : (tensor<?x64xf32>) -> tensor<?x64xf32>
    %h = sluice.mul %q, %q : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
    %l = sluice.mean %h {axes = array<i64: 0, 1>} : (tensor<?x64xf32>) -> tensor<f32>
    sluice.minimize %l, #sluice.sgd<momentum = 0.000000e+00 : f64, dampening = 0.000000e+00 : f64, weight_decay = 0.000000e+00 : f64, nesterov = false> lr @lr [@v, @scale, @w] : tensor<f32>
  }
}

// -----

// Tests that it reads the image where it does not copy pixels: with few channels.
// CHECK: sluice.entry @train_step
// CHECK: %[[Z:.+]]:2 = sluice.kernel "conv2d_mul_relu"
// CHECK: sluice.kernel "conv2d_weight_grad_mul_sub"
// CHECK-NEXT: ({{.+}} = %[[Z]]#1 :
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @v : tensor<32x3x3x3xf32> = <"constant", 0.0 : f64>
  sluice.state parameter @scale : tensor<32xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @w : tensor<32x32x3x3xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 1.000000e-01 : f64>
  sluice.graph ["x"] (%x: tensor<?x3x8x8xf32>) {
    %v = sluice.get @v : tensor<32x3x3x3xf32>
    %s = sluice.get @scale : tensor<32xf32>
    %w = sluice.get @w : tensor<32x32x3x3xf32>
    %z = sluice.conv2d %x, %v {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<?x3x8x8xf32>, tensor<32x3x3x3xf32>) -> tensor<?x32x8x8xf32>
    %e = sluice.expand %s {dims = array<i64: 1>, shape = array<i64: ?, 32, 8, 8>} : (tensor<32xf32>) -> tensor<?x32x8x8xf32>
    %m = sluice.mul %z, %e : (tensor<?x32x8x8xf32>, tensor<?x32x8x8xf32>) -> tensor<?x32x8x8xf32>
    %y = sluice.relu %m : (tensor<?x32x8x8xf32>) -> tensor<?x32x8x8xf32>
    %c = sluice.conv2d %y, %w {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<?x32x8x8xf32>, tensor<32x32x3x3xf32>) -> tensor<?x32x8x8xf32>
    %r = sluice.relu %c : (tensor<?x32x8x8xf32>) -> tensor<?x32x8x8xf32>
    %g = sluice.mean %r {axes = array<i64: 2, 3>} : (tensor<?x32x8x8xf32>) -> tensor<?x32xf32>
    %q = sluice.softmax %g {axis = 1 : i64} : (tensor<?x32xf32>) -> tensor<?x32xf32>
    %h = sluice.mul %q, %q : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
    %l = sluice.mean %h {axes = array<i64: 0, 1>} : (tensor<?x32xf32>) -> tensor<f32>
    sluice.minimize %l, #sluice.sgd<momentum = 0.000000e+00 : f64, dampening = 0.000000e+00 : f64, weight_decay = 0.000000e+00 : f64, nesterov = false> lr @lr [@v, @scale, @w] : tensor<f32>
  }
}
