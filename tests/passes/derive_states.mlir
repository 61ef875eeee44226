// RUN: sluice-opt %s --split-input-file --sluice-derive-states | FileCheck %s

// Tests that values of a weight become one derived state of all entry points that do not set the weight. The training
// step computes the value in place. Data movement stays in the consumers.
// CHECK-LABEL: module @shared
// CHECK: sluice.state statistic @var
// CHECK-NEXT: sluice.state derived @var.rsqrt : tensor<3xf32> = <"constant", 0.000000e+00 : f64> from [@var] physical tensor<3xf32>
// CHECK: sluice.entry @train_step
// CHECK-NEXT: %[[VAR:.+]] = sluice.get @var
// CHECK-NEXT: sluice.rsqrt %[[VAR]]
// CHECK: sluice.entry @eval_step
// CHECK-NEXT: %[[KEPT:.+]] = sluice.get @var.rsqrt
// CHECK-NEXT: %[[ALL:.+]] = sluice.expand %[[KEPT]]
// CHECK-NEXT: sluice.mul %{{.+}}, %[[ALL]]
// CHECK: sluice.entry @predict
// CHECK-NEXT: sluice.get @var.rsqrt
// CHECK-NOT: sluice.get @var :
// CHECK: sluice.entry @eval_step.derive [] -> [] ()
// CHECK-NEXT: %[[VAR:.+]] = sluice.get @var
// CHECK-NEXT: %[[NEW:.+]] = sluice.rsqrt %[[VAR]]
// CHECK-NEXT: sluice.set @var.rsqrt, %[[NEW]]
// CHECK-NEXT: sluice.return
// CHECK-NOT: sluice.entry
module @shared {
  sluice.model "model" format 2 phase "copied" capacity 4
  sluice.state statistic @var : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step ["x"] -> ["y"] (%x: tensor<?x3xf32>) {
    %var = sluice.get @var : tensor<3xf32>
    %r = sluice.rsqrt %var : (tensor<3xf32>) -> tensor<3xf32>
    %e = sluice.expand %r {dims = array<i64: 1>, shape = array<i64: ?, 3>} : (tensor<3xf32>) -> tensor<?x3xf32>
    %y = sluice.mul %x, %e : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.set @var, %r : tensor<3xf32>
    sluice.return %y : tensor<?x3xf32>
  }
  sluice.entry @eval_step ["x"] -> ["y"] (%x: tensor<?x3xf32>) {
    %var = sluice.get @var : tensor<3xf32>
    %r = sluice.rsqrt %var : (tensor<3xf32>) -> tensor<3xf32>
    %e = sluice.expand %r {dims = array<i64: 1>, shape = array<i64: ?, 3>} : (tensor<3xf32>) -> tensor<?x3xf32>
    %y = sluice.mul %x, %e : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.return %y : tensor<?x3xf32>
  }
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x3xf32>) {
    %var = sluice.get @var : tensor<3xf32>
    %r = sluice.rsqrt %var : (tensor<3xf32>) -> tensor<3xf32>
    %e = sluice.expand %r {dims = array<i64: 1>, shape = array<i64: ?, 3>} : (tensor<3xf32>) -> tensor<?x3xf32>
    %y = sluice.add %x, %e : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.return %y : tensor<?x3xf32>
  }
}

// -----

// Tests that derived states of different entry points have separate derivations, none of which reads a derived state.
// CHECK-LABEL: module @separate
// CHECK: sluice.entry @first
// CHECK-DAG: sluice.get @w.exp
// CHECK-DAG: sluice.get @w.sin
// CHECK: sluice.entry @second
// CHECK-NEXT: sluice.get @w.exp
// CHECK: sluice.entry @first.derive
// CHECK-NEXT: %[[W:.+]] = sluice.get @w :
// CHECK-NEXT: %[[EXP:.+]] = sluice.exp %[[W]]
// CHECK-NEXT: sluice.set @w.exp, %[[EXP]]
// CHECK-NEXT: sluice.return
// CHECK: sluice.entry @first.derive_0
// CHECK-NEXT: %[[W:.+]] = sluice.get @w :
// CHECK-NEXT: %[[EXP:.+]] = sluice.exp %[[W]]
// CHECK-NEXT: %[[SIN:.+]] = sluice.sin %[[EXP]]
// CHECK-NEXT: sluice.set @w.sin, %[[SIN]]
// CHECK-NEXT: sluice.return
module @separate {
  sluice.model "model" format 2 phase "copied"
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.entry @first ["x"] -> ["y", "z"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %e = sluice.exp %w : (tensor<3xf32>) -> tensor<3xf32>
    %s = sluice.sin %e : (tensor<3xf32>) -> tensor<3xf32>
    %y = sluice.add %x, %e : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %z = sluice.add %x, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.return %y, %z : tensor<3xf32>, tensor<3xf32>
  }
  sluice.entry @second ["x"] -> ["y"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %e = sluice.exp %w : (tensor<3xf32>) -> tensor<3xf32>
    %y = sluice.add %x, %e : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.return %y : tensor<3xf32>
  }
}

// -----

