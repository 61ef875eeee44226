// RUN: sluice-opt %s --split-input-file --sluice-settle-loops --sluice-prepare-kernels --sluice-schedule-actions | FileCheck %s
// RUN: sluice-opt %s --split-input-file --sluice-settle-loops --sluice-prepare-kernels --sluice-schedule-actions --sluice-plan-memory --sluice-plan-waits --sluice-verify-plan | FileCheck %s --check-prefix=PLANNED

#acc0 = #sluice.at<device = "acc0">
#acc1 = #sluice.at<device = "acc1">
#cpu = #sluice.at<device = "cpu">

// Tests that a loop has the queues of its body, that its body is scheduled as a separate list, and that consumers of
// its results wait for the whole loop.
// CHECK-LABEL: module @there
// CHECK: [[IN:%done.*]] = sluice.transfer input step on "acc0.in"
// CHECK: [[EXP:%done.*]] = sluice.launch "acc0_exp" @acc0_exp on "acc0" after [[IN]]
// CHECK: %[[R:.+]], [[LOOP:%done.*]] = sluice.loop "there" 3 times on "acc0", "acc1.in"{{$}}
// CHECK-NEXT: (%[[A:.+]] = %{{.+}} : tensor<2xf32, #acc0_>) {
// CHECK: %[[S:.+]], [[SIN:%done.*]] = sluice.launch "acc0_sin" @acc0_sin on "acc0"{{$}}
// CHECK: sluice.transfer placement step on "acc1.in" bytes 8 per_row 0 after [[SIN]]
// CHECK: sluice.next %[[S]] : tensor<2xf32, #acc0_>{{$}}
// CHECK: sluice.transfer output asked on "acc0.out" bytes 8 per_row 0 after [[LOOP]]
// Tests that a loop-carried value has one buffer, for its initial value, its argument, its next value and its result.
// Events are passed between iterations: a sent value is not overwritten before it is sent. Calls wait for the loop.
// PLANNED-LABEL: module @there
// PLANNED: [[EXP:%done.*]] = sluice.launch "acc0_exp"
// PLANNED: out tensor<2xf32, #acc0_> at acc0.transient[[[PLACE:[0-9]+]]]
// PLANNED: sluice.loop "there" 3 times on "acc0", "acc1.in"
// PLANNED-NEXT: (%[[A:.+]] = %{{.+}} : tensor<2xf32, #acc0_> at acc0.transient[[[PLACE]]],
// PLANNED-NEXT: [[BEFORE:%.+]] : !sluice.event) {
// PLANNED: [[SIN:%done.*]] = sluice.launch "acc0_sin" @acc0_sin on "acc0" after [[BEFORE]]
// PLANNED-NEXT: in %[[A]] : tensor<2xf32, #acc0_> at acc0.transient[[[PLACE]]]
// PLANNED-NEXT: out tensor<2xf32, #acc0_> at acc0.transient[[[PLACE]]]
// PLANNED: [[SEND:%done.*]] = sluice.transfer placement step on "acc1.in" bytes 8 per_row 0 after [[SIN]]
// PLANNED: sluice.next {{.*}} carry [[SEND]]
// PLANNED: sluice.transfer output asked on "acc0.out"
// PLANNED-NEXT: in %{{.+}} : tensor<2xf32, #acc0_> at acc0.transient[[[PLACE]]]
module @there {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.device "acc1" = "sim" 1
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) {
    %0 = sluice.copy %x input when step {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
    %1 = sluice.kernel "acc0_exp" (%p = %0 : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
      %v = sluice.exp %p : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
      sluice.yield %v : tensor<2xf32, #acc0>
    }
    %2 = sluice.loop "there" 3 times (%a = %1 : tensor<2xf32, #acc0>) {
      %s = sluice.kernel "acc0_sin" (%p = %a : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
        %v = sluice.sin %p : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
        sluice.yield %v : tensor<2xf32, #acc0>
      }
      %t = sluice.copy %s placement when step {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc1>
      sluice.next %s : tensor<2xf32, #acc0>
    }
    %y = sluice.copy %2 output when asked {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #acc0>) -> tensor<2xf32, #cpu>
    sluice.return %y : tensor<2xf32, #cpu>
  }
}

// -----

#cpu = #sluice.at<device = "cpu">

// Tests that copying kernels are added where one buffer is not possible: an initial value that is an input or has other
// readers, and swapped values, which are read before either is written. A loop on the host alone has no waits.
// CHECK-LABEL: module @swap
// CHECK: %[[A:.+]], %{{.+}} = sluice.launch "copy_loop" @copy_loop
// CHECK: %[[B:.+]], %{{.+}} = sluice.launch "copy_loop" @copy_loop
// CHECK: sluice.loop "swap" 2 times on "cpu"
// CHECK-NEXT: (%[[P:.+]] = %{{[0-9]+}} : tensor<2xf32, #cpu>,
// CHECK-NEXT: %[[Q:.+]] = %{{[0-9]+}} : tensor<2xf32, #cpu>) {
// CHECK: %[[OLD:.+]], %{{.+}} = sluice.launch "copy_loop" {{.*[[:space:]]+}}in %[[P]]
// CHECK: %[[FIRST:.+]], %{{.+}} = sluice.launch "copy_loop" {{.*[[:space:]]+}}in %[[Q]]
// CHECK: %[[SECOND:.+]], %{{.+}} = sluice.launch "copy_loop" {{.*[[:space:]]+}}in %[[OLD]]
// CHECK: sluice.next %[[FIRST]], %[[SECOND]]
// CHECK-NOT: after
// PLANNED-LABEL: module @swap
// PLANNED: sluice.loop "swap" 2 times on "cpu"
module @swap {
  sluice.entry @predict ["x", "z"] -> ["y"] (%x: tensor<2xf32, #cpu>, %z: tensor<2xf32, #cpu>) {
    %2:2 = sluice.loop "swap" 2 times (%p = %x : tensor<2xf32, #cpu>, %q = %z : tensor<2xf32, #cpu>) {
      sluice.next %q, %p : tensor<2xf32, #cpu>, tensor<2xf32, #cpu>
    }
    %y = sluice.kernel "sub" (%a = %2#0 : tensor<2xf32, #cpu>, %b = %2#1 : tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu> {
      %v = sluice.sub %a, %b : (tensor<2xf32, #cpu>, tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu>
      sluice.yield %v : tensor<2xf32, #cpu>
    }
    sluice.return %y : tensor<2xf32, #cpu>
  }
}

// -----

#acc0 = #sluice.at<device = "acc0">
#acc1 = #sluice.at<device = "acc1">
#cpu = #sluice.at<device = "cpu">

// Tests that a carried value is not overwritten while another queue reads the old value.
// CHECK-LABEL: module @old
// CHECK: sluice.loop
// CHECK: [[SEND:%done.*]] = sluice.transfer placement step on "acc1.in"
// CHECK: sluice.launch "acc0_sin" @acc0_sin on "acc0" after [[SEND]]
// PLANNED-LABEL: module @old
module @old {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.device "acc1" = "sim" 1
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) {
    %0 = sluice.copy %x input when step {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
    %2 = sluice.loop "old" 3 times (%a = %0 : tensor<2xf32, #acc0>) {
      %t = sluice.copy %a placement when step {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc1>
      %s = sluice.kernel "acc0_sin" (%p = %a : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
        %v = sluice.sin %p : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
        sluice.yield %v : tensor<2xf32, #acc0>
      }
      sluice.next %s : tensor<2xf32, #acc0>
    }
    %y = sluice.copy %2 output when asked {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #acc0>) -> tensor<2xf32, #cpu>
    sluice.return %y : tensor<2xf32, #cpu>
  }
}

// -----

#cpu = #sluice.at<device = "cpu">

// Tests that a value from before a loop that the loop reads keeps its bytes until the loop is done, even after its last
// read in an iteration. A value of an iteration reuses bytes of values that are dead in it.
// CHECK-LABEL: module @outer
// PLANNED-LABEL: module @outer
// PLANNED: sluice.launch "exp"
// PLANNED: out tensor<2xf32, #cpu> at cpu.transient[[[KEPT:[0-9]+]]]
// PLANNED: sluice.loop "reads" 3 times
// PLANNED: sluice.launch "add"
// PLANNED: in %{{.+}} : tensor<2xf32, #cpu> at cpu.transient[[[KEPT]]]
// PLANNED: out tensor<2xf32, #cpu> at cpu.transient[[[SUM:[0-9]+]]]
// PLANNED-NOT: out tensor<2xf32, #cpu> at cpu.transient[[[KEPT]]]
// PLANNED: sluice.launch "cos"
// PLANNED: out tensor<2xf32, #cpu> at cpu.transient[[[SUM]]]
// PLANNED-NOT: out tensor<2xf32, #cpu> at cpu.transient[[[KEPT]]]
// PLANNED: sluice.next
module @outer {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) {
    %o = sluice.kernel "exp" (%p = %x : tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu> {
      %v = sluice.exp %p : (tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu>
      sluice.yield %v : tensor<2xf32, #cpu>
    }
    %r = sluice.loop "reads" 3 times (%a = %x : tensor<2xf32, #cpu>) {
      %k = sluice.kernel "add" (%p = %a : tensor<2xf32, #cpu>, %q = %o : tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu> {
        %v = sluice.add %p, %q : (tensor<2xf32, #cpu>, tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu>
        sluice.yield %v : tensor<2xf32, #cpu>
      }
      %m = sluice.kernel "sin" (%p = %k : tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu> {
        %v = sluice.sin %p : (tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu>
        sluice.yield %v : tensor<2xf32, #cpu>
      }
      %n = sluice.kernel "cos" (%p = %m : tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu> {
        %v = sluice.cos %p : (tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu>
        sluice.yield %v : tensor<2xf32, #cpu>
      }
      %l = sluice.kernel "neg" (%p = %n : tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu> {
        %v = sluice.neg %p : (tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu>
        sluice.yield %v : tensor<2xf32, #cpu>
      }
      sluice.next %l : tensor<2xf32, #cpu>
    }
    %y = sluice.kernel "neg_1" (%p = %r : tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu> {
      %v = sluice.neg %p : (tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu>
      sluice.yield %v : tensor<2xf32, #cpu>
    }
    sluice.return %y : tensor<2xf32, #cpu>
  }
}

// -----

#acc0 = #sluice.at<device = "acc0">
#cpu = #sluice.at<device = "cpu">

// Tests that a loop in a loop does not overwrite its initial value if that is the result of a loop before both: each
// iteration of the outer loop reads it again.
// CHECK-LABEL: module @again
// CHECK: %[[BEFORE:.+]], %{{.+}} = sluice.loop "before" 2 times
// CHECK: sluice.loop "outer" 3 times
// CHECK: %[[COPY:.+]], %{{.+}} = sluice.launch "{{.*}}copy_loop"
// CHECK-NEXT: in %[[BEFORE]] : tensor<2xf32, #acc0_>
// CHECK: sluice.loop "inner" 2 times
// CHECK-NEXT: (%{{.+}} = %[[COPY]] : tensor<2xf32, #acc0_>)
// PLANNED-LABEL: module @again
module @again {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) {
    %0 = sluice.copy %x input when step {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
    %1 = sluice.kernel "acc0_exp" (%p = %0 : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
      %v = sluice.exp %p : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
      sluice.yield %v : tensor<2xf32, #acc0>
    }
    %w = sluice.kernel "acc0_cos" (%p = %0 : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
      %v = sluice.cos %p : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
      sluice.yield %v : tensor<2xf32, #acc0>
    }
    %2 = sluice.loop "before" 2 times (%a = %1 : tensor<2xf32, #acc0>) {
      %s = sluice.kernel "acc0_sin" (%p = %a : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
        %v = sluice.sin %p : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
        sluice.yield %v : tensor<2xf32, #acc0>
      }
      sluice.next %s : tensor<2xf32, #acc0>
    }
    %3 = sluice.loop "outer" 3 times (%a = %w : tensor<2xf32, #acc0>) {
      %4 = sluice.loop "inner" 2 times (%b = %2 : tensor<2xf32, #acc0>) {
        %s = sluice.kernel "acc0_tanh" (%p = %b : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
          %v = sluice.tanh %p : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
          sluice.yield %v : tensor<2xf32, #acc0>
        }
        sluice.next %s : tensor<2xf32, #acc0>
      }
      %5 = sluice.kernel "acc0_add" (%p = %4 : tensor<2xf32, #acc0>, %q = %a : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
        %v = sluice.add %p, %q : (tensor<2xf32, #acc0>, tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
        sluice.yield %v : tensor<2xf32, #acc0>
      }
      sluice.next %5 : tensor<2xf32, #acc0>
    }
    %y = sluice.copy %3 output when asked {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #acc0>) -> tensor<2xf32, #cpu>
    sluice.return %y : tensor<2xf32, #cpu>
  }
}
