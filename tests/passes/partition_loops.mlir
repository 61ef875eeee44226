// RUN: sluice-opt %s --split-input-file --sluice-partition-rows | FileCheck %s

// Tests that a loop that adds sums over rows to zeros carries a partial sum, which is reduced once, after it.
// CHECK: sluice.entry @sums
// CHECK: %[[L:.+]] = sluice.loop "sums" 3 times
// CHECK-NOT: sluice.all_reduce
// CHECK: sluice.next
// CHECK: %[[R:.+]] = sluice.all_reduce sum %[[L]]
// CHECK: sluice.return %[[R]]
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @sums ["x"] -> ["y"] (%x: tensor<?x2xf32>) {
    %z = sluice.full {value = 0.0 : f64, type = tensor<2xf32>} : () -> tensor<2xf32>
    %y = sluice.loop "sums" 3 times (%a = %z : tensor<2xf32>) {
      %t = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
      %n = sluice.add %a, %t : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      sluice.next %n : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that conditions are whole, and that a branch yields a partial sum where the other yields zeros.
// CHECK: sluice.entry @branch
// CHECK: %[[S:.+]] = sluice.sum %x {axes = array<i64: 0, 1>}
// CHECK: %[[W:.+]] = sluice.all_reduce sum %[[S]]
// CHECK: %[[P:.+]] = sluice.compare %[[W]],
// CHECK: %[[T:.+]] = sluice.loop "then" 1 times
// CHECK: if %[[P]]
// CHECK-NOT: sluice.all_reduce
// CHECK: %[[E:.+]] = sluice.loop "else" 1 times
// CHECK-NOT: sluice.all_reduce
// CHECK: sluice.next
// CHECK: %[[R:.+]] = sluice.all_reduce sum %[[E]]
// CHECK: sluice.return %[[R]]
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @branch ["x"] -> ["y"] (%x: tensor<?x2xf32>) {
    %z = sluice.full {value = 0.0 : f64, type = tensor<f32>} : () -> tensor<f32>
    %o = sluice.full {value = 0.0 : f64, type = tensor<2xf32>} : () -> tensor<2xf32>
    %s = sluice.sum %x {axes = array<i64: 0, 1>} : (tensor<?x2xf32>) -> tensor<f32>
    %p = sluice.compare %s, %z {predicate = #sluice<predicate gt>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %t = sluice.loop "then" 1 times (%a = %o : tensor<2xf32>) if %p : tensor<i1> {
      sluice.next %o : tensor<2xf32>
    }
    %q = sluice.not %p : (tensor<i1>) -> tensor<i1>
    %y = sluice.loop "else" 1 times (%a = %t : tensor<2xf32>) if %q : tensor<i1> {
      %u = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
      sluice.next %u : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests a loop that stores sums over rows into parts of a value. It carries a partial sum, which is reduced once, after
// the loop.
// CHECK: sluice.entry @stacked
// CHECK: %[[L:.+]]:2 = sluice.loop "scan" 3 times
// CHECK-NOT: sluice.all_reduce
// CHECK: sluice.next
// CHECK: %[[R:.+]] = sluice.all_reduce sum %[[L]]#1
// CHECK: sluice.return %[[R]]
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @stacked ["x"] -> ["y"] (%x: tensor<?x2xf32>) {
    %i = sluice.full {value = 0.0 : f64, type = tensor<i32>} : () -> tensor<i32>
    %z = sluice.full {value = 0.0 : f64, type = tensor<3x2xf32>} : () -> tensor<3x2xf32>
    %y:2 = sluice.loop "scan" 3 times
        (%p = %i : tensor<i32>,
         %a = %z : tensor<3x2xf32>) {
      %t = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
      %r = sluice.reshape %t {shape = array<i64: 1, 2>} : (tensor<2xf32>) -> tensor<1x2xf32>
      %n = sluice.dynamic_update_slice %a, %r, %p {axis = 0 : i64} : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>) -> tensor<3x2xf32>
      %one = sluice.full {value = 1.0 : f64, type = tensor<i32>} : () -> tensor<i32>
      %q = sluice.add %p, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
      sluice.next %q, %n : tensor<i32>, tensor<3x2xf32>
    }
    sluice.return %y#1 : tensor<3x2xf32>
  }
}

// -----

// Tests a loop that multiplies a carried value by a sum over rows. Both begin as sums: the value is reduced before the
// loop, so that the products are sums, which are reduced once, after the loop.
// CHECK: sluice.entry @products
// CHECK: %[[S:.+]] = sluice.all_reduce sum
// CHECK: %[[L:.+]]:2 = sluice.loop "scan" 3 times
// CHECK-NEXT: = %[[S]] :
// CHECK-NOT: sluice.all_reduce
// CHECK: sluice.next
// CHECK: %[[R:.+]] = sluice.all_reduce sum %[[L]]#1
// CHECK: sluice.return %[[R]]
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @products ["x"] -> ["y"] (%x: tensor<?x2xf32>) {
    %z = sluice.full {value = 0.0 : f64, type = tensor<2xf32>} : () -> tensor<2xf32>
    %s = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
    %y:2 = sluice.loop "scan" 3 times
        (%d = %s : tensor<2xf32>,
         %a = %z : tensor<2xf32>) {
      %t = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
      %p = sluice.mul %t, %d : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %n = sluice.add %a, %p : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %e = sluice.add %d, %d : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      sluice.next %e, %n : tensor<2xf32>, tensor<2xf32>
    }
    sluice.return %y#1 : tensor<2xf32>
  }
}

// -----

// Tests that rows returned by a branch stay sharded, even if both branches return zeros.
// CHECK: sluice.entry @rows
// CHECK-NOT: sluice.all_reduce
// CHECK: sluice.return
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @rows ["x", "p"] -> ["y"] (%x: tensor<?x2xf32>, %p: tensor<i1>) {
    %z = sluice.full {value = 0.0 : f64, type = tensor<?x2xf32>} : () -> tensor<?x2xf32>
    %t = sluice.loop "then" 1 times (%a = %z : tensor<?x2xf32>) if %p : tensor<i1> {
      sluice.next %z : tensor<?x2xf32>
    }
    %y = sluice.add %t, %x : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.return %y : tensor<?x2xf32>
  }
}