// Tests that values of inputs, of the step, of keys and of caches are no derived states, and neither are constants.
// CHECK-LABEL: module @others
// CHECK-NOT: derived
// CHECK-NOT: derive
module @others {
  sluice.model "model" format 2 phase "copied"
  sluice.state step @step : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.state cache @cache : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @rate : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<3xf32>) {
    %step = sluice.get @step : tensor<3xf32>
    %cache = sluice.get @cache : tensor<3xf32>
    %rate = sluice.get @rate : tensor<3xf32>
    %k = sluice.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %a = sluice.exp %step : (tensor<3xf32>) -> tensor<3xf32>
    %b = sluice.exp %cache : (tensor<3xf32>) -> tensor<3xf32>
    %c = sluice.exp %rate : (tensor<3xf32>) -> tensor<3xf32>
    %d = sluice.exp %k : (tensor<3xf32>) -> tensor<3xf32>
    %e = sluice.add %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %f = sluice.add %c, %d : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %g = sluice.add %e, %f : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %y = sluice.add %x, %g : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.return %y : tensor<3xf32>
  }
}

// -----

// Tests the limits of larger values: the cast of @a has half the bytes of its source, and a quarter of all states. The
// wider values of @b and the cast of @c, for which no bytes are left, stay in the entry point.
// CHECK-LABEL: module @limits
// CHECK: sluice.state parameter @a
// CHECK-NEXT: sluice.state derived @a.cast : tensor<256x256xbf16>
// CHECK-NOT: derived
// CHECK: sluice.entry @predict [
// CHECK-DAG: sluice.get @a.cast
// CHECK-DAG: sluice.get @b :
// CHECK-DAG: sluice.get @c :
// CHECK: sluice.entry @predict.derive
module @limits {
  sluice.model "model" format 2 phase "copied"
  sluice.state parameter @a : tensor<256x256xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @b : tensor<256x256xbf16> = <"constant", 1.0 : f64>
  sluice.state parameter @c : tensor<256x256xf32> = <"constant", 1.0 : f64>
  sluice.entry @predict ["x"] -> ["p", "q", "r"] (%x: tensor<256x256xbf16>) {
    %a = sluice.get @a : tensor<256x256xf32>
    %b = sluice.get @b : tensor<256x256xbf16>
    %c = sluice.get @c : tensor<256x256xf32>
    %d = sluice.cast %a {to = bf16} : (tensor<256x256xf32>) -> tensor<256x256xbf16>
    %e = sluice.cast %b {to = f32} : (tensor<256x256xbf16>) -> tensor<256x256xf32>
    %f = sluice.cast %c {to = bf16} : (tensor<256x256xf32>) -> tensor<256x256xbf16>
    %p = sluice.add %x, %d : (tensor<256x256xbf16>, tensor<256x256xbf16>) -> tensor<256x256xbf16>
    %w = sluice.cast %x {to = f32} : (tensor<256x256xbf16>) -> tensor<256x256xf32>
    %q = sluice.add %w, %e : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    %r = sluice.add %x, %f : (tensor<256x256xbf16>, tensor<256x256xbf16>) -> tensor<256x256xbf16>
    sluice.return %p, %q, %r : tensor<256x256xbf16>, tensor<256x256xf32>, tensor<256x256xbf16>
  }
}

// -----

// Tests that a value on another device is derived from the mirror of its source, on that device.
// CHECK-LABEL: module @mirrors
// CHECK: sluice.state derived @w.exp : tensor<2xf32> = <"constant", 0.000000e+00 : f64> from [@w] physical tensor<2xf32, #acc0_>
// CHECK: sluice.entry @predict ["x"]
// CHECK-NEXT: sluice.get @w.exp
// CHECK-NOT: sluice.copy
// CHECK: sluice.entry @predict.derive
// CHECK-NEXT: %[[W:.+]] = sluice.get @w :
// CHECK-NEXT: %[[MIRROR:.+]] = sluice.copy %[[W]] state when stale
// CHECK-NEXT: sluice.exp %[[MIRROR]]
module @mirrors {
  sluice.model "model" format 2 phase "copied"
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64> physical tensor<2xf32, #sluice.at<device = "cpu">>
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #sluice.at<device = "acc0">>) {
    %w = sluice.get @w : tensor<2xf32, #sluice.at<device = "cpu">>
    %m = sluice.copy %w state when stale {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #sluice.at<device = "cpu">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %e = sluice.exp %m : (tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %y = sluice.add %x, %e : (tensor<2xf32, #sluice.at<device = "acc0">>, tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    sluice.return %y : tensor<2xf32, #sluice.at<device = "acc0">>
  }
}

// -----

// Tests that no part of a call that sets a weight reads a state derived from it.
// CHECK-LABEL: module @parts
// CHECK-NOT: derived
module @parts {
  sluice.model "model" format 2 phase "copied" capacity 4 microbatches 2
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.parts @train_step ["x"] -> ["y"] = each @train_step.0, once @train_step.1
  sluice.entry @train_step.0 ["x"] -> ["y"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %r = sluice.rsqrt %w : (tensor<3xf32>) -> tensor<3xf32>
    %e = sluice.expand %r {dims = array<i64: 1>, shape = array<i64: ?, 3>} : (tensor<3xf32>) -> tensor<?x3xf32>
    %y = sluice.mul %x, %e : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.return %y : tensor<?x3xf32>
  }
  sluice.entry @train_step.1 [] -> [] () {
    %w = sluice.get @w : tensor<3xf32>
    %r = sluice.exp %w : (tensor<3xf32>) -> tensor<3xf32>
    sluice.set @w, %r : tensor<3xf32>
    sluice.return
  }
}
