// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points | FileCheck %s

// Tests that a graph with `minimize` has all four entry points, and that training sets the trained parameters.
// CHECK-LABEL: module @trained
module @trained {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step ["x", "label"] -> ["loss"]
  // CHECK: %[[OLD:.+]] = sluice.get @w
  // CHECK: %[[LOGITS:.+]] = sluice.einsum "ab,bc->ac" %{{.+}}, %[[OLD]]
  // CHECK: sluice.softmax_cross_entropy %[[LOGITS]]
  // CHECK: sluice.set @w, %{{.+}} : tensor<3x2xf32>
  // CHECK: sluice.entry @eval_step ["x", "label"] -> ["loss"]
  // CHECK-NOT: sluice.set
  // CHECK: sluice.entry @predict ["x"] -> ["y"]
  // CHECK-NOT: cross_entropy
  // CHECK: sluice.entry @init ["key"] -> []
  sluice.graph ["x", "label"] (%x: tensor<?x3xf32>, %label: tensor<?xi32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %y = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
    %losses = sluice.softmax_cross_entropy %y, %label : (tensor<?x2xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %losses {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}

// -----

// Tests that a graph without a loss only has prediction.
// CHECK-LABEL: module @plain
// CHECK-NOT: train_step
// CHECK-NOT: eval_step
// CHECK: sluice.entry @predict ["x"] -> ["y"]
module @plain {
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %y = sluice.relu %x : (tensor<2xf32>) -> tensor<2xf32>
    sluice.output "y", %y : tensor<2xf32>
  }
}

// -----

// Tests that prediction keeps an input on which nothing depends, directly or through a dead op.
// CHECK-LABEL: module @unread
// CHECK: sluice.entry @eval_step ["label"] -> ["m", "m/calls"]
// CHECK: sluice.entry @predict ["unread", "x", "dead"] -> ["y"] (%{{.*}}: tensor<?xf32>, %{{.*}}: tensor<2xf32>, %{{.*}}: tensor<2xf32>)
module @unread {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["unread", "x", "dead", "label"] (%unread: tensor<?xf32>, %x: tensor<2xf32>, %dead: tensor<2xf32>, %label: tensor<f32>) {
    %y = sluice.relu %x : (tensor<2xf32>) -> tensor<2xf32>
    %nothing = sluice.relu %dead : (tensor<2xf32>) -> tensor<2xf32>
    sluice.metric "m", %label : tensor<f32>
    sluice.output "y", %y : tensor<2xf32>
  }
}

// -----

// Tests that a functional model has only the inputs that it reads.
// CHECK-LABEL: module @functional
// CHECK: sluice.entry @predict ["x"] -> ["y"]
module @functional {
  sluice.model "model" format 2 phase "model" functional
  sluice.graph ["unread", "x"] (%unread: tensor<2xf32>, %x: tensor<2xf32>) {
    %y = sluice.relu %x : (tensor<2xf32>) -> tensor<2xf32>
    sluice.output "y", %y : tensor<2xf32>
  }
}

// -----

// Tests that only training drops elements, that the gradient drops the same elements, and that a step sets the next
// key.
// CHECK-LABEL: module @dropped
module @dropped {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state key @random_key : tensor<2xi32> = <"key", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step
  // CHECK: %[[KEY:.+]] = sluice.get @random_key
  // CHECK: %[[W:.+]] = sluice.get @w
  // CHECK: sluice.dropout %[[W]], %[[KEY]] {p = 5.000000e-01 : f64, stream = 3 : i64, training}
  // CHECK: sluice.dropout %{{.+}}, %[[KEY]] {p = 5.000000e-01 : f64, stream = 3 : i64, training}
  // CHECK: %[[STEP:.+]] = sluice.full {type = tensor<2xi32>
  // CHECK: %[[NEXT:.+]] = sluice.add %[[KEY]], %[[STEP]]
  // CHECK: sluice.set @random_key, %[[NEXT]]
  // CHECK: sluice.entry @predict
  // CHECK-NEXT: %[[P:.+]] = sluice.get @w
  // CHECK-NEXT: sluice.return %[[P]]
  // CHECK: sluice.entry @init ["key"]
  // CHECK: %[[FIRST:.+]] = sluice.add %key,
  // CHECK: sluice.set @random_key, %[[FIRST]]
  sluice.graph [] () {
    %key = sluice.get @random_key : tensor<2xi32>
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.dropout %w, %key {p = 0.5 : f64, stream = 3 : i64} : (tensor<3xf32>, tensor<2xi32>) -> tensor<3xf32>
    sluice.output "y", %y : tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}

// -----

// Tests that the host provides states with data: `init` omits them, and its other random numbers are unchanged.
// CHECK-LABEL: module @data
module @data {
  sluice.model "model" format 2 phase "model" capacity 4 values "model.safetensors"
  sluice.state parameter @w : tensor<3xf32> = <"data", 0.0 : f64 crc32 1234 : i64>
  sluice.state constant @"constant 1" : tensor<3xf32> = <"data", 0.0 : f64 crc32 5678 : i64>
  sluice.state parameter @v : tensor<3xf32> = <"uniform", 0.0 : f64, 1.0 : f64>
  // CHECK: sluice.entry @init ["key"] -> []
  // CHECK-NOT: sluice.set @w
  // CHECK-NOT: sluice.set @"constant 1"
  // CHECK: sluice.uniform %{{.+}} {{.*}}stream = 3
  // CHECK: sluice.set @v
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    sluice.output "y", %x : tensor<?x3xf32>
  }
}

// -----

// Tests that one of the graph's own entry points contains only its outputs, its sets, and their inputs.
// CHECK-LABEL: module @own
// CHECK: sluice.state cache @sum : tensor<2xf32>
// CHECK: sluice.entry @predict ["x", "other"] -> ["y"]
// CHECK-NOT: sluice.set
// CHECK: sluice.entry @add ["x", "by"] -> ["y", "sum"]
// CHECK: %[[OLD:.+]] = sluice.get @sum
// CHECK: %[[NEW:.+]] = sluice.add %[[OLD]]
// CHECK: sluice.set @sum, %[[NEW]] : tensor<2xf32>
// CHECK: sluice.return %{{.+}}, %[[NEW]]
// CHECK: sluice.entry @forget [] -> []
// CHECK: sluice.set @sum, %{{.+}} : tensor<2xf32>
// CHECK: sluice.entry @init
module @own {
  sluice.state cache @sum : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.graph ["x", "by", "other"] (%x: tensor<2xf32>, %by: tensor<2xf32>, %other: tensor<2xf32>) {
    %y = sluice.relu %x : (tensor<2xf32>) -> tensor<2xf32>
    sluice.output "y", %y : tensor<2xf32>
    %sum = sluice.get @sum : tensor<2xf32>
    %scaled = sluice.mul %y, %by : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %new = sluice.add %sum, %scaled : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.output "y", %y in "add" : tensor<2xf32>
    sluice.output "sum", %new in "add" : tensor<2xf32>
    sluice.set @sum, %new in "add" : tensor<2xf32>
    %zeros = sluice.sub %sum, %sum : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.set @sum, %zeros in "forget" : tensor<2xf32>
  }
}

// -----

// Tests that in training `updated` is the value that a parameter is set to, so its consumers follow the update.
// Elsewhere it is the value before the update.
// CHECK-LABEL: module @updated
// CHECK: sluice.entry @train_step
// CHECK: %[[NEXT:.+]] = sluice.sub %w, %
// CHECK: %[[SCALED:.+]] = sluice.mul %[[NEXT]], %[[NEXT]]
// CHECK: sluice.set @v, %[[SCALED]]
// CHECK: sluice.entry @predict
// CHECK: %[[OLD:.+]] = sluice.get @w
// CHECK: sluice.return %[[OLD]]
module @updated {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @v : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph [] () {
    %w = sluice.get @w : tensor<3xf32>
    %loss = sluice.sum %w {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
    %next = sluice.updated %w : tensor<3xf32>
    sluice.output "next", %next : tensor<3xf32>
    %square = sluice.mul %next, %next : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.set @v, %square : tensor<3xf32>
  }
}
