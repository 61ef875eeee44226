// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points | FileCheck %s

// Tests that Adam stores its averages. Its corrections are scalars computed once per step from the number of earlier
// steps. The decay of AdamW is not in the gradient.
// CHECK-LABEL: module @adam
module @adam {
  // CHECK: sluice.state parameter @w
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step
  // CHECK-DAG: %[[STEP:.+]] = sluice.get @step
  // CHECK-DAG: %[[RATE:.+]] = sluice.get @lr
  // CHECK-DAG: %[[W:.+]] = sluice.get @w :
  // CHECK-DAG: %[[M:.+]] = sluice.get @w.exp_avg :
  // CHECK: sluice.set @step
  // CHECK: %[[KEPT:.+]] = sluice.sub %{{.+}}, %{{.+}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[ALL:.+]] = sluice.expand %[[KEPT]]
  // CHECK: %[[DECAYED:.+]] = sluice.mul %[[W]], %[[ALL]]
  // CHECK: sluice.sub %{{.+}}, %[[M]]
  // CHECK: %[[NOW:.+]] = sluice.add %[[STEP]]
  // CHECK: %[[T:.+]] = sluice.cast %[[NOW]] {{.*}} : (tensor<i32>) -> tensor<f32>
  // CHECK: %[[H:.+]] = sluice.mul %[[T]]
  // CHECK: sluice.tanh %[[H]] : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[BIAS:.+]] = sluice.div
  // CHECK: %[[SIZE:.+]] = sluice.div %[[RATE]], %[[BIAS]]
  // CHECK: sluice.expand %[[SIZE]]
  // CHECK: %[[NEW:.+]] = sluice.sub %[[DECAYED]]
  // CHECK: sluice.set @w, %[[NEW]]
  // CHECK: sluice.set @w.exp_avg,
  // CHECK: sluice.set @w.exp_avg_sq,
  // CHECK: sluice.state step @step : tensor<i32>
  // CHECK: sluice.state slot @w.exp_avg : tensor<3xf32>
  // CHECK: sluice.state slot @w.exp_avg_sq : tensor<3xf32>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.adam<beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.01 : f64, decoupled_weight_decay = true, amsgrad = false> lr @lr [@w] : tensor<f32>
  }
}

// -----

// Tests that two-byte floats are widened before arithmetic, and rounded when stored.
// CHECK-LABEL: module @halves
module @halves {
  sluice.state parameter @w : tensor<3xbf16> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step
  // CHECK: sluice.sqrt %{{.+}} : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK: %[[NEW:.+]] = sluice.cast %{{.+}} : (tensor<3xf32>) -> tensor<3xbf16>
  // CHECK: %[[SQUARE:.+]] = sluice.cast %{{.+}} : (tensor<3xf32>) -> tensor<3xbf16>
  // CHECK-NOT: sluice.cast
  // CHECK: sluice.set @w, %[[NEW]]
  // CHECK: sluice.set @w.square_avg, %[[SQUARE]]
  // CHECK: sluice.state slot @w.square_avg : tensor<3xbf16>
  sluice.graph ["x"] (%x: tensor<3xbf16>) {
    %w = sluice.get @w : tensor<3xbf16>
    %y = sluice.mul %x, %w : (tensor<3xbf16>, tensor<3xbf16>) -> tensor<3xbf16>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xbf16>) -> tensor<bf16>
    sluice.minimize %loss, #sluice.rmsprop<alpha = 0.9 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64, momentum = 0.0 : f64, centered = false> lr @lr [@w] : tensor<bf16>
  }
}

// -----

