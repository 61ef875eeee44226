// RUN: sluice-opt %s --split-input-file --verify-diagnostics

// Tests that the condition is a scalar.
module {
  sluice.entry @predict ["x", "p"] -> ["y"] (%x: tensor<2xf32>, %p: tensor<2xi1>) {
    // expected-error @+1 {{needs a scalar to decide by, not [2]}}
    %y = sluice.if %p : tensor<2xi1> -> tensor<2xf32> {
      sluice.yield %x : tensor<2xf32>
    } else {
      sluice.yield %x : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that both branches yield the result types.
module {
  sluice.entry @predict ["x", "z", "p"] -> ["y"] (%x: tensor<2xf32>, %z: tensor<3xf32>, %p: tensor<i1>) {
    %y = sluice.if %p : tensor<i1> -> tensor<2xf32> {
      sluice.yield %x : tensor<2xf32>
    } else {
      // expected-error @+1 {{gives values of other types than the results of the branches}}
      sluice.yield %z : tensor<3xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that a branch contains no states.
module {
  sluice.state parameter @w : tensor<2xf32> = <"constant", 0.5 : f64>
  sluice.entry @predict ["x", "p"] -> ["y"] (%x: tensor<2xf32>, %p: tensor<i1>) {
    %y = sluice.if %p : tensor<i1> -> tensor<2xf32> {
      // expected-error @+1 {{cannot stand in a branch, which is of values alone}}
      %w = sluice.get @w : tensor<2xf32>
      sluice.yield %w : tensor<2xf32>
    } else {
      sluice.yield %x : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that the condition of a loop is a scalar, too.
module {
  sluice.entry @predict ["x", "p"] -> ["y"] (%x: tensor<2xf32>, %p: tensor<2xi1>) {
    // expected-error @+1 {{needs a scalar to decide by, not 'tensor<2xi1>'}}
    %y = sluice.loop "l" 1 times (%a = %x : tensor<2xf32>) if %p : tensor<2xi1> {
      sluice.next %a : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}
