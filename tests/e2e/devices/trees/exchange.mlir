// Two accelerators exchange values once, and then three times in a loop, whose carried values swap places in each
// iteration.
#acc0 = #sluice.at<device = "acc0">
#acc1 = #sluice.at<device = "acc1">
#cpu = #sluice.at<device = "cpu">
module @exchange {
  sluice.model "exchange" format 2 phase "fused" capacity 4 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.device "acc1" = "sim" 1
  sluice.entry @step ["x", "v"] -> ["y", "z"] (%x: tensor<?x6xf32, #cpu>, %v: tensor<6x2xf32, #cpu>) {
    %x0 = sluice.copy %x input when step {bytes = 0 : i64, bytes_per_row = 24 : i64} : (tensor<?x6xf32, #cpu>) -> tensor<?x6xf32, #acc0>
    %v1 = sluice.copy %v input when step {bytes = 48 : i64, bytes_per_row = 0 : i64} : (tensor<6x2xf32, #cpu>) -> tensor<6x2xf32, #acc1>
    %f = sluice.kernel "acc0_double" (%p = %x0 : tensor<?x6xf32, #acc0>) -> tensor<?x6xf32, #acc0> {
      %s = sluice.add %p, %p : (tensor<?x6xf32, #acc0>, tensor<?x6xf32, #acc0>) -> tensor<?x6xf32, #acc0>
      sluice.yield %s : tensor<?x6xf32, #acc0>
    }
    %g = sluice.kernel "acc1_double" (%p = %v1 : tensor<6x2xf32, #acc1>) -> tensor<6x2xf32, #acc1> {
      %s = sluice.add %p, %p : (tensor<6x2xf32, #acc1>, tensor<6x2xf32, #acc1>) -> tensor<6x2xf32, #acc1>
      sluice.yield %s : tensor<6x2xf32, #acc1>
    }
    %f1, %g0 = sluice.exchange placement bytes 0, 48 per_row 24, 0
        in %f : tensor<?x6xf32, #acc0>
        in %g : tensor<6x2xf32, #acc1>
        out tensor<?x6xf32, #acc1>
        out tensor<6x2xf32, #acc0>
    %h = sluice.kernel "acc1_neg" (%p = %f1 : tensor<?x6xf32, #acc1>) -> tensor<?x6xf32, #acc1> {
      %s = sluice.neg %p : (tensor<?x6xf32, #acc1>) -> tensor<?x6xf32, #acc1>
      sluice.yield %s : tensor<?x6xf32, #acc1>
    }
    %r:2 = sluice.loop "swap" 3 times
        (%a = %f : tensor<?x6xf32, #acc0>,
         %b = %h : tensor<?x6xf32, #acc1>) {
      %b0, %a1 = sluice.exchange placement bytes 0, 0 per_row 24, 24
          in %b : tensor<?x6xf32, #acc1>
          in %a : tensor<?x6xf32, #acc0>
          out tensor<?x6xf32, #acc0>
          out tensor<?x6xf32, #acc1>
      %c = sluice.kernel "acc0_add" (%p = %b0 : tensor<?x6xf32, #acc0>, %q = %a : tensor<?x6xf32, #acc0>) -> tensor<?x6xf32, #acc0> {
        %s = sluice.add %p, %q : (tensor<?x6xf32, #acc0>, tensor<?x6xf32, #acc0>) -> tensor<?x6xf32, #acc0>
        sluice.yield %s : tensor<?x6xf32, #acc0>
      }
      sluice.next %c, %a1 : tensor<?x6xf32, #acc0>, tensor<?x6xf32, #acc1>
    }
    %m = sluice.kernel "acc1_join" (%p = %r#1 : tensor<?x6xf32, #acc1>, %q = %h : tensor<?x6xf32, #acc1>) -> tensor<?x6xf32, #acc1> {
      %s = sluice.sub %p, %q : (tensor<?x6xf32, #acc1>, tensor<?x6xf32, #acc1>) -> tensor<?x6xf32, #acc1>
      sluice.yield %s : tensor<?x6xf32, #acc1>
    }
    %n = sluice.kernel "acc0_neg" (%p = %g0 : tensor<6x2xf32, #acc0>) -> tensor<6x2xf32, #acc0> {
      %s = sluice.neg %p : (tensor<6x2xf32, #acc0>) -> tensor<6x2xf32, #acc0>
      sluice.yield %s : tensor<6x2xf32, #acc0>
    }
    %y = sluice.copy %m output when asked {bytes = 0 : i64, bytes_per_row = 24 : i64} : (tensor<?x6xf32, #acc1>) -> tensor<?x6xf32, #cpu>
    %z = sluice.copy %n output when asked {bytes = 48 : i64, bytes_per_row = 0 : i64} : (tensor<6x2xf32, #acc0>) -> tensor<6x2xf32, #cpu>
    sluice.return %y, %z : tensor<?x6xf32, #cpu>, tensor<6x2xf32, #cpu>
  }
}
