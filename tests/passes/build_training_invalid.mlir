// RUN: sluice-opt %s --split-input-file --verify-diagnostics --sluice-build-entry-points

// Tests that invalid optimizers, parameters, rates, groups, clips, schedules, loss scales and updated values are
// rejected.

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{names no optimizer: 3}}
    sluice.minimize %loss, 3 lr @lr [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{trains what is no parameter: @lr}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@lr] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{names no learning rate: @rate}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @rate [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{has what is no group of parameters: @w}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [] groups [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{trains a parameter twice: @w}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] groups [#sluice.parameter_group<parameters = [@w], optimizer = #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false>, lr_factor = 1.0 : f64>] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{names no clip of gradients: 1}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] clip [1] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{names no schedule: 7}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr schedule 7 [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{step_size is a number of steps, from 1 to 2^31 - 1, not 0}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr schedule #sluice.step_lr<step_size = 0, gamma = 0.5 : f64> [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{T_max is a number of steps, from 1 to 2^31 - 1, not -1}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr schedule #sluice.cosine_annealing_lr<T_max = -1, eta_min = 0.0 : f64> [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{total_iters is a number of steps, from 1 to 2^31 - 1, not 2147483648}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr schedule #sluice.linear_lr<start_factor = 0.5 : f64, end_factor = 1.0 : f64, total_iters = 2147483648> [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{names no schedule: 3}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr schedule #sluice.sequential_lr<schedulers = [3], milestones = []> [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{has 1 milestones between 1 schedules}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr schedule #sluice.sequential_lr<schedulers = [#sluice.step_lr<step_size = 1, gamma = 0.5 : f64>], milestones = [4]> [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{has a milestone 4 that is not after 4}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr schedule #sluice.sequential_lr<schedulers = [#sluice.step_lr<step_size = 1, gamma = 0.5 : f64>, #sluice.step_lr<step_size = 1, gamma = 0.5 : f64>, #sluice.step_lr<step_size = 1, gamma = 0.5 : f64>], milestones = [4, 4]> [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{has a milestone 0 that is not after 0}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr schedule #sluice.sequential_lr<schedulers = [#sluice.step_lr<step_size = 1, gamma = 0.5 : f64>, #sluice.step_lr<step_size = 1, gamma = 0.5 : f64>], milestones = [0]> [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{a milestone is a number of steps, from 1 to 2^31 - 1, not 2147483648}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr schedule #sluice.sequential_lr<schedulers = [#sluice.step_lr<step_size = 1, gamma = 0.5 : f64>, #sluice.step_lr<step_size = 1, gamma = 0.5 : f64>], milestones = [2147483648]> [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{init_scale is a positive number that f32 holds, not 0.0}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = 0.0 : f64, growth_factor = 2.0 : f64, backoff_factor = 0.5 : f64, growth_interval = 2000> : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{init_scale is a positive number that f32 holds, not 1.0}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = 1.0e39 : f64, growth_factor = 2.0 : f64, backoff_factor = 0.5 : f64, growth_interval = 2000> : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{init_scale is a positive number that f32 holds, not -1.0}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = -1.0 : f64, growth_factor = 2.0 : f64, backoff_factor = 0.5 : f64, growth_interval = 2000> : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{init_scale is a positive number that f32 holds, not}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = 0x7FF8000000000000 : f64, growth_factor = 2.0 : f64, backoff_factor = 0.5 : f64, growth_interval = 2000> : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{growth_factor is a number from 1 on, not 5.0}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = 65536.0 : f64, growth_factor = 0.5 : f64, backoff_factor = 0.5 : f64, growth_interval = 2000> : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{growth_factor is a number from 1 on, not INF}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = 65536.0 : f64, growth_factor = 0x7FF0000000000000 : f64, backoff_factor = 0.5 : f64, growth_interval = 2000> : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{backoff_factor is between 0 and 1, not 0.0}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = 65536.0 : f64, growth_factor = 2.0 : f64, backoff_factor = 0.0 : f64, growth_interval = 2000> : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{backoff_factor is between 0 and 1, not 1.0}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = 65536.0 : f64, growth_factor = 2.0 : f64, backoff_factor = 1.0 : f64, growth_interval = 2000> : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{growth_interval is a number of steps, from 1 to 2^31 - 1, not 0}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = 65536.0 : f64, growth_factor = 2.0 : f64, backoff_factor = 0.5 : f64, growth_interval = 0> : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{growth_interval is a number of steps, from 1 to 2^31 - 1, not 2147483648}}
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = 65536.0 : f64, growth_factor = 2.0 : f64, backoff_factor = 0.5 : f64, growth_interval = 2147483648> : tensor<f32>
  }
}

// -----

module {
  // expected-error@+1 {{'loss_scale' is reserved for the scale of the loss; choose another name}}
  sluice.state parameter @loss_scale : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %y = sluice.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = 65536.0 : f64, growth_factor = 2.0 : f64, backoff_factor = 0.5 : f64, growth_interval = 2000> : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<f32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph [] () {
    %w = sluice.get @w : tensor<f32>
    // expected-error@+1 {{the loss depends on the value that its own update leaves}}
    %next = sluice.updated %w : tensor<f32>
    %loss = sluice.mul %w, %next : (tensor<f32>, tensor<f32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}

// -----

module {
  sluice.state parameter @w : tensor<f32> = <"constant", 1.0 : f64>
  sluice.state parameter @v : tensor<f32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph [] () {
    %w = sluice.get @w : tensor<f32>
    %v = sluice.get @v : tensor<f32>
    sluice.minimize %w, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
    // expected-error@+1 {{is of a value that is no parameter which the graph's minimize trains}}
    %next = sluice.updated %v : tensor<f32>
  }
}
