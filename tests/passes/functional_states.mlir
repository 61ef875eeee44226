// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --sluice-functional-states | FileCheck %s

// Tests that each state becomes an input and an output of the training step, after those of the user and in the order
// of the states. `init` returns the first values. Entry points that set nothing have inputs only.
// CHECK-LABEL: module @trained
// CHECK-NOT: sluice.state
// CHECK: sluice.entry @train_step ["x", "@w", "@lr", "@w.momentum_buffer"] -> ["loss", "@w", "@w.momentum_buffer"]
// CHECK-SAME: (%x: tensor<3xf32>, %[[W:.+]]: tensor<3xf32>, %[[LR:.+]]: tensor<f32>, %[[M:.+]]: tensor<3xf32>)
// CHECK-NOT: sluice.get
// CHECK-NOT: sluice.set
// CHECK: %[[NEXT:.+]] = sluice.add %{{.+}}, %{{.+}} : (tensor<3xf32>
// CHECK: %[[NEW:.+]] = sluice.sub %[[W]], %
// CHECK: sluice.return %{{.+}}, %[[NEW]], %[[NEXT]] : tensor<f32>, tensor<3xf32>, tensor<3xf32>
// CHECK: sluice.entry @eval_step ["x", "@w"] -> ["loss"]
// CHECK: sluice.entry @init ["key"] -> ["@w", "@lr", "@w.momentum_buffer"]
// CHECK: %[[FIRST:.+]] = sluice.uniform
// CHECK: sluice.return %[[FIRST]],
module @trained {
  sluice.model "model" format 2 phase "model" functional
  sluice.state parameter @w : tensor<3xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}

// -----

// Tests that a selection without `init` leaves it out, and that constants remain states.
// CHECK-LABEL: module @selected
// CHECK: sluice.state constant @c
// CHECK-NOT: sluice.state
// CHECK: sluice.entry @add ["x", "@sum"] -> ["total", "@sum"]
// CHECK-NEXT: %[[C:.+]] = sluice.get @c
// CHECK-NOT: sluice.entry
module @selected {
  sluice.model "model" format 2 phase "model" entries ["add"] functional
  sluice.state cache @sum : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.state constant @c : tensor<2xf32> = <"data", 0.0 : f64 crc32 1 : i64>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %sum = sluice.get @sum : tensor<2xf32>
    %c = sluice.get @c : tensor<2xf32>
    %scaled = sluice.mul %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %next = sluice.add %sum, %scaled : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.set @sum, %next in "add" : tensor<2xf32>
    sluice.output "total", %next in "add" : tensor<2xf32>
    sluice.output "y", %scaled : tensor<2xf32>
  }
}

// -----

// Tests that `init` alone returns all states, and that a state that begins with data becomes a constant.
// CHECK-LABEL: module @first
// CHECK: sluice.state constant @w : tensor<2xf32> = <"data"
// CHECK-NOT: sluice.state
// CHECK-NOT: @predict
// CHECK: sluice.entry @init ["key"] -> ["@w", "@v"]
// CHECK: %[[W:.+]] = sluice.get @w
// CHECK: sluice.return %[[W]], %
module @first {
  sluice.model "model" format 2 phase "model" entries ["init"] functional
  sluice.state parameter @w : tensor<2xf32> = <"data", 0.0 : f64 crc32 1 : i64> also ["tied"]
  sluice.state parameter @v : tensor<2xf32> = <"normal", 0.0 : f64, 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    sluice.output "y", %x : tensor<2xf32>
  }
}

// -----

// Tests that the values of a state are on its device.
// CHECK-LABEL: module @placed
// CHECK: sluice.entry @predict ["x", "@w"] -> ["y"] (%x: tensor<2xf32>, %{{.+}}: tensor<2xf32, #[[ACC:.+]]>)
// CHECK: sluice.entry @init
// CHECK: sluice.return %{{.+}} {sluice.on = ["acc0"]}
module @placed {
  sluice.model "model" format 2 phase "model" functional
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.state parameter @w : tensor<2xf32> = <"normal", 0.0 : f64, 1.0 : f64> physical tensor<2xf32, #sluice.at<device = "acc0">>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %w = sluice.get @w : tensor<2xf32>
    %y = sluice.mul %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.output "y", %y : tensor<2xf32>
  }
}