// Tests that the norm covers all gradients in parameter order, those of groups after the others. Values are clipped
// before the norm is computed; a group has its own rate; and the average uses the new parameter.
// CHECK-LABEL: module @clipped
module @clipped {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @b : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step ["x"] -> ["loss"] (%[[X:.+]]: tensor<3xf32>
  // CHECK-DAG: %[[RATE:.+]] = sluice.get @lr
  // CHECK-DAG: %[[W:.+]] = sluice.get @w :
  // CHECK-DAG: %[[B:.+]] = sluice.get @b :
  // CHECK: sluice.compare
  // CHECK: %[[GB:.+]] = sluice.where
  // CHECK: sluice.compare
  // CHECK: %[[DB:.+]] = sluice.where
  // CHECK: sluice.compare
  // CHECK: sluice.where
  // CHECK: sluice.compare
  // CHECK: %[[DW:.+]] = sluice.where
  // CHECK: %[[BB:.+]] = sluice.mul %[[DB]], %[[DB]]
  // CHECK: %[[SB:.+]] = sluice.sum %[[BB]] {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  // CHECK: %[[WW:.+]] = sluice.mul %[[DW]], %[[DW]]
  // CHECK: %[[SW:.+]] = sluice.sum %[[WW]] {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  // CHECK: %[[ALL:.+]] = sluice.add %[[SB]], %[[SW]] : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[NORM:.+]] = sluice.sqrt %[[ALL]]
  // CHECK: %[[MORE:.+]] = sluice.add %[[NORM]]
  // CHECK: sluice.div %{{.+}}, %[[MORE]]
  // CHECK: sluice.mul %[[DB]]
  // CHECK: sluice.mul %[[DW]]
  // CHECK: %[[NEWB:.+]] = sluice.sub %[[B]]
  // CHECK: sluice.set @b, %[[NEWB]]
  // CHECK: sluice.where %{{.+}}, %[[NEWB]]
  // CHECK: sluice.set @b.ema
  // CHECK: sluice.mul %[[RATE]]
  // CHECK: %[[NEWW:.+]] = sluice.sub %[[W]]
  // CHECK: sluice.set @w, %[[NEWW]]
  // CHECK: sluice.set @w.ema
  // CHECK: sluice.state slot @b.ema
  // CHECK: sluice.state slot @w.ema
  // CHECK: sluice.entry @eval_step
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %b = sluice.get @b : tensor<3xf32>
    %p = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %y = sluice.mul %p, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@b] groups [#sluice.parameter_group<parameters = [@w], optimizer = #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false>, lr_factor = 0.5 : f64>] clip [#sluice.clip_grad_value<clip_value = 0.5 : f64>, #sluice.clip_grad_norm<max_norm = 1.0 : f64>] ema <decay = 0.9 : f64> : tensor<f32>
  }
}

// -----

