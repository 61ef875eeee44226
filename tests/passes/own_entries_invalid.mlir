// RUN: sluice-opt %s --split-input-file --verify-diagnostics

module {
  // expected-error @+1 {{has an entry point that cannot be called "predict": the compiler adds an entry point with this name}}
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    sluice.output "y", %x in "predict" : tensor<2xf32>
  }
}

// -----

module {
  sluice.state cache @sum : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    // expected-error @+1 {{sets a cache in no entry point of the graph's own: @sum}}
    sluice.set @sum, %x : tensor<2xf32>
  }
}

// -----

module {
  sluice.state statistic @sum : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    // expected-error @+1 {{sets what is no cache in an entry point of the graph's own: @sum}}
    sluice.set @sum, %x in "add" : tensor<2xf32>
  }
}

// -----

module {
  sluice.state cache @sum : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    sluice.set @sum, %x in "add" : tensor<2xf32>
    sluice.set @sum, %x in "other" : tensor<2xf32>
    // expected-error @+1 {{is the second one of this state in one entry point: @sum}}
    sluice.set @sum, %x in "add" : tensor<2xf32>
  }
}

// -----

module {
  // expected-error @+1 {{is a cache, which begins with zeros}}
  sluice.state cache @sum : tensor<2xf32> = <"constant", 1.0 : f64>
}
