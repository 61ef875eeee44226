// RUN: sluice-opt %s --sluice-build-entry-points --sluice-carry-rows | FileCheck %s

// Tests that a step reads and writes the rows of the call by their global numbers, that other rows are unchanged, and
// that evaluation and prediction read zeros.
// CHECK: sluice.state slot @h : tensor<4x2xf32> = <"constant", 0.000000e+00 : f64>
// CHECK: sluice.entry @train_step ["x"] -> ["loss"]
// CHECK: %[[BEFORE:.+]] = sluice.get @h : tensor<4x2xf32>
// CHECK: %[[ROWS:.+]] = sluice.iota {axis = 0 : i64, start = 0.000000e+00 : f64, step = 1.000000e+00 : f64, type = tensor<?xi64>}
// CHECK: %[[H:.+]] = sluice.gather %[[BEFORE]], %[[ROWS]] {axis = 0 : i64}
// CHECK: %[[Y:.+]] = sluice.add %x, %[[H]]
// CHECK: %[[KEPT:.+]] = sluice.get @h : tensor<4x2xf32>
// CHECK: %[[SAME:.+]] = sluice.iota {{.*}}tensor<?xi64>
// CHECK: %[[AFTER:.+]] = sluice.scatter_add %{{.+}}, %[[SAME]] {axis = 0 : i64, size = 4 : i64}
// CHECK: %[[ALL:.+]] = sluice.iota {{.*}}tensor<4xi64>
// CHECK: %[[COUNT:.+]] = sluice.rows {to = i64}
// CHECK: %[[COUNTS:.+]] = sluice.expand %[[COUNT]]
// CHECK: %[[IS:.+]] = sluice.compare %[[ALL]], %[[COUNTS]] {predicate = #sluice<predicate lt>}
// CHECK: %[[ARE:.+]] = sluice.expand %[[IS]]
// CHECK: %[[NEW:.+]] = sluice.where %[[ARE]], %[[AFTER]], %[[KEPT]]
// CHECK: sluice.set @h, %[[NEW]] : tensor<4x2xf32>
// CHECK: sluice.entry @eval_step ["x"] -> ["loss"]
// CHECK-NOT: @h
// CHECK: sluice.full {type = tensor<?x2xf32>, value = 0.000000e+00 : f64}
// CHECK: sluice.entry @predict ["x"] -> ["y"]
// CHECK-NOT: @h
// CHECK: sluice.full {type = tensor<?x2xf32>, value = 0.000000e+00 : f64}
// CHECK: sluice.entry @init ["key"] -> []
// CHECK: sluice.full {type = tensor<4x2xf32>, value = 0.000000e+00 : f64}
// CHECK: sluice.set @h
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.state slot @h : tensor<?x2xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<?x2xf32>) {
    %w = sluice.get @w : tensor<2xf32>
    %h = sluice.get @h : tensor<?x2xf32>
    %y = sluice.add %x, %h : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
    %factor = sluice.expand %w {dims = array<i64: 1>, shape = array<i64: ?, 2>} : (tensor<2xf32>) -> tensor<?x2xf32>
    %next = sluice.mul %y, %factor : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.set @h, %next : tensor<?x2xf32>
    %loss = sluice.mean %next {axes = array<i64: 0, 1>} : (tensor<?x2xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}