// Tests that, with gradients on several devices, each term of a clip is copied to the device of the sum, and the sum to
// its consumers. A schedule runs on the parameter's device.
// CHECK-LABEL: module @devices
module @devices {
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @v : tensor<2xf32> = <"constant", 1.0 : f64> physical tensor<2xf32, #sluice.at<device = "acc0">>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step
  // CHECK: %[[SW:.+]] = sluice.sum {{.*}} -> tensor<f32>
  // CHECK: %[[TW:.+]] = sluice.copy %[[SW]] to : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[SV:.+]] = sluice.sum {{.*}} -> tensor<f32, [[ACC:#acc0_?]]>
  // CHECK: %[[TV:.+]] = sluice.copy %[[SV]] to : (tensor<f32, [[ACC]]>) -> tensor<f32>
  // CHECK: %[[ALL:.+]] = sluice.add %[[TW]], %[[TV]] : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[ANYWHERE:.+]] = sluice.copy %[[ALL]] to : (tensor<f32>) -> tensor<f32>
  // CHECK: sluice.sqrt %[[ANYWHERE]] : (tensor<f32>) -> tensor<f32>
  // CHECK: sluice.sqrt %[[ANYWHERE]] : (tensor<f32>) -> tensor<f32, [[ACC]]>
  // CHECK: sluice.pow {{.*}} -> tensor<f32>
  // CHECK: sluice.pow {{.*}} -> tensor<f32, [[ACC]]>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %w = sluice.get @w : tensor<2xf32>
    %v = sluice.get @v : tensor<2xf32, #sluice.at<device = "acc0">>
    %e = sluice.exp %w : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.mul %e, %v : (tensor<2xf32>, tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %loss = sluice.mean %y {axes = array<i64: 0>} : (tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<f32, #sluice.at<device = "acc0">>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr schedule #sluice.step_lr<step_size = 3, gamma = 0.5 : f64> [@w, @v] clip [#sluice.clip_grad_norm<max_norm = 1.0 : f64>] : tensor<f32, #sluice.at<device = "acc0">>
  }
}

// -----

// Tests that a parameter with two reads is read once, and trained with the sum of both gradients.
// CHECK-LABEL: module @twice
module @twice {
  // CHECK: sluice.state parameter @w : tensor<3xf32> = <"constant", {{.+}}> also ["head.weight"]
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64> also ["head.weight"]
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step
  // CHECK: %[[W:.+]] = sluice.get @w :
  // CHECK-NOT: sluice.get @w :
  // CHECK: sluice.mul %{{.+}}, %[[W]]
  // CHECK: sluice.mul %{{.+}}, %[[W]]
  // CHECK: %[[SUM:.+]] = sluice.add %{{.+}}, %{{.+}} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  // CHECK: sluice.sub %[[W]]
  // CHECK: sluice.set @w,
  // CHECK: sluice.entry @eval_step
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %again = sluice.get @w : tensor<3xf32>
    %z = sluice.mul %y, %again : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %z {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}

// -----

// Tests that the scaled loss is differentiated. Gradients are tested before they are divided by the scale; clips use
// the quotients. The optimizer's states, including the number of steps, are unchanged if a gradient is not finite.
// CHECK-LABEL: module @scaled
module @scaled {
  // CHECK: sluice.state parameter @w
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step
  // CHECK-DAG: %[[W:.+]] = sluice.get @w : tensor<3xf32>
  // CHECK-DAG: %[[M:.+]] = sluice.get @w.momentum_buffer
  // CHECK-DAG: %[[A:.+]] = sluice.get @w.ema
  // CHECK-DAG: %[[STEP:.+]] = sluice.get @step
  // CHECK-DAG: %[[SCALE:.+]] = sluice.get @loss_scale : tensor<f32>
  // CHECK-DAG: %[[GOOD:.+]] = sluice.get @loss_scale.good_steps : tensor<i32>
  // CHECK: %[[SEED:.+]] = sluice.mul %{{.+}}, %[[SCALE]] : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: sluice.expand %[[SEED]]
  // CHECK: %[[G:.+]] = sluice.mul %{{.+}}, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  // CHECK: %[[SIZE:.+]] = sluice.abs %[[G]]
  // CHECK: %[[NONE:.+]] = sluice.mul %[[SIZE]]
  // CHECK: %[[SUM:.+]] = sluice.sum %[[NONE]]
  // CHECK: %[[INVERSE:.+]] = sluice.div %{{.+}}, %[[SCALE]]
  // CHECK: %[[FACTOR:.+]] = sluice.where %{{.+}}, %[[INVERSE]],
  // CHECK: %[[ALL:.+]] = sluice.expand %[[FACTOR]]
  // CHECK: %[[UNSCALED:.+]] = sluice.mul %[[G]], %[[ALL]]
  // CHECK: sluice.mul %[[UNSCALED]], %[[UNSCALED]]
  // CHECK: %[[COUNTED:.+]] = sluice.add %[[STEP]]
  // CHECK: %[[KEPTSTEP:.+]] = sluice.where %{{.+}}, %[[COUNTED]], %[[STEP]] : (tensor<i1>
  // CHECK: sluice.set @step, %[[KEPTSTEP]]
  // CHECK: %[[EACH:.+]] = sluice.expand %{{.+}} -> tensor<3xi1>
  // CHECK: %[[KEPT:.+]] = sluice.where %[[EACH]], %{{.+}}, %[[W]]
  // CHECK: sluice.set @w, %[[KEPT]]
  // CHECK: %[[KEPTSLOT:.+]] = sluice.where %{{.+}}, %{{.+}}, %[[M]]
  // CHECK: sluice.set @w.momentum_buffer, %[[KEPTSLOT]]
  // CHECK: %[[KEPTAVERAGE:.+]] = sluice.where %{{.+}}, %{{.+}}, %[[A]]
  // CHECK: sluice.set @w.ema, %[[KEPTAVERAGE]]
  // CHECK: %[[FINITE:.+]] = sluice.compare %[[SUM]], %{{.+}} {predicate = #sluice<predicate eq>}
  // CHECK: %[[MORE:.+]] = sluice.add %[[GOOD]]
  // CHECK: %[[LONG:.+]] = sluice.compare %[[MORE]], %{{.+}} {predicate = #sluice<predicate ge>}
  // CHECK: %[[GROWN:.+]] = sluice.mul %[[SCALE]]
  // CHECK: %[[HOLDS:.+]] = sluice.compare %[[GROWN]], %{{.+}} {predicate = #sluice<predicate lt>}
  // CHECK: %[[HELD:.+]] = sluice.where %[[HOLDS]], %[[GROWN]], %[[SCALE]]
  // CHECK: %[[ON:.+]] = sluice.where %[[LONG]], %[[HELD]], %[[SCALE]]
  // CHECK: %[[BACK:.+]] = sluice.mul %[[SCALE]]
  // CHECK: %[[NEXT:.+]] = sluice.where %[[FINITE]], %[[ON]], %[[BACK]]
  // CHECK: sluice.set @loss_scale, %[[NEXT]]
  // CHECK: sluice.set @loss_scale.good_steps,
  // CHECK: sluice.state step @loss_scale : tensor<f32> = <"constant", 1.024000e+03 : f64>
  // CHECK: sluice.state step @loss_scale.good_steps : tensor<i32> = <"constant", 0.000000e+00 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %w, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] clip [#sluice.clip_grad_norm<max_norm = 1.0 : f64>] ema <decay = 0.9 : f64> loss_scale <init_scale = 1024.0 : f64, growth_factor = 2.0 : f64, backoff_factor = 0.5 : f64, growth_interval = 5> : tensor<f32>
  }
}

// -----

// Tests that the scale is on the loss's device. The finiteness test of gradients on several devices is summed once, and
// copied to its consumers.
// CHECK-LABEL: module @scaled_devices
module @scaled_devices {
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @v : tensor<2xf32> = <"constant", 1.0 : f64> physical tensor<2xf32, #sluice.at<device = "acc0">>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  // CHECK: sluice.entry @train_step
  // CHECK: %[[SCALE:.+]] = sluice.get @loss_scale : tensor<f32, [[ACC:#acc0_?]]>
  // CHECK: %[[TW:.+]] = sluice.copy %{{.+}} to : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[TV:.+]] = sluice.copy %{{.+}} to : (tensor<f32, [[ACC]]>) -> tensor<f32>
  // CHECK: %[[SUM:.+]] = sluice.add %[[TW]], %[[TV]]
  // CHECK: %[[ANYWHERE:.+]] = sluice.copy %[[SUM]] to : (tensor<f32>) -> tensor<f32>
  // CHECK: sluice.compare %[[ANYWHERE]], {{.*}} -> tensor<i1>
  // CHECK: sluice.set @w
  // CHECK: sluice.compare %[[ANYWHERE]], {{.*}} -> tensor<i1, [[ACC]]>
  // CHECK: sluice.set @v
  // CHECK: sluice.compare %[[ANYWHERE]], {{.*}} -> tensor<i1, [[ACC]]>
  // CHECK: sluice.set @loss_scale, %{{.+}} : tensor<f32, [[ACC]]>
  // CHECK: sluice.state step @loss_scale : tensor<f32> = {{.*}} physical tensor<f32, [[ACC]]>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %w = sluice.get @w : tensor<2xf32>
    %v = sluice.get @v : tensor<2xf32, #sluice.at<device = "acc0">>
    %e = sluice.exp %w : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.mul %e, %v : (tensor<2xf32>, tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %loss = sluice.mean %y {axes = array<i64: 0>} : (tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<f32, #sluice.at<device = "acc0">>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w, @v] loss_scale <init_scale = 1024.0 : f64, growth_factor = 2.0 : f64, backoff_factor = 0.5 : f64, growth_interval = 5> : tensor<f32, #sluice.at<device = "acc0">>
  }
}

// -----

// Tests that a training step returns no loss if the model does not report it, and that the number of steps is on the
// device of the rate.
// CHECK-LABEL: module @unreported
// CHECK: sluice.entry @train_step ["x"] -> [] (
// CHECK: sluice.set @w
// CHECK: sluice.return{{$}}
// CHECK: sluice.state step @step : tensor<i32> = {{.*}} physical tensor<i32, #acc0_>
// CHECK: sluice.entry @eval_step ["x"] -> ["loss"]
module @unreported {
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64> physical tensor<2xf32, #sluice.at<device = "acc0">>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64> physical tensor<f32, #sluice.at<device = "acc0">>
  sluice.graph ["x"] (%x: tensor<2xf32, #sluice.at<device = "acc0">>) {
    %w = sluice.get @w : tensor<2xf32, #sluice.at<device = "acc0">>
    %y = sluice.mul %w, %x : (tensor<2xf32, #sluice.at<device = "acc0">>, tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<f32, #sluice.at<device = "acc0">>
    sluice.minimize %loss, #sluice.adam<beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.01 : f64, decoupled_weight_decay = true, amsgrad = false> lr @lr [@w] {sluice.unreported} : tensor<f32, #sluice.at<device = "acc0">>
  }
}
