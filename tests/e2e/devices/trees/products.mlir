// Two consecutive products on one device in each iteration of a loop.
module @products {
  sluice.model "products" format 2 phase "train" capacity 4 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.state parameter @w : tensor<4x4xf32> = <"constant", 1.0 : f64>
  sluice.entry @step ["x"] -> ["y"] (%x: tensor<?x4xf32>) {
    %w = sluice.get @w : tensor<4x4xf32>
    %h = sluice.relu %x {sluice.pin = "acc0"} : (tensor<?x4xf32>) -> tensor<?x4xf32>
    %y = sluice.loop "products" 6 times (%a = %h : tensor<?x4xf32>) {
      %b = sluice.einsum "ab,bc->ac" %a, %w {sluice.pin = "acc0"} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
      %c = sluice.einsum "ab,cb->ac" %b, %w {sluice.pin = "acc0"} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
      sluice.next %c : tensor<?x4xf32>
    }
    sluice.return %y : tensor<?x4xf32>
  }
}
