// A loop over two accelerators: each of its five iterations sends one value and receives another. The sender may run
// ahead of the receiver, limited by the single send buffer. All numbers are small integers, so that the reference
// result is exact. The loop reads a state that is updated after it.
#acc0 = #sluice.at<device = "acc0">
#acc1 = #sluice.at<device = "acc1">
#cpu = #sluice.at<device = "cpu">
module @loop {
  sluice.model "loop" format 2 phase "fused" capacity 4 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.device "acc1" = "sim" 1
  sluice.state slot @w : tensor<6x4xf32> = <"constant", 0.0 : f64> physical tensor<6x4xf32, #acc0>
  sluice.entry @step ["x"] -> ["y", "z"] (%x: tensor<6x4xf32, #cpu>) {
    %w = sluice.get @w : tensor<6x4xf32, #acc0>
    %x0 = sluice.copy %x input when step {bytes = 96 : i64, bytes_per_row = 0 : i64} : (tensor<6x4xf32, #cpu>) -> tensor<6x4xf32, #acc0>
    %x1 = sluice.copy %x input when step {bytes = 96 : i64, bytes_per_row = 0 : i64} : (tensor<6x4xf32, #cpu>) -> tensor<6x4xf32, #acc1>
    %first = sluice.kernel "acc0_first" (%p = %x0 : tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #acc0> {
      %v = sluice.add %p, %p : (tensor<6x4xf32, #acc0>, tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #acc0>
      sluice.yield %v : tensor<6x4xf32, #acc0>
    }
    %far = sluice.kernel "acc0_far" (%p = %x0 : tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #acc0> {
      %v = sluice.neg %p : (tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #acc0>
      sluice.yield %v : tensor<6x4xf32, #acc0>
    }
    %r:3 = sluice.loop "bounce" 5 times
        (%a = %first : tensor<6x4xf32, #acc0>,
         %b = %x1 : tensor<6x4xf32, #acc1>,
         %c = %far : tensor<6x4xf32, #acc0>) {
      %k = sluice.kernel "acc0_add" (%p = %a : tensor<6x4xf32, #acc0>, %q = %w : tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #acc0> {
        %v = sluice.add %p, %q : (tensor<6x4xf32, #acc0>, tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #acc0>
        sluice.yield %v : tensor<6x4xf32, #acc0>
      }
      %t = sluice.copy %k placement when step {bytes = 96 : i64, bytes_per_row = 0 : i64} : (tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #acc1>
      %l = sluice.kernel "acc1_sub" (%p = %t : tensor<6x4xf32, #acc1>, %q = %b : tensor<6x4xf32, #acc1>) -> tensor<6x4xf32, #acc1> {
        %v = sluice.sub %p, %q : (tensor<6x4xf32, #acc1>, tensor<6x4xf32, #acc1>) -> tensor<6x4xf32, #acc1>
        sluice.yield %v : tensor<6x4xf32, #acc1>
      }
      %u = sluice.copy %l placement when step {bytes = 96 : i64, bytes_per_row = 0 : i64} : (tensor<6x4xf32, #acc1>) -> tensor<6x4xf32, #acc0>
      %m = sluice.kernel "acc0_join" (%p = %k : tensor<6x4xf32, #acc0>, %q = %a : tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #acc0> {
        %v = sluice.add %p, %q : (tensor<6x4xf32, #acc0>, tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #acc0>
        sluice.yield %v : tensor<6x4xf32, #acc0>
      }
      sluice.next %m, %l, %u : tensor<6x4xf32, #acc0>, tensor<6x4xf32, #acc1>, tensor<6x4xf32, #acc0>
    }
    %new = sluice.kernel "acc0_state" (%p = %r#2 : tensor<6x4xf32, #acc0>, %q = %w : tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #acc0> {
      %v = sluice.sub %p, %q : (tensor<6x4xf32, #acc0>, tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #acc0>
      sluice.yield %v : tensor<6x4xf32, #acc0>
    }
    %y = sluice.copy %r#1 output when asked {bytes = 96 : i64, bytes_per_row = 0 : i64} : (tensor<6x4xf32, #acc1>) -> tensor<6x4xf32, #cpu>
    %back = sluice.copy %r#0 pin when step {bytes = 96 : i64, bytes_per_row = 0 : i64} : (tensor<6x4xf32, #acc0>) -> tensor<6x4xf32, #cpu>
    %z = sluice.kernel "neg" (%p = %back : tensor<6x4xf32, #cpu>) -> tensor<6x4xf32, #cpu> {
      %v = sluice.neg %p : (tensor<6x4xf32, #cpu>) -> tensor<6x4xf32, #cpu>
      sluice.yield %v : tensor<6x4xf32, #cpu>
    }
    sluice.set @w, %new : tensor<6x4xf32, #acc0>
    sluice.return %y, %z : tensor<6x4xf32, #cpu>, tensor<6x4xf32, #cpu>
  }
}
