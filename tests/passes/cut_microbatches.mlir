// RUN: sluice-opt %s --split-input-file --sluice-partition-rows --sluice-cut-microbatches | FileCheck %s

// Tests that the microbatches' gradients are accumulated, and that replicas reduce the sum once, before the update.
// Outputs with rows are per microbatch, and the capacity is that of a microbatch.
// CHECK-LABEL: module @step
// CHECK: sluice.model "m" format 2 phase "train" capacity 2 replicas 2 batch 10 microbatches 3
// CHECK: sluice.state accumulator @"accumulator of w" : tensor<3x2xf32> = <"constant", 0.000000e+00 : f64> of @w
// CHECK: sluice.parts @train_step ["x", "dy"] -> ["y", "g"] = each @train_step.0, once @train_step.1
// CHECK: sluice.entry @train_step.0 ["x", "dy"] -> ["y"] (%x: tensor<?x3xf32>, %dy: tensor<?x2xf32>)
// CHECK: %[[Y:.+]] = sluice.exp %x
// CHECK: %[[G:.+]] = sluice.einsum "ab,ac->bc" %x, %dy
// CHECK: %[[A:.+]] = sluice.get @"accumulator of w"
// CHECK: %[[S:.+]] = sluice.add %[[A]], %[[G]]
// CHECK: sluice.set @"accumulator of w", %[[S]]
// CHECK-NEXT: sluice.return %[[Y]] : tensor<?x3xf32>
// CHECK: sluice.entry @train_step.1 [] -> ["g"] ()
// CHECK: %[[W:.+]] = sluice.get @w
// CHECK: %[[A:.+]] = sluice.get @"accumulator of w"
// CHECK: %[[C:.+]] = sluice.identity %[[A]]
// CHECK: %[[Z:.+]] = sluice.where
// CHECK: sluice.set @"accumulator of w", %[[Z]]
// CHECK: %[[R:.+]] = sluice.all_reduce sum %[[C]]
// CHECK: %[[N:.+]] = sluice.sub %[[W]], %[[R]]
// CHECK: sluice.set @w, %[[N]]
// CHECK: sluice.return %[[R]]
module @step {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2 microbatches 3
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step ["x", "dy"] -> ["y", "g"] (%x: tensor<?x3xf32>, %dy: tensor<?x2xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %y = sluice.exp %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %g = sluice.einsum "ab,ac->bc" %x, %dy : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<3x2xf32>
    %n = sluice.sub %w, %g : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    sluice.set @w, %n : tensor<3x2xf32>
    sluice.return %y, %g : tensor<?x3xf32>, tensor<3x2xf32>
  }
}

// -----

