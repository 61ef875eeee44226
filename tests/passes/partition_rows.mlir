// RUN: sluice-opt %s --split-input-file --sluice-partition-rows | FileCheck %s

// Tests that a mean over rows is a sum divided by the number of all rows, and is reduced once, after the division. The
// capacity is that of a replica.
// CHECK-LABEL: module @mean
// CHECK: sluice.model "m" format 2 phase "train" capacity 4 replicas 3 batch 10
// CHECK: sluice.state share @global_rows : tensor<i64>
// CHECK: %[[N:.+]] = sluice.get @global_rows : tensor<i64>
// CHECK: %[[S:.+]] = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
// CHECK: %[[C:.+]] = sluice.cast %[[N]] {to = f32}
// CHECK: %[[E:.+]] = sluice.expand %[[C]]
// CHECK: %[[D:.+]] = sluice.div %[[S]], %[[E]]
// CHECK-NEXT: %[[Y:.+]] = sluice.all_reduce sum %[[D]] : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: sluice.return %[[Y]]
module @mean {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 3
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x2xf32>) {
    %y = sluice.mean %x {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that two gradients of a parameter are added before the reduction, that the update reads the reduced value, and
// that a value is reduced once.
// CHECK-LABEL: module @shared
// CHECK: %[[A:.+]] = sluice.einsum "ab,ac->bc" %x
// CHECK: %[[B:.+]] = sluice.einsum "ab,ac->bc" %z
// CHECK: %[[G:.+]] = sluice.add %[[A]], %[[B]]
// CHECK-NEXT: %[[R:.+]] = sluice.all_reduce sum %[[G]]
// CHECK-NOT: all_reduce
// CHECK: %[[D:.+]] = sluice.mul %w,
// CHECK: %[[S:.+]] = sluice.add %[[R]], %[[D]]
// CHECK: %[[W:.+]] = sluice.sub %w, %[[S]]
// CHECK: sluice.set @w, %[[W]]
// CHECK: sluice.return %[[R]]
module @shared {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step ["x", "z", "dy"] -> ["g"] (%x: tensor<?x3xf32>, %z: tensor<?x3xf32>, %dy: tensor<?x2xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %a = sluice.einsum "ab,ac->bc" %x, %dy : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<3x2xf32>
    %b = sluice.einsum "ab,ac->bc" %z, %dy : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<3x2xf32>
    %g = sluice.add %a, %b : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %c = sluice.full {type = tensor<3x2xf32>, value = 1.0e-2 : f64} : () -> tensor<3x2xf32>
    %d = sluice.mul %w, %c : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %s = sluice.add %g, %d : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %n = sluice.sub %w, %s : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    sluice.set @w, %n : tensor<3x2xf32>
    sluice.return %g : tensor<3x2xf32>
  }
}

// -----

// Tests that a count from data is reduced before the division, that a maximum is reduced by maximum, and a minimum,
// too.
// CHECK-LABEL: module @data
// CHECK: %[[S:.+]] = sluice.sum %x
// CHECK-NEXT: %[[SR:.+]] = sluice.all_reduce sum %[[S]]
// CHECK: %[[M:.+]] = sluice.sum %mask
// CHECK-NEXT: %[[MR:.+]] = sluice.all_reduce sum %[[M]]
// CHECK: sluice.div %[[SR]], %[[MR]]
// CHECK: %[[X:.+]] = sluice.reduce_max %x
// CHECK-NEXT: sluice.all_reduce max %[[X]]
// CHECK: %[[N:.+]] = sluice.neg %x
// CHECK: %[[L:.+]] = sluice.reduce_max %[[N]]
// CHECK-NEXT: %[[LR:.+]] = sluice.all_reduce max %[[L]]
// CHECK: sluice.neg %[[LR]]
module @data {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @predict ["x", "mask"] -> ["mean", "max", "min"] (%x: tensor<?xf32>, %mask: tensor<?xf32>) {
    %s = sluice.sum %x {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    %n = sluice.sum %mask {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    %q = sluice.div %s, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %a = sluice.reduce_max %x {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    %i = sluice.reduce_min %x {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.return %q, %a, %i : tensor<f32>, tensor<f32>, tensor<f32>
  }
}

// -----

// Tests that batch norm over local rows has its gradients summed, and keeps the running statistics of the first
// replica. Of three rows the first replica has two, so that it has a variance.
// CHECK-LABEL: module @norm
// CHECK-NEXT: sluice.model {{.*}} least_training_rows 3
// CHECK: %y, %[[MEAN:.+]], %{{.+}} = sluice.batch_norm %x, %w, %w, %m, %v
// CHECK-NEXT: %[[M:.+]] = sluice.broadcast from 0 %[[MEAN]]
// CHECK: sluice.set @m, %[[M]]
// CHECK: %[[DX:.+]], %[[DW:.+]], %{{.+}} = sluice.batch_norm_grad
// CHECK-NEXT: %[[W:.+]] = sluice.all_reduce sum %[[DW]]
// CHECK: sluice.return %y, %[[DX]], %[[W]]
module @norm {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2 least_training_rows 2
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state statistic @m : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.state statistic @v : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step ["x"] -> ["y", "dx", "dw"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %m = sluice.get @m : tensor<3xf32>
    %v = sluice.get @v : tensor<3xf32>
    %y:3 = sluice.batch_norm %x, %w, %w, %m, %v {training} : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>)
    sluice.set @m, %y#1 : tensor<3xf32>
    %g:3 = sluice.batch_norm_grad %x, %w, %m, %v, %x {training} : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>)
    sluice.return %y#0, %g#0, %g#1 : tensor<?x3xf32>, tensor<?x3xf32>, tensor<3xf32>
  }
}

// -----

// Tests that rows are numbered globally from a replica's first row, and that values without rows are drawn equally on
// all replicas.
// CHECK-LABEL: module @drawn
// CHECK: sluice.state share @first_row : tensor<i64>
// CHECK: %[[F:.+]] = sluice.get @first_row : tensor<i64>
// CHECK: sluice.bernoulli %key, %[[F]] {p = 5.000000e-01 : f64, stream = 1 : i64, type = tensor<?x2xi1>}
// CHECK: sluice.bernoulli %key {p = 5.000000e-01 : f64, stream = 2 : i64, type = tensor<2xi1>}
module @drawn {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @train_step ["key"] -> ["y", "z"] (%key: tensor<2xi32>) {
    %y = sluice.bernoulli %key {p = 0.5 : f64, stream = 1 : i64, type = tensor<?x2xi1>} : (tensor<2xi32>) -> tensor<?x2xi1>
    %z = sluice.bernoulli %key {p = 0.5 : f64, stream = 2 : i64, type = tensor<2xi1>} : (tensor<2xi32>) -> tensor<2xi1>
    sluice.return %y, %z : tensor<?x2xi1>, tensor<2xi1>
  }
}
