// RUN: sluice-opt %s --split-input-file --sluice-place-values --sluice-deduplicate-copies --sluice-verify-placed | FileCheck %s

// Tests that the conditions of an inner branch and of its alternative, which is a negation, are copied to the host before
// the outer branch if the condition is computed there.
// CHECK-LABEL: module @negation
// CHECK: %[[P:.+]] = sluice.copy %{{.+}} pin when step {{.*}} : (tensor<i1, #acc0{{.*}}>) -> tensor<i1, #cpu>
// CHECK: %[[Q:.+]] = sluice.compare %{{.+}} -> tensor<i1, #acc0
// CHECK-NEXT: %[[HOST:.+]] = sluice.copy %[[Q]] pin
// CHECK: %[[NOT:.+]] = sluice.not %[[Q]]
// CHECK-NEXT: %[[NOTHOST:.+]] = sluice.copy %[[NOT]] pin
// CHECK: sluice.loop "outer" 1 times
// CHECK-NEXT: = %{{.+}})
// CHECK-NEXT: if %[[P]]
// CHECK: sluice.loop "then" 1 times
// CHECK: if %[[HOST]]
// CHECK: sluice.loop "else" 1 times
// CHECK: if %[[NOTHOST]]
module @negation {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 first
  sluice.entry @predict ["x", "s"] -> ["y"] (%x: tensor<2xf32>, %s: tensor<f32>) {
    %e = sluice.exp %s : (tensor<f32>) -> tensor<f32>
    %z = sluice.full {value = 0.0 : f64, type = tensor<2xf32>} : () -> tensor<2xf32>
    %p = sluice.compare %e, %s {predicate = #sluice<predicate gt>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %q = sluice.compare %e, %s {predicate = #sluice<predicate lt>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %y = sluice.loop "outer" 1 times (%a = %z : tensor<2xf32>) if %p : tensor<i1> {
      %t = sluice.loop "then" 1 times (%b = %z : tensor<2xf32>) if %q : tensor<i1> {
        %u = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
        sluice.next %u : tensor<2xf32>
      }
      %n = sluice.not %q : (tensor<i1>) -> tensor<i1>
      %o = sluice.loop "else" 1 times (%b = %t : tensor<2xf32>) if %n : tensor<i1> {
        %u = sluice.sin %x : (tensor<2xf32>) -> tensor<2xf32>
        sluice.next %u : tensor<2xf32>
      }
      sluice.next %o : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that a condition that is computed in a branch moves before the outermost branch, with its producers, which may be
// loops.
// CHECK-LABEL: module @computed
// CHECK: sluice.loop "power" 3 times
// CHECK: %[[Q:.+]] = sluice.compare
// CHECK-NEXT: %[[HOST:.+]] = sluice.copy %[[Q]]
// CHECK: sluice.loop "outer" 1 times
// CHECK: sluice.loop "middle" 1 times
// CHECK: sluice.loop "inner" 1 times
// CHECK: if %[[HOST]]
module @computed {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 first
  sluice.entry @predict ["x", "s", "p"] -> ["y"] (%x: tensor<2xf32>, %s: tensor<f32>, %p: tensor<i1>) {
    %z = sluice.full {value = 0.0 : f64, type = tensor<2xf32>} : () -> tensor<2xf32>
    %y = sluice.loop "outer" 1 times (%a = %z : tensor<2xf32>) if %p : tensor<i1> {
      %m = sluice.loop "middle" 1 times (%b = %z : tensor<2xf32>) if %p : tensor<i1> {
        %l = sluice.loop "power" 3 times (%c = %s : tensor<f32>) {
          %d = sluice.mul %c, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
          sluice.next %d : tensor<f32>
        }
        %q = sluice.compare %l, %s {predicate = #sluice<predicate lt>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %t = sluice.loop "inner" 1 times (%c = %z : tensor<2xf32>) if %q : tensor<i1> {
          %u = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
          sluice.next %u : tensor<2xf32>
        }
        sluice.next %t : tensor<2xf32>
      }
      sluice.next %m : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that equal conditions, for example those of a branch and of its gradient, are computed once.
// CHECK-LABEL: module @equal
// CHECK: %[[Q:.+]] = sluice.compare
// CHECK-NEXT: %[[HOST:.+]] = sluice.copy %[[Q]]
// CHECK-NOT: sluice.compare
// CHECK: sluice.loop "outer" 1 times
// CHECK: sluice.loop "inner" 1 times
// CHECK: if %[[HOST]]
// CHECK: sluice.loop "again" 1 times
// CHECK: sluice.loop "inner again" 1 times
// CHECK: if %[[HOST]]
module @equal {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 first
  sluice.entry @predict ["x", "s", "p"] -> ["y"] (%x: tensor<2xf32>, %s: tensor<f32>, %p: tensor<i1>) {
    %z = sluice.full {value = 0.0 : f64, type = tensor<2xf32>} : () -> tensor<2xf32>
    %y = sluice.loop "outer" 1 times (%a = %z : tensor<2xf32>) if %p : tensor<i1> {
      %e = sluice.exp %s : (tensor<f32>) -> tensor<f32>
      %q = sluice.compare %e, %s {predicate = #sluice<predicate lt>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %t = sluice.loop "inner" 1 times (%c = %z : tensor<2xf32>) if %q : tensor<i1> {
        %u = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
        sluice.next %u : tensor<2xf32>
      }
      sluice.next %t : tensor<2xf32>
    }
    %v = sluice.loop "again" 1 times (%a = %y : tensor<2xf32>) if %p : tensor<i1> {
      %e = sluice.exp %s : (tensor<f32>) -> tensor<f32>
      %q = sluice.compare %e, %s {predicate = #sluice<predicate lt>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %t = sluice.loop "inner again" 1 times (%c = %z : tensor<2xf32>) if %q : tensor<i1> {
        %u = sluice.sin %x : (tensor<2xf32>) -> tensor<2xf32>
        sluice.next %u : tensor<2xf32>
      }
      sluice.next %t : tensor<2xf32>
    }
    sluice.return %v : tensor<2xf32>
  }
}

// -----

// Tests a condition in a scan in a branch that no step changes: it moves before the branch.
// CHECK-LABEL: module @same_in_all_steps
// CHECK: %[[Q:.+]] = sluice.compare
// CHECK-NEXT: %[[HOST:.+]] = sluice.copy %[[Q]]
// CHECK: sluice.loop "outer" 1 times
// CHECK: sluice.loop "scan" 3 times
// CHECK: sluice.loop "inner" 1 times
// CHECK: if %[[HOST]]
module @same_in_all_steps {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 first
  sluice.entry @predict ["x", "s", "p"] -> ["y"] (%x: tensor<2xf32>, %s: tensor<f32>, %p: tensor<i1>) {
    %z = sluice.full {value = 0.0 : f64, type = tensor<2xf32>} : () -> tensor<2xf32>
    %y = sluice.loop "outer" 1 times (%a = %z : tensor<2xf32>) if %p : tensor<i1> {
      %r = sluice.loop "scan" 3 times (%h = %x : tensor<2xf32>) {
        %e = sluice.exp %s : (tensor<f32>) -> tensor<f32>
        %q = sluice.compare %e, %s {predicate = #sluice<predicate lt>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %t = sluice.loop "inner" 1 times (%c = %h : tensor<2xf32>) if %q : tensor<i1> {
          %u = sluice.exp %h : (tensor<2xf32>) -> tensor<2xf32>
          sluice.next %u : tensor<2xf32>
        }
        sluice.next %t : tensor<2xf32>
      }
      sluice.next %r : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests conditions in a scan in a branch that each step computes anew. The branches always run, and `where` selects.
// CHECK-LABEL: module @of_each_step
// CHECK: sluice.loop "outer" 1 times
// CHECK: sluice.loop "scan" 3 times
// CHECK-NEXT: (%[[H:.+]] = %{{.+}} : tensor<?x2xf32, #acc0
// CHECK: %[[Q:.+]] = sluice.compare
// CHECK-NOT: sluice.loop
// CHECK: %[[U:.+]] = sluice.exp %[[H]]
// CHECK: %[[QS:.+]] = sluice.expand %[[Q]] {{.*}} -> tensor<?x2xi1, #acc0
// CHECK: %[[T:.+]] = sluice.where %[[QS]], %[[U]], %[[H]]
// CHECK: %[[N:.+]] = sluice.not %[[Q]]
// CHECK: %[[V:.+]] = sluice.sin %[[H]]
// CHECK: %[[NS:.+]] = sluice.expand %[[N]]
// CHECK: %[[O:.+]] = sluice.where %[[NS]], %[[V]], %[[T]]
// CHECK: sluice.next %[[O]]
module @of_each_step {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 first
  sluice.entry @predict ["x", "s", "p"] -> ["y"] (%x: tensor<?x2xf32>, %s: tensor<f32>, %p: tensor<i1>) {
    %z = sluice.full {value = 0.0 : f64, type = tensor<?x2xf32>} : () -> tensor<?x2xf32>
    %y = sluice.loop "outer" 1 times (%a = %z : tensor<?x2xf32>) if %p : tensor<i1> {
      %r = sluice.loop "scan" 3 times (%h = %x : tensor<?x2xf32>) {
        %e = sluice.sum %h {axes = array<i64: 0, 1>} : (tensor<?x2xf32>) -> tensor<f32>
        %q = sluice.compare %e, %s {predicate = #sluice<predicate lt>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %t = sluice.loop "then" 1 times (%c = %h : tensor<?x2xf32>) if %q : tensor<i1> {
          %u = sluice.exp %h : (tensor<?x2xf32>) -> tensor<?x2xf32>
          sluice.next %u : tensor<?x2xf32>
        }
        %n = sluice.not %q : (tensor<i1>) -> tensor<i1>
        %o = sluice.loop "else" 1 times (%c = %t : tensor<?x2xf32>) if %n : tensor<i1> {
          %u = sluice.sin %h : (tensor<?x2xf32>) -> tensor<?x2xf32>
          sluice.next %u : tensor<?x2xf32>
        }
        sluice.next %o : tensor<?x2xf32>
      }
      sluice.next %r : tensor<?x2xf32>
    }
    sluice.return %y : tensor<?x2xf32>
  }
}

// -----

// Tests branches within branches in a scan: a condition of each step moves before the outermost branch of the step.
// CHECK-LABEL: module @in_a_scan
// CHECK: sluice.loop "scan" 3 times
// CHECK: %[[Q:.+]] = sluice.compare {{.*}}predicate lt
// CHECK-NEXT: %[[HOST:.+]] = sluice.copy %[[Q]]
// CHECK: sluice.loop "outer" 1 times
// CHECK: sluice.loop "inner" 1 times
// CHECK: if %[[HOST]]
module @in_a_scan {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 first
  sluice.entry @predict ["x", "s", "p"] -> ["y"] (%x: tensor<2xf32>, %s: tensor<f32>, %p: tensor<i1>) {
    %r = sluice.loop "scan" 3 times (%h = %x : tensor<2xf32>) {
      %y = sluice.loop "outer" 1 times (%a = %h : tensor<2xf32>) if %p : tensor<i1> {
        %e = sluice.sum %h {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
        %q = sluice.compare %e, %s {predicate = #sluice<predicate lt>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %t = sluice.loop "inner" 1 times (%c = %h : tensor<2xf32>) if %q : tensor<i1> {
          %u = sluice.exp %h : (tensor<2xf32>) -> tensor<2xf32>
          sluice.next %u : tensor<2xf32>
        }
        sluice.next %t : tensor<2xf32>
      }
      sluice.next %y : tensor<2xf32>
    }
    sluice.return %r : tensor<2xf32>
  }
}

// -----

// Tests that a condition that the host computes stays in its branch, so that it is computed if the branch is taken.
// CHECK-LABEL: module @on_the_host
// CHECK: sluice.loop "outer" 1 times
// CHECK: %[[Q:.+]] = sluice.compare
// CHECK: sluice.loop "inner" 1 times
// CHECK: if %[[Q]]
module @on_the_host {
  sluice.device "cpu" = "cpu" 0
  sluice.entry @predict ["x", "s", "p"] -> ["y"] (%x: tensor<2xf32>, %s: tensor<f32>, %p: tensor<i1>) {
    %z = sluice.full {value = 0.0 : f64, type = tensor<2xf32>} : () -> tensor<2xf32>
    %y = sluice.loop "outer" 1 times (%a = %z : tensor<2xf32>) if %p : tensor<i1> {
      %e = sluice.exp %s : (tensor<f32>) -> tensor<f32>
      %q = sluice.compare %e, %s {predicate = #sluice<predicate lt>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %t = sluice.loop "inner" 1 times (%c = %z : tensor<2xf32>) if %q : tensor<i1> {
        %u = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
        sluice.next %u : tensor<2xf32>
      }
      sluice.next %t : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}
