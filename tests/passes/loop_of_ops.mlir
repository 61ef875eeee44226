// RUN: sluice-opt %s --split-input-file --sluice-place-values --sluice-deduplicate-copies --sluice-verify-placed | FileCheck %s --check-prefix=COPIED
// RUN: sluice-opt %s --split-input-file --sluice-place-values --sluice-deduplicate-copies --sluice-expand-missing --sluice-check-support --sluice-assign-layouts --sluice-fuse-kernels --sluice-verify-placed | FileCheck %s --check-prefix=FUSED
// RUN: sluice-opt %s --split-input-file --sluice-place-values --sluice-deduplicate-copies --sluice-expand-missing --sluice-check-support --sluice-assign-layouts --sluice-fuse-kernels --sluice-settle-loops --sluice-prepare-kernels --sluice-schedule-actions --sluice-plan-memory --sluice-plan-waits --sluice-verify-plan | FileCheck %s --check-prefix=PLANNED

// Tests that a carried value is on the device of its initial value. Outside operands of the body are copied there once,
// before the loop; constants are computed on their consumers' devices. The ops of the body have separate launches.
// COPIED-LABEL: module @there
// COPIED: sluice.entry @predict
// COPIED-NEXT: %[[V:.+]] = sluice.copy %v input when step
// COPIED-NEXT: %[[X:.+]] = sluice.copy %x input when step
// COPIED-NOT: sluice.copy
// COPIED: %[[E:.+]] = sluice.exp %[[X]]
// COPIED-NEXT: %[[R:.+]] = sluice.loop "there" 3 times
// COPIED-NEXT: (%[[A:.+]] = %[[E]] : tensor<?x4xf32, #[[ACC0:.+]]>) {
// COPIED-NEXT: %[[S:.+]] = sluice.sin %[[A]]
// COPIED-NEXT: %[[C:.+]] = sluice.full {{.+}} -> tensor<?x4xf32, #[[ACC0]]>
// COPIED-NEXT: %[[T:.+]] = sluice.add %[[S]], %[[C]]
// COPIED-NEXT: %[[U:.+]] = sluice.mul %[[T]], %[[V]]
// COPIED-NEXT: sluice.next %[[U]]
// COPIED: %[[D:.+]] = sluice.full {{.+}} -> tensor<?x4xf32, #[[ACC0]]>
// COPIED-NEXT: %[[Z:.+]] = sluice.sub %[[R]], %[[D]]
// COPIED-NEXT: %[[B:.+]] = sluice.copy %[[Z]] pin when step
// COPIED-NEXT: sluice.relu %[[B]]
// FUSED-LABEL: module @there
// FUSED: sluice.kernel "acc0_exp"
// FUSED: sluice.loop "there" 3 times
// FUSED-NEXT: (%[[A:.+]] = %{{.+}}) {
// FUSED-NEXT: %[[K:.+]] = sluice.kernel "acc0_sin_add_mul"
// FUSED: sluice.next %[[K]]
// FUSED: sluice.kernel "acc0_sub"
// FUSED: sluice.copy %{{.+}} pin when step
// FUSED: sluice.kernel "relu"
// PLANNED-LABEL: module @there
// PLANNED: sluice.loop "there" 3 times on "acc0"
// PLANNED: sluice.launch "acc0_sin_add_mul"
module @there {
  sluice.model "model" format 2 phase "train" capacity 4 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x", "v"] -> ["y"] (%x: tensor<?x4xf32>, %v: tensor<?x4xf32>) {
    %c = sluice.full {value = 0.5 : f64, type = tensor<?x4xf32>} : () -> tensor<?x4xf32>
    %e = sluice.exp %x {sluice.pin = "acc0"} : (tensor<?x4xf32>) -> tensor<?x4xf32>
    %r = sluice.loop "there" 3 times (%a = %e : tensor<?x4xf32>) {
      %s = sluice.sin %a {sluice.pin = "acc0"} : (tensor<?x4xf32>) -> tensor<?x4xf32>
      %t = sluice.add %s, %c {sluice.pin = "acc0"} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      %u = sluice.mul %t, %v {sluice.pin = "acc0"} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      sluice.next %u : tensor<?x4xf32>
    }
    %z = sluice.sub %r, %c {sluice.pin = "acc0"} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %y = sluice.relu %z {sluice.pin = "cpu"} : (tensor<?x4xf32>) -> tensor<?x4xf32>
    sluice.return %y : tensor<?x4xf32>
  }
}

// -----

