// Ops in loops, before placement, copies, layouts and fusion. They run on two devices, read values from outside the
// loop, and write a state and an output.
module @ops {
  sluice.model "ops" format 2 phase "train" capacity 4 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.state parameter @w : tensor<4x4xf32> = <"constant", 1.0 : f64>
  sluice.entry @step ["x"] -> ["y"] (%x: tensor<?x4xf32>) {
    %w = sluice.get @w : tensor<4x4xf32>
    %two = sluice.full {value = 2.0 : f64, type = tensor<?x4xf32>} : () -> tensor<?x4xf32>
    %h = sluice.relu %x {sluice.pin = "acc0"} : (tensor<?x4xf32>) -> tensor<?x4xf32>
    %r:2 = sluice.loop "outer" 2 times (%p = %h : tensor<?x4xf32>, %v = %w : tensor<4x4xf32>) {
      %m = sluice.einsum "ab,bc->ac" %p, %v {sluice.pin = "acc0"} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
      %q = sluice.loop "inner" 3 times (%a = %m : tensor<?x4xf32>) {
        %b = sluice.add %a, %two {sluice.pin = "acc0"} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
        %c = sluice.sub %b, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
        sluice.next %c : tensor<?x4xf32>
      }
      %u = sluice.sub %v, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %n = sluice.add %q, %two : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      sluice.next %n, %u : tensor<?x4xf32>, tensor<4x4xf32>
    }
    %y = sluice.add %r#0, %h : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %next = sluice.add %r#1, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    sluice.set @w, %next : tensor<4x4xf32>
    sluice.return %y : tensor<?x4xf32>
  }
}
