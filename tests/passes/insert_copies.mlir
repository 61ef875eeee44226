// RUN: sluice-opt %s --split-input-file --sluice-place-values | FileCheck %s

// Tests that a pinned op gets its input from the host, and its output is copied back there, under every policy.
// CHECK-LABEL: module @pinned
// CHECK: sluice.entry @predict ["x"] -> ["y"] (%[[X:.+]]: tensor<?x3xf32, #cpu>)
// CHECK-NEXT: %[[IN:.+]] = sluice.copy %[[X]] input : (tensor<?x3xf32, #cpu>) -> tensor<?x3xf32, #acc0
// CHECK-NEXT: %[[Y:.+]] = sluice.relu %[[IN]]
// CHECK-NEXT: %[[OUT:.+]] = sluice.copy %[[Y]] output : (tensor<?x3xf32, #acc0{{.*}}>) -> tensor<?x3xf32, #cpu>
// CHECK-NEXT: sluice.return %[[OUT]]
module @pinned {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x3xf32>) {
    %y = sluice.relu %x {sluice.pin = "acc0"} : (tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.return %y : tensor<?x3xf32>
  }
}

// -----

// Tests that unpinned ops are on the target's first device, or follow values with a fixed device. An op's pin takes
// precedence over its operand's device if copies are inserted.
// CHECK-LABEL: module @inserted
// CHECK: %[[A:.+]] = sluice.exp %{{.+}} -> tensor<2xf32, #acc1
// CHECK: %[[B:.+]] = sluice.sin %[[A]] : (tensor<2xf32, #acc1{{.*}}>) -> tensor<2xf32, #acc1
// CHECK: %[[C:.+]] = sluice.copy %[[B]] pin : (tensor<2xf32, #acc1{{.*}}>) -> tensor<2xf32, #cpu>
// CHECK: sluice.cos %[[C]] {sluice.pin = "cpu"} : (tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu>
// CHECK: sluice.tanh %{{.+}} : (tensor<2xf32, #acc0{{.*}}>) -> tensor<2xf32, #acc0
module @inserted {
  sluice.model "model" format 2 phase "model" copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 first
  sluice.device "acc1" = "sim" 1
  sluice.entry @predict ["x"] -> ["y", "z"] (%x: tensor<2xf32>) {
    %a = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32, #sluice.at<device = "acc1">>
    %b = sluice.sin %a : (tensor<2xf32, #sluice.at<device = "acc1">>) -> tensor<2xf32>
    %c = sluice.cos %b {sluice.pin = "cpu"} : (tensor<2xf32>) -> tensor<2xf32>
    %d = sluice.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %c, %d : tensor<2xf32>, tensor<2xf32>
  }
}

// -----

// Tests that constants and the number of rows are computed on the device of each consumer.
// CHECK-LABEL: module @constants
// CHECK-NOT: sluice.copy %{{.+}} pin
// CHECK: %[[HALF:[0-9]+]] = sluice.full {{.+}} -> tensor<?x3xf32, #acc0
// CHECK: sluice.mul %{{[0-9]+}}, %[[HALF]]
// CHECK: sluice.rows {{.*}} -> tensor<f32, #acc0
// CHECK: sluice.full {{.+}} -> tensor<?x3xf32, #cpu>
// CHECK-NOT: sluice.copy %{{.+}} pin
module @constants {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x", "label"] -> ["y", "z"] (%x: tensor<?x3xf32>, %label: tensor<?xi32>) {
    %half = sluice.full {value = 0.5 : f64, type = tensor<?x3xf32>} : () -> tensor<?x3xf32>
    %scaled = sluice.mul %x, %half {sluice.pin = "acc0"} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %rows = sluice.rows {to = f32} : () -> tensor<f32>
    %spread = sluice.expand %rows {dims = array<i64>, shape = array<i64: ?, 3>} : (tensor<f32>) -> tensor<?x3xf32>
    %mean = sluice.div %scaled, %spread {sluice.pin = "acc0"} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %z = sluice.add %x, %half : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.return %mean, %z : tensor<?x3xf32>, tensor<?x3xf32>
  }
}

// -----

// Tests that a state is on its given device, a slot on its parameter's device, and a hyperparameter on the host.
// Reading a hyperparameter elsewhere needs no permission.
// CHECK-LABEL: module @states
// CHECK: sluice.state slot @w.momentum {{.*}} physical tensor<2xf32, #acc0
// CHECK: sluice.state parameter @w {{.*}} physical tensor<2xf32, #acc0
// CHECK: sluice.state hyperparameter @lr {{.*}} physical tensor<f32, #cpu>
// CHECK: %[[LR:.+]] = sluice.get @lr
// CHECK: sluice.copy %[[LR]] state : (tensor<f32, #cpu>) -> tensor<f32, #acc0
module @states {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.state slot @w.momentum : tensor<2xf32> = <"constant", 0.0 : f64> of @w
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64> physical tensor<2xf32, #sluice.at<device = "acc0">>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.entry @train_step [] -> [] () {
    %w = sluice.get @w : tensor<2xf32>
    %lr = sluice.get @lr : tensor<f32>
    %rate = sluice.expand %lr {dims = array<i64>, shape = array<i64: 2>, sluice.pin = "acc0"} : (tensor<f32>) -> tensor<2xf32>
    %new = sluice.mul %w, %rate {sluice.pin = "acc0"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.set @w, %new : tensor<2xf32>
    sluice.return
  }
}

// -----

// Tests that a copy without a destination goes to its consumer's device and keeps its reason.
// CHECK-LABEL: module @open
// CHECK: sluice.copy %{{.+}} to : (tensor<2xf32, #acc0{{.*}}>) -> tensor<2xf32, #cpu>
// CHECK-NOT: "pin"
module @open {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    %a = sluice.exp %x {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    %b = sluice.copy %a to : (tensor<2xf32>) -> tensor<2xf32>
    %c = sluice.sin %b : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %c : tensor<2xf32>
  }
}

// -----

// Tests that a value that a loop carries from an input is on the device of the op that computes the next value.
// CHECK-LABEL: module @carried
// CHECK: %[[IN:.+]] = sluice.copy %{{.+}} input : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0
// CHECK: sluice.loop "there" 3 times
// CHECK-NEXT: (%{{.+}} = %[[IN]] : tensor<2xf32, #acc0
// CHECK-NOT: sluice.copy
// CHECK: sluice.next
// CHECK: sluice.loop "here" 3 times
// CHECK-NEXT: (%{{.+}} = %{{.+}} : tensor<2xf32, #cpu>) {
// CHECK-NOT: sluice.copy
// CHECK: sluice.next
module @carried {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 first
  sluice.entry @predict ["x"] -> ["y", "z"] (%x: tensor<2xf32>) {
    %y = sluice.loop "there" 3 times (%a = %x : tensor<2xf32>) {
      %b = sluice.exp %a : (tensor<2xf32>) -> tensor<2xf32>
      sluice.next %b : tensor<2xf32>
    }
    %z = sluice.loop "here" 3 times (%a = %x : tensor<2xf32>) {
      %b = sluice.sin %a {sluice.pin = "cpu"} : (tensor<2xf32>) -> tensor<2xf32>
      sluice.next %b : tensor<2xf32>
    }
    sluice.return %y, %z : tensor<2xf32>, tensor<2xf32>
  }
}
