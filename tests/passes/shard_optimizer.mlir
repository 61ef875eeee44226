// RUN: sluice-opt %s --sluice-shard-optimizer --sluice-simplify --sluice-name-collectives | FileCheck %s
// RUN: sluice-opt %s --sluice-shard-optimizer --sluice-simplify --sluice-name-collectives --sluice-place-values --sluice-deduplicate-copies --sluice-assign-layouts --sluice-fuse-kernels --sluice-prepare-kernels --sluice-schedule-fewest-buckets --sluice-plan-memory --sluice-plan-waits --sluice-verify-plan | sluice-opt | FileCheck %s --check-prefix=PLANNED

// Tests that each of three replicas stores a shard of the slot and updates it. Gradients are scattered, the parameter's
// own part is selected by the replica's number, and the updated parameter is gathered. A parameter whose elements do
// not divide evenly is padded; the rate, which is replicated, is broadcast to the shard's shape; a parameter without
// slots is unchanged.
// CHECK: sluice.state share @replica : tensor<i64>
// CHECK: sluice.state slot @w.momentum_buffer : tensor<2x5xf32> = <"constant", 0.000000e+00 : f64> of @w shards 3
// CHECK-LABEL: sluice.entry @train_step
// CHECK-DAG: %[[R:.+]] = sluice.get @replica
// CHECK-DAG: %[[W:.+]] = sluice.get @w : tensor<2x5xf32>
// CHECK-DAG: %[[M:.+]] = sluice.get @w.momentum_buffer : tensor<4xf32>
// CHECK-DAG: %[[FLAT:.+]] = sluice.reshape %[[W]] {shape = array<i64: 10>}
// CHECK-DAG: %[[FILLED:.+]] = sluice.pad %[[FLAT]] {high = array<i64: 2>
// CHECK-DAG: %[[ROWS:.+]] = sluice.reshape %[[FILLED]] {shape = array<i64: 3, 4>}
// CHECK-DAG: %[[OWN:.+]] = sluice.gather %[[ROWS]], %[[R]] {axis = 0 : i64} : (tensor<3x4xf32>, tensor<i64>) -> tensor<4xf32>
// CHECK: %[[G:.+]] = sluice.reduce_scatter sum %{{.+}} in 3 of <gradient, "w"> : (tensor<12xf32>) -> tensor<4xf32>
// CHECK: sluice.mul %[[M]], %{{.+}} : (tensor<4xf32>, tensor<4xf32>)
// CHECK: %[[N:.+]] = sluice.add %{{.+}}, %[[G]]
// CHECK: %[[V:.+]] = sluice.sub %[[OWN]]
// CHECK: %[[ALL:.+]] = sluice.all_gather %[[V]] in 3 of <parameter, "w"> : (tensor<4xf32>) -> tensor<12xf32>
// CHECK: %[[CUT:.+]] = sluice.slice %[[ALL]] {end = array<i64: 10>
// CHECK: %[[NEW:.+]] = sluice.reshape %[[CUT]] {shape = array<i64: 2, 5>}
// CHECK: sluice.set @w, %[[NEW]] : tensor<2x5xf32>
// CHECK: sluice.set @w.momentum_buffer, %[[N]] : tensor<4xf32>
// CHECK: sluice.all_reduce sum %{{.+}} of <gradient, "b">
// CHECK-LABEL: sluice.entry @init
// CHECK: %[[ZERO:.+]] = sluice.full{{ +}}{type = tensor<4xf32>, value = 0.000000e+00 : f64}
// CHECK: sluice.set @w.momentum_buffer, %[[ZERO]] : tensor<4xf32>

// Tests that shards are exchanged one value at a time and not in place, next to the bucket of unsharded values.
// PLANNED: sluice.state slot @w.momentum_buffer : tensor<2x5xf32> = <"constant", 0.000000e+00 : f64> of @w shards 3 physical tensor<4xf32, #cpu>
// PLANNED: sluice.communicate "gradient of w" reduce_scatter sum on "cpu"
// PLANNED-NEXT: in %{{.+}} : tensor<12xf32, #cpu> at cpu.transient
// PLANNED-NEXT: out tensor<4xf32, #cpu> at cpu.transient
// PLANNED: sluice.communicate "parameter w" all_gather on "cpu"
// PLANNED-NEXT: in %{{.+}} : tensor<4xf32, #cpu> at cpu.transient
// PLANNED-NEXT: out tensor<12xf32, #cpu> at cpu.transient
module {
  sluice.model "m" format 2 phase "train" replicas 3 zero 1
  sluice.state parameter @w : tensor<2x5xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @b : tensor<5xf32> = <"constant", 0.0 : f64>
  sluice.state slot @w.momentum_buffer : tensor<2x5xf32> = <"constant", 0.0 : f64> of @w
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.entry @train_step ["x", "y"] -> [] (%x: tensor<2x5xf32>, %y: tensor<5xf32>) {
    %lr = sluice.get @lr : tensor<f32>
    %w = sluice.get @w : tensor<2x5xf32>
    %b = sluice.get @b : tensor<5xf32>
    %m = sluice.get @w.momentum_buffer : tensor<2x5xf32>
    %g = sluice.all_reduce sum %x : (tensor<2x5xf32>) -> tensor<2x5xf32>
    %c = sluice.full {type = tensor<2x5xf32>, value = 0.9 : f64} : () -> tensor<2x5xf32>
    %d = sluice.mul %m, %c : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
    %n = sluice.add %d, %g : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
    %r = sluice.expand %lr {dims = array<i64>, shape = array<i64: 2, 5>} : (tensor<f32>) -> tensor<2x5xf32>
    %s = sluice.mul %r, %n : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
    %v = sluice.sub %w, %s : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
    sluice.set @w, %v : tensor<2x5xf32>
    sluice.set @w.momentum_buffer, %n : tensor<2x5xf32>
    %h = sluice.all_reduce sum %y : (tensor<5xf32>) -> tensor<5xf32>
    %q = sluice.sub %b, %h : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
    sluice.set @b, %q : tensor<5xf32>
    sluice.return
  }
  sluice.entry @init ["key"] -> [] (%key: tensor<2xi32>) {
    %w = sluice.full {type = tensor<2x5xf32>, value = 1.0 : f64} : () -> tensor<2x5xf32>
    sluice.set @w, %w : tensor<2x5xf32>
    %m = sluice.full {type = tensor<2x5xf32>, value = 0.0 : f64} : () -> tensor<2x5xf32>
    sluice.set @w.momentum_buffer, %m : tensor<2x5xf32>
    sluice.return
  }
}