// Tests that a value of an iteration crosses devices within it. A loop runs after the launches whose values its ops
// read, and before the consumers of its results.
// COPIED-LABEL: module @crossing
// COPIED: sluice.loop "outer" 2 times
// COPIED-NEXT: (%[[P:.+]] = %{{.+}}) {
// COPIED-NEXT: %[[IN:.+]] = sluice.copy %[[P]] pin when step
// COPIED-NEXT: %[[Q:.+]] = sluice.loop "inner" 2 times
// COPIED-NEXT: (%[[A:.+]] = %[[P]]
// COPIED-NEXT: sluice.add %[[A]], %{{.+}}
// COPIED: %[[S:.+]] = sluice.sin %[[IN]]
// COPIED-NEXT: %[[BACK:.+]] = sluice.copy %[[S]] pin when step
// COPIED-NEXT: %[[N:.+]] = sluice.einsum "ab,bc->ac" %[[Q]], %[[BACK]]
// COPIED-NEXT: sluice.next %[[N]]
// FUSED-LABEL: module @crossing
// FUSED: %[[E:.+]] = sluice.kernel "exp"
// FUSED: %[[R:.+]] = sluice.loop "outer" 2 times
// FUSED: sluice.loop "inner" 2 times
// FUSED: sluice.kernel "add"
// FUSED: sluice.kernel "einsum"
// FUSED: sluice.kernel "add_1"
// FUSED-NEXT: (%{{.+}} = %[[R]] {{.+}}
// FUSED-NEXT: %{{.+}} = %[[E]] {{.+}}
// PLANNED-LABEL: module @crossing
// PLANNED: sluice.loop "outer" 2 times
module @crossing {
  sluice.model "model" format 2 phase "train" capacity 4 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<4x4xf32>) {
    %e = sluice.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %r = sluice.loop "outer" 2 times (%p = %x : tensor<4x4xf32>) {
      %q = sluice.loop "inner" 2 times (%a = %p : tensor<4x4xf32>) {
        %b = sluice.add %a, %e : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
        sluice.next %b : tensor<4x4xf32>
      }
      %s = sluice.sin %p {sluice.pin = "acc0"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %n = sluice.einsum "ab,bc->ac" %q, %s : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      sluice.next %n : tensor<4x4xf32>
    }
    %y = sluice.add %r, %e : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    sluice.return %y : tensor<4x4xf32>
  }
}

// -----

// Tests that carried values are row-major, whatever layouts their convolutions prefer.
// COPIED-LABEL: module @layouts
// FUSED-LABEL: module @layouts
// FUSED: sluice.loop "layouts" 2 times
// FUSED-NEXT: (%[[A:.+]] = %x : tensor<?x4x6x6xf32, #cpu>) {
// FUSED: sluice.kernel "relayout"
// FUSED-NEXT: (%{{.+}} = %[[A]]
// FUSED: -> tensor<?x4x6x6xf32, #cpu_acdb>
// FUSED: sluice.conv2d
// FUSED: sluice.next %{{.+}} : tensor<?x4x6x6xf32, #cpu>
// FUSED: -> tensor<?x4x6x6xf32, #cpu_acdb>
// FUSED: sluice.return %{{.+}} : tensor<?x4x6x6xf32, #cpu>
// PLANNED-LABEL: module @layouts
module @layouts {
  sluice.model "model" format 2 phase "train" capacity 4
  sluice.entry @predict ["x", "w"] -> ["y"] (%x: tensor<?x4x6x6xf32>, %w: tensor<4x4x3x3xf32>) {
    %r = sluice.loop "layouts" 2 times (%a = %x : tensor<?x4x6x6xf32>) {
      %b = sluice.conv2d %a, %w {stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<?x4x6x6xf32>, tensor<4x4x3x3xf32>) -> tensor<?x4x6x6xf32>
      sluice.next %b : tensor<?x4x6x6xf32>
    }
    %n = sluice.neg %r : (tensor<?x4x6x6xf32>) -> tensor<?x4x6x6xf32>
    %y = sluice.conv2d %n, %w {stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<?x4x6x6xf32>, tensor<4x4x3x3xf32>) -> tensor<?x4x6x6xf32>
    sluice.return %y : tensor<?x4x6x6xf32>
  }
}

// -----

// Tests that a loop's ops follow a value that the user placed.
#acc0 = #sluice.at<device = "acc0">
// COPIED-LABEL: module @follows
// COPIED: sluice.copy %x to when step
// COPIED: sluice.loop "follows" 2 times
// COPIED-NOT: sluice.copy
// COPIED: sluice.next
// FUSED-LABEL: module @follows
// FUSED: sluice.kernel "acc0_sin_cos"
// PLANNED-LABEL: module @follows
module @follows {
  sluice.model "model" format 2 phase "train" capacity 4 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<4xf32>) {
    %t = sluice.copy %x to : (tensor<4xf32>) -> tensor<4xf32, #acc0>
    %r = sluice.loop "follows" 2 times (%a = %t : tensor<4xf32, #acc0>) {
      %s = sluice.sin %a : (tensor<4xf32, #acc0>) -> tensor<4xf32>
      %c = sluice.cos %s : (tensor<4xf32>) -> tensor<4xf32, #acc0>
      sluice.next %c : tensor<4xf32, #acc0>
    }
    sluice.return %r : tensor<4xf32, #acc0>
  }
}

// -----

// Tests that a loop that reads a state runs before the state's in-place update.
// COPIED-LABEL: module @updates
// FUSED-LABEL: module @updates
// FUSED: sluice.loop "updates" 2 times
// FUSED: sluice.next
// FUSED: %[[W:.+]] = sluice.kernel "exp"
// FUSED: sluice.set @w, %[[W]]
// PLANNED-LABEL: module @updates
module @updates {
  sluice.model "model" format 2 phase "train" capacity 4
  sluice.state parameter @w : tensor<4xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step ["x"] -> ["y"] (%x: tensor<4xf32>) {
    %w = sluice.get @w : tensor<4xf32>
    %next = sluice.exp %w : (tensor<4xf32>) -> tensor<4xf32>
    sluice.set @w, %next : tensor<4xf32>
    %r = sluice.loop "updates" 2 times (%a = %x : tensor<4xf32>) {
      %u = sluice.add %a, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      sluice.next %u : tensor<4xf32>
    }
    sluice.return %r : tensor<4xf32>
  }
}
