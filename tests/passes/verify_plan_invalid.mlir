// RUN: sluice-opt %s --split-input-file --sluice-verify-plan --verify-diagnostics

// Tests that a kernel which does not wait for the copy that brings its operand is found.
#acc0 = #sluice.at<device = "acc0">
#cpu = #sluice.at<device = "cpu">
module attributes {sluice.devices = [{name = "cpu", backend = "cpu", ordinal = 0}, {name = "acc0", backend = "sim", ordinal = 0}]} {
  sluice.entry @predict ["x"] -> [] (%x: tensor<2xf32, #cpu>) attributes {inputs_at = [array<i64: 1, 0, 64>], input_waits = [array<i64: 0, 2>], outputs_at = []} {
    %a = sluice.copy %x "input" {buffers = [array<i64: 1, 0, 64>, array<i64: 4, 0, 64>], queue = "acc0.in"} : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
    sluice.record "acc0.in" 0
    // expected-error @+1 {{(kernel 'exp') reads arena 4 from byte 0, and the copy in acc0.in may still write them}}
    %b = sluice.kernel "exp" (%c = %a : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> attributes {buffers = [array<i64: 4, 0, 64>, array<i64: 4, 128>], queue = "acc0"} {
      %d = sluice.exp %c : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
      sluice.yield %d : tensor<2xf32, #acc0>
    }
    sluice.return
  }
}

// -----

// Tests that a copy into a buffer which the call of two calls before may still read is found.
#acc0 = #sluice.at<device = "acc0">
#cpu = #sluice.at<device = "cpu">
module attributes {sluice.devices = [{name = "cpu", backend = "cpu", ordinal = 0}, {name = "acc0", backend = "sim", ordinal = 0}]} {
  sluice.entry @predict ["x"] -> [] (%x: tensor<2xf32, #cpu>) attributes {inputs_at = [array<i64: 1, 0, 64>], input_waits = [array<i64: 0, 2>], outputs_at = []} {
    // expected-error @+1 {{(the copy in acc0.in) writes arena 4 from byte 0, and kernel 'exp' of 2 calls before may still read them}}
    %a = sluice.copy %x "input" {buffers = [array<i64: 1, 0, 64>, array<i64: 4, 0, 64>], queue = "acc0.in"} : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
    sluice.record "acc0.in" 0
    sluice.wait "acc0" 0
    %b = sluice.kernel "exp" (%c = %a : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> attributes {buffers = [array<i64: 4, 0, 64>, array<i64: 4, 128>], queue = "acc0"} {
      %d = sluice.exp %c : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
      sluice.yield %d : tensor<2xf32, #acc0>
    }
    sluice.return
  }
}

// -----

// Tests that an input which is written while its copy may still read it is found.
#acc0 = #sluice.at<device = "acc0">
#cpu = #sluice.at<device = "cpu">
module attributes {sluice.devices = [{name = "cpu", backend = "cpu", ordinal = 0}, {name = "acc0", backend = "sim", ordinal = 0}]} {
  // expected-error @+1 {{(the host) writes arena 1 from byte 0, and the copy in acc0.in of 1 calls before may still read them}}
  sluice.entry @predict ["x"] -> [] (%x: tensor<2xf32, #cpu>) attributes {inputs_at = [array<i64: 1, 0>], input_waits = [array<i64>], outputs_at = []} {
    %a = sluice.copy %x "input" {buffers = [array<i64: 1, 0>, array<i64: 4, 0>], queue = "acc0.in"} : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
    sluice.return
  }
}

// -----

// Tests that a buffer which is given away while its value is still to be read is found.
#cpu = #sluice.at<device = "cpu">
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) attributes {inputs_at = [array<i64: 1, 0>], outputs_at = [array<i64: 1, 128>]} {
    %a = sluice.kernel "exp" (%e = %x : tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu> attributes {buffers = [array<i64: 1, 0>, array<i64: 1, 64>], queue = "cpu"} {
      %f = sluice.exp %e : (tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu>
      sluice.yield %f : tensor<2xf32, #cpu>
    }
    %b = sluice.kernel "sin" (%e = %x : tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu> attributes {buffers = [array<i64: 1, 0>, array<i64: 1, 64>], queue = "cpu"} {
      %f = sluice.sin %e : (tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu>
      sluice.yield %f : tensor<2xf32, #cpu>
    }
    // expected-error @+1 {{(kernel 'add') reads arena 1 from byte 64, and kernel 'sin' has left another value there}}
    %c = sluice.kernel "add" (%e = %a : tensor<2xf32, #cpu>, %g = %b : tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu> attributes {buffers = [array<i64: 1, 64>, array<i64: 1, 64>, array<i64: 1, 128>], queue = "cpu"} {
      %f = sluice.add %e, %g : (tensor<2xf32, #cpu>, tensor<2xf32, #cpu>) -> tensor<2xf32, #cpu>
      sluice.yield %f : tensor<2xf32, #cpu>
    }
    sluice.return %c : tensor<2xf32, #cpu>
  }
}
