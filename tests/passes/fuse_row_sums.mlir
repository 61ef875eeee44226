// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --sluice-place-values --sluice-fuse-kernels | FileCheck %s

// Tests that a sum over the rows joins the kernel that computes its operand, even if the operand has other consumers.
// CHECK: sluice.entry @predict
// CHECK: %[[K:.+]]:2 = sluice.kernel "relu_sum"
// CHECK: sluice.kernel "einsum"
// CHECK-NEXT: ({{.+}} = %[[K]]#0 :
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return %[[K]]#1
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "w"] (%x: tensor<?x3xf32>, %w: tensor<3x2xf32>) {
    %r = sluice.relu %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %s = sluice.sum %r {axes = array<i64: 0>} : (tensor<?x3xf32>) -> tensor<3xf32>
    %p = sluice.einsum "ab,bc->ac" %r, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    sluice.output "s", %s : tensor<3xf32>
    sluice.output "p", %p : tensor<?x2xf32>
  }
}

// -----

// Tests that a consumer that reads such a sum for every row stays out of that kernel.
// CHECK: sluice.entry @predict
// CHECK: %[[K:.+]]:2 = sluice.kernel "relu_mean"
// CHECK: sluice.kernel "sub"
// CHECK-NEXT: ({{.+}} = %[[K]]#0 :
// CHECK-NEXT: {{.+}} = %[[K]]#1 :
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %r = sluice.relu %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %m = sluice.mean %r {axes = array<i64: 0>} : (tensor<?x3xf32>) -> tensor<3xf32>
    %e = sluice.expand %m {dims = array<i64: 1>, shape = array<i64: ?, 3>} : (tensor<3xf32>) -> tensor<?x3xf32>
    %d = sluice.sub %r, %e : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.output "d", %d : tensor<?x3xf32>
    sluice.output "r", %r : tensor<?x3xf32>
  }
}

// -----

// Tests that a number computed from row counts and constants has no separate kernel.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "mul"
// CHECK-NEXT: ({{.+}} = %x : tensor<?x3xf32, {{[^,]*}}>)
// CHECK-NEXT: ->
// CHECK: sluice.rows
// CHECK: sluice.div
// CHECK: sluice.mul
// CHECK-NOT: sluice.kernel
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %one = sluice.full {value = 1.0 : f64, type = tensor<f32>} : () -> tensor<f32>
    %n = sluice.rows {to = f32} : () -> tensor<f32>
    %q = sluice.div %one, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %e = sluice.expand %q {dims = array<i64>, shape = array<i64: ?, 3>} : (tensor<f32>) -> tensor<?x3xf32>
    %y = sluice.mul %x, %e : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.output "y", %y : tensor<?x3xf32>
  }
}

// -----

// Tests that elementwise ops over a sum's own elements join it, with their other operands. A consumer that reads the
// elements for every row stays out.
// CHECK: sluice.entry @predict
// CHECK: %[[K:.+]]:2 = sluice.kernel "relu_sum_mul_add_etc"
// CHECK: sluice.sum
// CHECK: sluice.rsqrt
// CHECK: sluice.kernel "sub"
// CHECK-NEXT: ({{.+}} = %[[K]]#0 :
// CHECK-NEXT: {{.+}} = %[[K]]#1 :
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "y", "z"] (%x: tensor<?x3xf32>, %y: tensor<3xf32>, %z: tensor<3xf32>) {
    %r = sluice.relu %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %p = sluice.mul %y, %z : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %s = sluice.sum %r {axes = array<i64: 0>} : (tensor<?x3xf32>) -> tensor<3xf32>
    %a = sluice.add %s, %p : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %q = sluice.rsqrt %a : (tensor<3xf32>) -> tensor<3xf32>
    %e = sluice.expand %q {dims = array<i64: 1>, shape = array<i64: ?, 3>} : (tensor<3xf32>) -> tensor<?x3xf32>
    %d = sluice.sub %r, %e : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.output "d", %d : tensor<?x3xf32>
    sluice.output "r", %r : tensor<?x3xf32>
  }
}

// -----

// Tests that a consumer that reads a sum's elements at other positions stays out, too.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "sum"
// CHECK: sluice.kernel "add"
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x"] (%x: tensor<?x3x3xf32>) {
    %s = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x3x3xf32>) -> tensor<3x3xf32>
    %t = sluice.transpose %s {permutation = array<i64: 1, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %a = sluice.add %s, %t : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    sluice.output "a", %a : tensor<3x3xf32>
  }
}

