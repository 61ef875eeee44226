// RUN: sluice-opt %s --split-input-file --sluice-verify-plan --verify-diagnostics

// Tests that a kernel without a wait for its operand's copy is detected.
#acc0 = #sluice.at<device = "acc0">
#cpu = #sluice.at<device = "cpu">
module {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.function @exp of "sim" cost <"elementwise", 2 + 0 flops, 16 + 0 bytes, 1.0 : f64 lanes> (%c: tensor<2xf32>) {
    %d = sluice.exp %c : (tensor<2xf32>) -> tensor<2xf32>
    sluice.yield %d : tensor<2xf32>
  }
  sluice.entry @predict ["x"] -> [] (%x: tensor<2xf32, #cpu>, %before: !sluice.event, %twice: !sluice.event) {
    sluice.receive %x : tensor<2xf32, #cpu> at cpu.transient[0, 64] after %twice
    %a, %in = sluice.transfer input step on "acc0.in" bytes 8 per_row 0
        in %x : tensor<2xf32, #cpu> at cpu.transient[0, 64]
        out tensor<2xf32, #acc0> at acc0.transient[0, 64]
    // expected-error @+1 {{(kernel 'exp') reads acc0.transient from byte 0, and the copy in acc0.in may still write them}}
    %b, %done = sluice.launch "exp" @exp on "acc0"
        in %a : tensor<2xf32, #acc0> at acc0.transient[0, 64]
        out tensor<2xf32, #acc0> at acc0.transient[128]
    sluice.return slots [] carry %in, %before
  }
}

// -----

// Tests that a copy into a buffer that the call of two calls before may still read is detected.
#acc0 = #sluice.at<device = "acc0">
#cpu = #sluice.at<device = "cpu">
module {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.function @exp of "sim" cost <"elementwise", 2 + 0 flops, 16 + 0 bytes, 1.0 : f64 lanes> (%c: tensor<2xf32>) {
    %d = sluice.exp %c : (tensor<2xf32>) -> tensor<2xf32>
    sluice.yield %d : tensor<2xf32>
  }
  sluice.entry @predict ["x"] -> [] (%x: tensor<2xf32, #cpu>, %before: !sluice.event, %twice: !sluice.event) {
    sluice.receive %x : tensor<2xf32, #cpu> at cpu.transient[0, 64] after %twice
    // expected-error @+1 {{(the copy in acc0.in) writes acc0.transient from byte 0, and kernel 'exp' of 2 calls before may still read them}}
    %a, %in = sluice.transfer input step on "acc0.in" bytes 8 per_row 0
        in %x : tensor<2xf32, #cpu> at cpu.transient[0, 64]
        out tensor<2xf32, #acc0> at acc0.transient[0, 64]
    %b, %done = sluice.launch "exp" @exp on "acc0" after %in
        in %a : tensor<2xf32, #acc0> at acc0.transient[0, 64]
        out tensor<2xf32, #acc0> at acc0.transient[128]
    sluice.return slots [] carry %in, %before
  }
}

// -----

// Tests that an input that is overwritten while its copy may still read it is detected.
#acc0 = #sluice.at<device = "acc0">
#cpu = #sluice.at<device = "cpu">
module {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> [] (%x: tensor<2xf32, #cpu>) {
    // expected-error @+1 {{(the host) writes cpu.transient from byte 0, and the copy in acc0.in of 1 calls before may still read them}}
    sluice.receive %x : tensor<2xf32, #cpu> at cpu.transient[0]
    %a, %in = sluice.transfer input step on "acc0.in" bytes 8 per_row 0
        in %x : tensor<2xf32, #cpu> at cpu.transient[0]
        out tensor<2xf32, #acc0> at acc0.transient[0]
    sluice.return slots []
  }
}

// -----

// Tests that a buffer that is released before its value's last read is detected.
#cpu = #sluice.at<device = "cpu">
module {
  sluice.function @exp of "cpu" cost <"elementwise", 2 + 0 flops, 16 + 0 bytes, 1.0 : f64 lanes> (%c: tensor<2xf32>) {
    %d = sluice.exp %c : (tensor<2xf32>) -> tensor<2xf32>
    sluice.yield %d : tensor<2xf32>
  }
  sluice.function @sin of "cpu" cost <"elementwise", 2 + 0 flops, 16 + 0 bytes, 1.0 : f64 lanes> (%c: tensor<2xf32>) {
    %d = sluice.sin %c : (tensor<2xf32>) -> tensor<2xf32>
    sluice.yield %d : tensor<2xf32>
  }
  sluice.function @add of "cpu" cost <"elementwise", 2 + 0 flops, 24 + 0 bytes, 1.0 : f64 lanes> (%c: tensor<2xf32>, %e: tensor<2xf32>) {
    %d = sluice.add %c, %e : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.yield %d : tensor<2xf32>
  }
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) {
    sluice.receive %x : tensor<2xf32, #cpu> at cpu.transient[0]
    %a, %first = sluice.launch "exp" @exp on "cpu"
        in %x : tensor<2xf32, #cpu> at cpu.transient[0]
        out tensor<2xf32, #cpu> at cpu.transient[64]
    %b, %second = sluice.launch "sin" @sin on "cpu"
        in %x : tensor<2xf32, #cpu> at cpu.transient[0]
        out tensor<2xf32, #cpu> at cpu.transient[64]
    // expected-error @+1 {{(kernel 'add') reads cpu.transient from byte 64, and kernel 'sin' has left another value there}}
    %c, %third = sluice.launch "add" @add on "cpu"
        in %a : tensor<2xf32, #cpu> at cpu.transient[64]
        in %b : tensor<2xf32, #cpu> at cpu.transient[64]
        out tensor<2xf32, #cpu> at cpu.transient[128]
    sluice.return %c : tensor<2xf32, #cpu> slots [#sluice.slot<cpu.transient[128]>]
  }
}

// -----

// Tests that a part is only written in place of the value that it updates.
#cpu = #sluice.at<device = "cpu">
module {
  sluice.device "cpu" = "cpu" 0
  sluice.function @part of "cpu" cost <"dynamic_update_slice", 0 + 0 flops, 16 + 0 bytes, 1.0 : f64 lanes> stage "part_0" tasks 1 (%x: tensor<4xf32>, %p: tensor<1xf32>, %i: tensor<i32>) {
    %y = sluice.dynamic_update_slice %x, %p, %i {axis = 0 : i64, in_place} : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    sluice.yield %y : tensor<4xf32>
  }
  sluice.entry @predict ["x", "p", "i"] -> ["y"] (%x: tensor<4xf32, #cpu>, %p: tensor<1xf32, #cpu>, %i: tensor<i32, #cpu>) {
    // expected-error @+1 {{writes a part in place of what lies elsewhere}}
    %y, %done = sluice.launch "part" @part on "cpu"
        in %x : tensor<4xf32, #cpu> at cpu.transient[0]
        in %p : tensor<1xf32, #cpu> at cpu.transient[64]
        in %i : tensor<i32, #cpu> at cpu.transient[128]
        out tensor<4xf32, #cpu> at cpu.transient[192]
    sluice.return %y : tensor<4xf32, #cpu> slots [#sluice.slot<cpu.transient[192]>]
  }
}
