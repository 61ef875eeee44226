// RUN: sluice-opt %s --split-input-file --verify-diagnostics

// Tests that there is a slice for each step.
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2x5xf32>) {
    // expected-error @+1 {{has no 4 slices along dimension 1: 'tensor<2x5xf32>'}}
    %y = sluice.scan 4 steps (%s = %x : tensor<2x5xf32> along 1) stack 1 {
      sluice.step stack %s : tensor<2xf32>
    }
    sluice.return %y : tensor<2x4xf32>
  }
}

// -----

// Tests that the dimension of the rows cannot be that of the steps.
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x5xf32>) {
    // expected-error @+1 {{has no 5 slices along dimension 0: 'tensor<?x5xf32>'}}
    %y = sluice.scan 5 steps (%s = %x : tensor<?x5xf32> along 0) stack 0 {
      sluice.step stack %s : tensor<5xf32>
    }
    sluice.return %y : tensor<5x5xf32>
  }
}

// -----

// Tests that there is at least one step.
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    // expected-error @+1 {{must have 1 to 2147483647 steps, but has 0}}
    %y = sluice.scan 0 steps (%a = %x : tensor<2xf32>) {
      sluice.step %a : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that a carried value keeps its type.
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    // expected-error @+1 {{carries values of other types than its first ones}}
    %y = sluice.scan 3 steps (%a = %x : tensor<2xf32>) {
      %n = sluice.sum %a {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
      sluice.step %n : tensor<f32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that `step` lists the stacked values.
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    // expected-error @+1 {{does not end in a sluice.step that stacks 1 values}}
    %y = sluice.scan 3 steps (%a = %x : tensor<2xf32>) stack 0 {
      sluice.step %a : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that the step dimension of a stack is a dimension of the value, or one after them.
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    // expected-error @+1 {{cannot stack along dimension 2 values of 'tensor<2xf32>'}}
    %last, %y = sluice.scan 3 steps (%a = %x : tensor<2xf32>) stack 2 {
      sluice.step %a : tensor<2xf32> stack %a : tensor<2xf32>
    }
    sluice.return %y : tensor<2x3xf32>
  }
}

// -----

// Tests that a step accesses no state.
module {
  sluice.state slot @w : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    %y = sluice.scan 3 steps (%a = %x : tensor<2xf32>) {
      // expected-error @+1 {{cannot stand in a scan, which is of values alone}}
      %w = sluice.get @w : tensor<2xf32>
      sluice.step %w : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}