// -----

// Tests that a state's new value does not join a sum before a reader of the old value: it is computed in place, after
// that.
// CHECK: sluice.entry @step
// CHECK: sluice.kernel "relu_sum"
// CHECK: sluice.kernel "mul"
// CHECK: sluice.kernel "sub"
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state cache @w : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %r = sluice.relu %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %s = sluice.sum %r {axes = array<i64: 0>} : (tensor<?x3xf32>) -> tensor<3xf32>
    %e = sluice.expand %s {dims = array<i64: 1>, shape = array<i64: ?, 3>} : (tensor<3xf32>) -> tensor<?x3xf32>
    %f = sluice.expand %w {dims = array<i64: 1>, shape = array<i64: ?, 3>} : (tensor<3xf32>) -> tensor<?x3xf32>
    %y = sluice.mul %e, %f : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %n = sluice.sub %w, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.set @w, %n in "step" : tensor<3xf32>
    sluice.output "y", %y in "step" : tensor<?x3xf32>
  }
}

// -----

// Tests that the new value does not join a sum's launch that broadcasts the old value.
// CHECK: sluice.entry @step
// CHECK: sluice.kernel "mul_sum"
// CHECK: sluice.kernel "sub"
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state cache @w : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %f = sluice.expand %w {dims = array<i64: 1>, shape = array<i64: ?, 3>} : (tensor<3xf32>) -> tensor<?x3xf32>
    %y = sluice.mul %x, %f : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %s = sluice.sum %y {axes = array<i64: 0>} : (tensor<?x3xf32>) -> tensor<3xf32>
    %n = sluice.sub %w, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.set @w, %n in "step" : tensor<3xf32>
    sluice.output "y", %y in "step" : tensor<?x3xf32>
  }
}

// -----

// Tests that the sums of dY and of dY * xHat are one kernel, also if a product computes dY, which others read: it stores
// dY alone.
// CHECK: sluice.entry @predict
// CHECK: %[[DY:.+]] = sluice.kernel "einsum"
// CHECK: %[[SUMS:.+]]:2 = sluice.kernel "sum_mul_sum"
// CHECK-NEXT: ({{.+}} = %[[DY]] :
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "w", "xHat"] (%x: tensor<?x3xf32>, %w: tensor<3x2xf32>, %xHat: tensor<?x2xf32>) {
    %dY = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %s = sluice.sum %dY {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
    %m = sluice.mul %dY, %xHat : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %t = sluice.sum %m {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
    sluice.output "dY", %dY : tensor<?x2xf32>
    sluice.output "s", %s : tensor<2xf32>
    sluice.output "t", %t : tensor<2xf32>
  }
}

// -----

// Tests that the product computes dY * xHat if that is stored anyway, and that other reductions are other kernels.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_mul"
// CHECK: sluice.kernel "sum"
// CHECK: sluice.kernel "reduce_max"
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "w", "xHat"] (%x: tensor<?x3xf32>, %w: tensor<3x2xf32>, %xHat: tensor<?x2xf32>) {
    %dY = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %s = sluice.sum %dY {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
    %m = sluice.mul %dY, %xHat : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %t = sluice.reduce_max %dY {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
    sluice.output "m", %m : tensor<?x2xf32>
    sluice.output "dY", %dY : tensor<?x2xf32>
    sluice.output "s", %s : tensor<2xf32>
    sluice.output "t", %t : tensor<2xf32>
  }
}

// -----

// Tests that only the op that computes a sum's operand comes along to the sums, not another reader of x.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "sum_mul_sum"
// CHECK: sluice.kernel "relu"
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "y"] (%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) {
    %s = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
    %r = sluice.relu %x : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %m = sluice.mul %x, %y : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %t = sluice.sum %m {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
    sluice.output "r", %r : tensor<?x2xf32>
    sluice.output "s", %s : tensor<2xf32>
    sluice.output "t", %t : tensor<2xf32>
  }
}

// -----

// Tests that a stored value stays with its sum: kernels of sums have no results over the rows.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "sum"
// CHECK: sluice.kernel "mul_sum"
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "y"] (%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) {
    %s = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
    %m = sluice.mul %x, %y : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %t = sluice.sum %m {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
    sluice.output "m", %m : tensor<?x2xf32>
    sluice.output "s", %s : tensor<2xf32>
    sluice.output "t", %t : tensor<2xf32>
  }
}
