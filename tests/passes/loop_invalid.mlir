// RUN: sluice-opt %s --split-input-file --verify-diagnostics

// Tests that a loop runs at least once.
#cpu = #sluice.at<device = "cpu">
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) {
    // expected-error @+1 {{must happen 1 to 2147483647 times, but is to happen 0 times}}
    %y = sluice.loop "never" 0 times (%a = %x : tensor<2xf32, #cpu>) {
      sluice.next %a : tensor<2xf32, #cpu>
    }
    sluice.return %y : tensor<2xf32, #cpu>
  }
}

// -----

// Tests that nested loops do not run more often than a plan can represent.
#cpu = #sluice.at<device = "cpu">
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) {
    %y = sluice.loop "outer" 100000 times (%a = %x : tensor<2xf32, #cpu>) {
      // expected-error @+1 {{happens more than 2147483647 times in a call}}
      %b = sluice.loop "inner" 100000 times (%c = %a : tensor<2xf32, #cpu>) {
        sluice.next %c : tensor<2xf32, #cpu>
      }
      sluice.next %b : tensor<2xf32, #cpu>
    }
    sluice.return %y : tensor<2xf32, #cpu>
  }
}

// -----

// Tests that states are read outside of loops.
#cpu = #sluice.at<device = "cpu">
module {
  sluice.state slot @w : tensor<2xf32> = <"constant", 0.0 : f64> physical tensor<2xf32, #cpu>
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) {
    %y = sluice.loop "reads" 2 times (%a = %x : tensor<2xf32, #cpu>) {
      // expected-error @+1 {{cannot stand in a loop}}
      %w = sluice.get @w : tensor<2xf32, #cpu>
      sluice.next %w : tensor<2xf32, #cpu>
    }
    sluice.return %y : tensor<2xf32, #cpu>
  }
}

// -----

// Tests that no action in a loop runs on request of the host.
#cpu = #sluice.at<device = "cpu">
#acc0 = #sluice.at<device = "acc0">
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) {
    %y = sluice.loop "asked" 2 times (%a = %x : tensor<2xf32, #cpu>) {
      // expected-error @+1 {{cannot stand in a loop}}
      %b = sluice.copy %a output when asked : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
      sluice.next %a : tensor<2xf32, #cpu>
    }
    sluice.return %y : tensor<2xf32, #cpu>
  }
}

// -----

// Tests that the next value has the type of the carried value.
#cpu = #sluice.at<device = "cpu">
module {
  sluice.entry @predict ["x", "z"] -> ["y"] (%x: tensor<2xf32, #cpu>, %z: tensor<3xf32, #cpu>) {
    // expected-error @+1 {{is handed values of other types than its first ones}}
    %y = sluice.loop "other" 2 times (%a = %x : tensor<2xf32, #cpu>) {
      sluice.next %z : tensor<3xf32, #cpu>
    }
    sluice.return %y : tensor<2xf32, #cpu>
  }
}

// -----

// Tests that an exchange is between two accelerators.
#cpu = #sluice.at<device = "cpu">
#acc0 = #sluice.at<device = "acc0">
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32, #cpu>) {
    %a = sluice.copy %x input when step : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
    // expected-error @+1 {{is of values that are not on two accelerators}}
    %b, %y = sluice.exchange placement bytes 8, 8 per_row 0, 0
        in %x : tensor<2xf32, #cpu>
        in %a : tensor<2xf32, #acc0>
        out tensor<2xf32, #acc0>
        out tensor<2xf32, #cpu>
    sluice.return %y : tensor<2xf32, #cpu>
  }
}

// -----

// Tests that each result of an exchange is on the other value's device.
#cpu = #sluice.at<device = "cpu">
#acc0 = #sluice.at<device = "acc0">
#acc1 = #sluice.at<device = "acc1">
module {
  sluice.entry @predict ["x"] -> [] (%x: tensor<2xf32, #cpu>) {
    %a = sluice.copy %x input when step : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
    %b = sluice.copy %x input when step : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc1>
    // expected-error @+1 {{whose other device is}}
    %c, %d = sluice.exchange placement bytes 8, 8 per_row 0, 0
        in %a : tensor<2xf32, #acc0>
        in %b : tensor<2xf32, #acc1>
        out tensor<2xf32, #acc0>
        out tensor<2xf32, #acc1>
    sluice.return
  }
}

// -----

// Tests that a scheduled loop has the queues of its body.
#acc0 = #sluice.at<device = "acc0">
#acc1 = #sluice.at<device = "acc1">
module {
  sluice.state slot @w : tensor<2xf32> = <"constant", 0.0 : f64> physical tensor<2xf32, #acc0>
  sluice.entry @predict [] -> [] () {
    %w = sluice.get @w : tensor<2xf32, #acc0>
    // expected-error @+1 {{has other queues than what is in it}}
    %done = sluice.loop "quiet" 2 times on "acc0" () {
      %a, %sent = sluice.transfer placement step on "acc1.in" bytes 8 per_row 0
          in %w : tensor<2xf32, #acc0>
          out tensor<2xf32, #acc1>
      sluice.next
    }
    sluice.return
  }
}