// Tests that an accumulator has the layout of its parameter even if a sum over the gradient, in a clip, affects other
// parameters.
// CHECK-LABEL: module @clipped
// CHECK-DAG: sluice.state accumulator @"accumulator of v" : tensor<3xf32> = <"constant", 0.000000e+00 : f64> of @v
// CHECK-DAG: sluice.state accumulator @"accumulator of w" : tensor<2xf32> = <"constant", 0.000000e+00 : f64> of @w
module @clipped {
  sluice.model "m" format 2 phase "train" capacity 10 microbatches 3
  sluice.state parameter @v : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step ["x", "y"] -> [] (%x: tensor<?x3xf32>, %y: tensor<?x2xf32>) {
    %v = sluice.get @v : tensor<3xf32>
    %w = sluice.get @w : tensor<2xf32>
    %dv = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x3xf32>) -> tensor<3xf32>
    %dw = sluice.sum %y {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
    %vv = sluice.mul %dv, %dv : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %ww = sluice.mul %dw, %dw : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %sv = sluice.sum %vv {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %sw = sluice.sum %ww {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    %s = sluice.add %sv, %sw : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %fv = sluice.expand %s {dims = array<i64>, shape = array<i64: 3>} : (tensor<f32>) -> tensor<3xf32>
    %fw = sluice.expand %s {dims = array<i64>, shape = array<i64: 2>} : (tensor<f32>) -> tensor<2xf32>
    %cv = sluice.mul %dv, %fv : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %cw = sluice.mul %dw, %fw : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %nv = sluice.sub %v, %cv : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %nw = sluice.sub %w, %cw : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.set @v, %nv : tensor<3xf32>
    sluice.set @w, %nw : tensor<2xf32>
    sluice.return
  }
}

// -----

// Tests that one replica has no collectives, and that an entry point without rows is unchanged.
// CHECK-LABEL: module @alone
// CHECK: capacity 3 batch 9 microbatches 3
// CHECK: sluice.entry @init ["key"]
// CHECK: sluice.parts @predict ["x"] -> ["sum"] = each @predict.0, once @predict.1
// CHECK-NOT: sluice.all_reduce
// CHECK: %[[A:.+]] = sluice.get @"accumulator 1"
// CHECK: sluice.return %[[A]]
module @alone {
  sluice.model "m" format 2 phase "train" capacity 9 microbatches 4
  sluice.entry @init ["key"] -> [] (%key: tensor<2xi32>) {
    sluice.return
  }
  sluice.entry @predict ["x"] -> ["sum"] (%x: tensor<?xf32>) {
    %s = sluice.sum %x {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.return %s : tensor<f32>
  }
}

// -----

// Tests that a division by a count from data waits for the count of all microbatches, recomputes its rows, and reads
// the count from a separate state.
// CHECK-LABEL: module @masked
// CHECK-DAG: sluice.state accumulator @"accumulator 1" : tensor<f32>
// CHECK-DAG: sluice.state accumulator @"accumulator 2" : tensor<2xf32>
// CHECK-DAG: sluice.state accumulator @"accumulator 3" : tensor<f32>
// CHECK: sluice.parts @predict ["x", "mask"] -> ["g"] = each @predict.0, once @predict.1, each @predict.2, once @predict.3
// CHECK: sluice.entry @predict.0 ["mask"] -> []
// CHECK: sluice.sum %mask
// CHECK: sluice.entry @predict.1 [] -> []
// CHECK: %[[N:.+]] = sluice.get @"accumulator 1"
// CHECK: %[[H:.+]] = sluice.identity %[[N]]
// CHECK: sluice.set @"accumulator 3", %[[H]]
// CHECK: sluice.entry @predict.2 ["x", "mask"] -> []
// CHECK: %[[N:.+]] = sluice.get @"accumulator 3"
// CHECK: sluice.expand %[[N]]
// CHECK: sluice.set @"accumulator 2"
// CHECK: sluice.entry @predict.3 [] -> ["g"]
// CHECK: %[[G:.+]] = sluice.get @"accumulator 2"
// CHECK: sluice.return %[[G]]
module @masked {
  sluice.model "m" format 2 phase "train" capacity 8 microbatches 2
  sluice.entry @predict ["x", "mask"] -> ["g"] (%x: tensor<?x2xf32>, %mask: tensor<?xf32>) {
    %n = sluice.sum %mask {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    %e = sluice.expand %n {dims = array<i64>, shape = array<i64: ?>} : (tensor<f32>) -> tensor<?xf32>
    %m = sluice.div %mask, %e : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %g = sluice.einsum "a,ab->b" %m, %x : (tensor<?xf32>, tensor<?x2xf32>) -> tensor<2xf32>
    sluice.return %g : tensor<2xf32>
  }
}

// -----

// Tests that a masked mean without consumers with rows needs no second pass over the rows.
// CHECK-LABEL: module @masked_mean
// CHECK: sluice.parts @predict ["x", "mask"] -> ["mean"] = each @predict.0, once @predict.1
// CHECK: sluice.entry @predict.1
// CHECK-DAG: %[[S:.+]] = sluice.get @"accumulator 1"
// CHECK-DAG: %[[N:.+]] = sluice.get @"accumulator 2"
// CHECK: sluice.div %[[S]], %[[N]]
module @masked_mean {
  sluice.model "m" format 2 phase "train" capacity 8 microbatches 2
  sluice.entry @predict ["x", "mask"] -> ["mean"] (%x: tensor<?xf32>, %mask: tensor<?xf32>) {
    %m = sluice.mul %x, %mask : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %s = sluice.sum %m {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    %n = sluice.sum %mask {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    %q = sluice.div %s, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
    sluice.return %q : tensor<f32>
  }
}

// -----

// Tests that the accumulator of a maximum starts at minus infinity.
// CHECK-LABEL: module @most
// CHECK: sluice.state accumulator @"accumulator 1" : tensor<f32> = <"constant", 0xFFF0000000000000 : f64>
// CHECK: sluice.max
// CHECK: sluice.full {{.*}}value = 0xFFF0000000000000
module @most {
  sluice.model "m" format 2 phase "train" capacity 8 microbatches 2
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?xf32>) {
    %m = sluice.reduce_max %x {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.return %m : tensor<f32>
  }
}

// -----

// Tests that each microbatch updates the running statistics of batch norm, and that the first replica broadcasts them
// once.
// CHECK-LABEL: module @norm
// CHECK: sluice.entry @train_step.0
// CHECK: %[[M:.+]] = sluice.get @m
// CHECK: %y, %[[N:.+]], %{{.+}} = sluice.batch_norm %x, {{.*}} %[[M]]
// CHECK: sluice.set @m, %[[N]]
// CHECK: sluice.entry @train_step.1
// CHECK: %[[M:.+]] = sluice.get @m
// CHECK: %[[B:.+]] = sluice.broadcast from 0 %[[M]]
// CHECK: sluice.set @m, %[[B]]
module @norm {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2 microbatches 2
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state statistic @m : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.state statistic @v : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step ["x"] -> ["y"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %m = sluice.get @m : tensor<3xf32>
    %v = sluice.get @v : tensor<3xf32>
    %y:3 = sluice.batch_norm %x, %w, %w, %m, %v {training} : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>)
    sluice.set @m, %y#1 : tensor<3xf32>
    sluice.return %y#0 : tensor<?x3xf32>
  }
}

// -----

// Tests that with one replica each microbatch just sets them.
// CHECK-LABEL: module @norm_alone
// CHECK: sluice.entry @train_step.0
// CHECK: sluice.set @m
// CHECK: sluice.entry @train_step.1
// CHECK-NOT: @m
module @norm_alone {
  sluice.model "m" format 2 phase "train" capacity 10 microbatches 2
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state statistic @m : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.entry @train_step ["x"] -> ["y"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %m = sluice.get @m : tensor<3xf32>
    %y:3 = sluice.batch_norm %x, %w, %w, %m, %w {training} : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>)
    sluice.set @m, %y#1 : tensor<3xf32>
    sluice.return %y#0 : tensor<?x3xf32>
  }
}

// -----

// Tests that logical shards are microbatches whose sums are added in a tree: pairs of shards at level 0, pairs of these
// sums at level 1. The last shard leaves the sum of all, which replicas reduce in the same tree. The shards are
// counted.
// CHECK-LABEL: module @shards
// CHECK: sluice.model "m" format 2 phase "train" capacity 2 replicas 2 batch 10 microbatches 4 logical_shards 8
// CHECK-DAG: sluice.state accumulator @"accumulator of w" : tensor<3x2xf32>
// CHECK-DAG: sluice.state accumulator @"accumulator of w 2" : tensor<3x2xf32>
// CHECK-DAG: sluice.state accumulator @"accumulator of w 3" : tensor<3x2xf32>
// CHECK-DAG: sluice.state accumulator @shard : tensor<i64>
// CHECK: sluice.entry @train_step.0
// CHECK: %[[G:.+]] = sluice.einsum "ab,ac->bc" %x, %dy
// CHECK: %[[I:.+]] = sluice.get @shard
// CHECK: sluice.set @shard
// CHECK: %[[H:.+]] = sluice.compare %[[I]], {{.*}}ge>
// CHECK: %[[L:.+]] = sluice.compare {{.*}}ge>
// CHECK: %[[A:.+]] = sluice.get @"accumulator of w 2"
// CHECK: %[[C:.+]] = sluice.expand %[[L]]
// CHECK: %[[K:.+]] = sluice.where %[[C]], %[[A]], %[[G]]
// CHECK: sluice.set @"accumulator of w 2", %[[K]]
// CHECK: %[[S:.+]] = sluice.add %[[A]], %[[G]]
// CHECK: %[[A:.+]] = sluice.get @"accumulator of w 3"
// CHECK: %[[C:.+]] = sluice.expand %[[H]]
// CHECK: %[[K:.+]] = sluice.where %[[C]], %[[A]], %[[S]]
// CHECK: sluice.set @"accumulator of w 3", %[[K]]
// CHECK: %[[S2:.+]] = sluice.add %[[A]], %[[S]]
// CHECK: sluice.set @"accumulator of w", %[[S2]]
// CHECK: sluice.entry @train_step.1
// CHECK: %[[A:.+]] = sluice.get @"accumulator of w"
// CHECK: %[[C:.+]] = sluice.identity %[[A]]
// CHECK: %[[R:.+]] = sluice.all_reduce tree_sum %[[C]]
// CHECK-NOT: sluice.set @"accumulator
// CHECK: sluice.return %[[R]]
module @shards {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2 logical_shards 8
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step ["x", "dy"] -> ["g"] (%x: tensor<?x3xf32>, %dy: tensor<?x2xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %g = sluice.einsum "ab,ac->bc" %x, %dy : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<3x2xf32>
    %n = sluice.sub %w, %g : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    sluice.set @w, %n : tensor<3x2xf32>
    sluice.return %g : tensor<3x2xf32>
  }
}

// -----

// Tests that a replica with one shard is also split, stores its sums unchanged, and counts nothing. Sums of two-byte
// floats are rounded after the collective.
// CHECK-LABEL: module @one_shard
// CHECK: capacity 5 replicas 2 batch 10 logical_shards 2
// CHECK: sluice.state accumulator @"accumulator 1" : tensor<f32>
// CHECK-NOT: sluice.state
// CHECK: sluice.parts @predict ["x"] -> ["y"] = each @predict.0, once @predict.1
// CHECK: sluice.entry @predict.0
// CHECK: %[[S:.+]] = sluice.sum %x
// CHECK: %[[W:.+]] = sluice.cast %[[S]] {to = f32}
// CHECK: sluice.set @"accumulator 1", %[[W]]
// CHECK: sluice.entry @predict.1
// CHECK: %[[R:.+]] = sluice.all_reduce tree_sum {{.*}} : (tensor<f32>) -> tensor<f32>
// CHECK: %[[H:.+]] = sluice.cast %[[R]] {to = bf16}
// CHECK: sluice.return %[[H]]
module @one_shard {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2 logical_shards 2
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?xbf16>) {
    %s = sluice.sum %x {axes = array<i64: 0>} : (tensor<?xbf16>) -> tensor<bf16>
    sluice.return %s : tensor<bf16>
  }
}

// -----

// Tests that the running statistics are those of the first shard, even if one replica has all shards.
// CHECK-LABEL: module @norm_of_shards
// CHECK: sluice.entry @train_step.0
// CHECK: %[[M:.+]] = sluice.get @m
// CHECK: %y, %[[N:.+]], %{{.+}} = sluice.batch_norm %x, {{.*}} %[[M]]
// CHECK: %[[A:.+]] = sluice.get @"accumulator 1"
// CHECK: %[[L:.+]] = sluice.compare {{.*}}ge>
// CHECK: %[[C:.+]] = sluice.expand %[[L]]
// CHECK: %[[K:.+]] = sluice.where %[[C]], %[[A]], %[[N]]
// CHECK: sluice.set @"accumulator 1", %[[K]]
// CHECK: sluice.entry @train_step.1
// CHECK: %[[A:.+]] = sluice.get @"accumulator 1"
// CHECK: sluice.set @m, %[[A]]
module @norm_of_shards {
  sluice.model "m" format 2 phase "train" capacity 10 logical_shards 2
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state statistic @m : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.entry @train_step ["x"] -> ["y"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %m = sluice.get @m : tensor<3xf32>
    %y:3 = sluice.batch_norm %x, %w, %w, %m, %w {training} : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>)
    sluice.set @m, %y#1 : tensor<3xf32>
    sluice.return %y#0 : tensor<?x3xf32>
  }
}
