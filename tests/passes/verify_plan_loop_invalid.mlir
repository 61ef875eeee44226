// RUN: sluice-opt %s --split-input-file --sluice-verify-plan --verify-diagnostics

// Tests that a value that is sent in a loop and overwritten in the next iteration without a carried wait is detected.
#acc0 = #sluice.at<device = "acc0">
#acc1 = #sluice.at<device = "acc1">
module {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.device "acc1" = "sim" 1
  sluice.function @exp of "sim" cost <"elementwise", 2 + 0 flops, 16 + 0 bytes, 1.0 : f64 lanes> stage "exp_0" tasks 1 (%c: tensor<2xf32>) {
    %d = sluice.exp %c : (tensor<2xf32>) -> tensor<2xf32>
    sluice.yield %d : tensor<2xf32>
  }
  sluice.state slot @w : tensor<2xf32> = <"constant", 0.0 : f64> physical tensor<2xf32, #acc0> slot <acc0.state[0]>
  sluice.entry @predict [] -> [] () {
    %w = sluice.get @w : tensor<2xf32, #acc0>
    %a, %first = sluice.launch "first" @exp on "acc0"
        in %w : tensor<2xf32, #acc0> at acc0.state[0]
        out tensor<2xf32, #acc0> at acc0.transient[0]
    %r, %done = sluice.loop "send" 4 times on "acc0", "acc1.in"
        (%p = %a : tensor<2xf32, #acc0> at acc0.transient[0]) {
      // expected-error @+1 {{(kernel 'exp') writes acc0.transient from byte 0, and the copy in acc1.in of the iteration before may still read them}}
      %b, %made = sluice.launch "exp" @exp on "acc0"
          in %p : tensor<2xf32, #acc0> at acc0.transient[0]
          out tensor<2xf32, #acc0> at acc0.transient[0]
      %c, %sent = sluice.transfer placement step on "acc1.in" bytes 8 per_row 0 after %made
          in %b : tensor<2xf32, #acc0> at acc0.transient[0]
          out tensor<2xf32, #acc1> at acc1.transient[0]
      sluice.next %b : tensor<2xf32, #acc0>
    }
    sluice.return slots []
  }
}

// -----

// Tests that a read of the last iteration's value, before this iteration computes it, is detected: it is not carried.
#cpu = #sluice.at<device = "cpu">
module {
  sluice.function @exp of "cpu" cost <"elementwise", 2 + 0 flops, 16 + 0 bytes, 1.0 : f64 lanes> stage "exp_0" tasks 1 (%c: tensor<2xf32>) {
    %d = sluice.exp %c : (tensor<2xf32>) -> tensor<2xf32>
    sluice.yield %d : tensor<2xf32>
  }
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) {
    sluice.receive %x : tensor<2xf32, #cpu> at cpu.transient[0]
    %a, %first = sluice.launch "first" @exp on "cpu"
        in %x : tensor<2xf32, #cpu> at cpu.transient[0]
        out tensor<2xf32, #cpu> at cpu.transient[64]
    // expected-error @+1 {{(loop 'elsewhere') reads cpu.transient from byte 64, and kernel 'first' has left another value there}}
    %r, %done = sluice.loop "elsewhere" 4 times on "cpu"
        (%p = %a : tensor<2xf32, #cpu> at cpu.transient[64]) {
      %b, %made = sluice.launch "exp" @exp on "cpu"
          in %p : tensor<2xf32, #cpu> at cpu.transient[64]
          out tensor<2xf32, #cpu> at cpu.transient[128]
      sluice.next %b : tensor<2xf32, #cpu>
    }
    sluice.return %r : tensor<2xf32, #cpu> slots [#sluice.slot<cpu.transient[64]>]
  }
}

// -----

// Tests that an exchange that only waits for the value of one of its queues is detected.
#acc0 = #sluice.at<device = "acc0">
#acc1 = #sluice.at<device = "acc1">
module {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.device "acc1" = "sim" 1
  sluice.function @exp of "sim" cost <"elementwise", 2 + 0 flops, 16 + 0 bytes, 1.0 : f64 lanes> stage "exp_0" tasks 1 (%c: tensor<2xf32>) {
    %d = sluice.exp %c : (tensor<2xf32>) -> tensor<2xf32>
    sluice.yield %d : tensor<2xf32>
  }
  sluice.state slot @w : tensor<2xf32> = <"constant", 0.0 : f64> physical tensor<2xf32, #acc0> slot <acc0.state[0]>
  sluice.state slot @v : tensor<2xf32> = <"constant", 0.0 : f64> physical tensor<2xf32, #acc1> slot <acc1.state[0]>
  sluice.entry @predict [] -> [] () {
    %w = sluice.get @w : tensor<2xf32, #acc0>
    %v = sluice.get @v : tensor<2xf32, #acc1>
    %a, %first = sluice.launch "first" @exp on "acc0"
        in %w : tensor<2xf32, #acc0> at acc0.state[0]
        out tensor<2xf32, #acc0> at acc0.transient[0]
    %b, %second = sluice.launch "second" @exp on "acc1"
        in %v : tensor<2xf32, #acc1> at acc1.state[0]
        out tensor<2xf32, #acc1> at acc1.transient[0]
    // expected-error @+1 {{(the exchange in acc1.in and acc0.in) reads acc1.transient from byte 0, and kernel 'second' may still write them}}
    %c, %d, %done = sluice.exchange placement on "acc1.in", "acc0.in" bytes 8, 8 per_row 0, 0 after %first
        in %a : tensor<2xf32, #acc0> at acc0.transient[0]
        in %b : tensor<2xf32, #acc1> at acc1.transient[0]
        out tensor<2xf32, #acc1> at acc1.transient[64]
        out tensor<2xf32, #acc0> at acc0.transient[64]
    sluice.return slots []
  }
}
