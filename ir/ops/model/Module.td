// The top of a module: the model, its devices, their queues and arenas.
#ifndef SLUICE_IR_OPS_MODULE
#define SLUICE_IR_OPS_MODULE

include "ir/Base.td"

def ModelOp : Sluice_Op<"model"> {
  let summary = "the name of the model, the format of the text, the last phase, and the settings of the module";
  let description = [{
    A module has at most one. Without it, there are no rows, and all attributes have their defaults.

    `capacity` is the largest number of rows of dimension `?` in a call; 0 if there is none. From phase `parallel` on,
    it is that of one replica, or of one of its microbatches.

    `entries` names the entry points to compile, without `init` and `metrics`, which follow from them; all by default.
    States that none of them uses are left out.

    In a `functional` model, entry points are functions of their inputs only. Phase `train` turns each state into an
    input and an output with the name of the state after "@". Constants remain states. `entries` may also select `init`,
    which then returns the first values of all states; otherwise, a selection leaves `init` out.

    `replicas` is the number of copies of the program that run together, each on a share of the rows of a call; 0 means
    one per launched process. From phase `parallel` on, `batch` is the largest number of rows of all replicas together.

    `microbatches` is the largest number of parts in which a replica processes its rows, each of up to `capacity` rows.

    `logical_shards` is the number of parts of the rows of a call for any number of replicas, so that this number
    changes no bit of a result; 0 if not requested. Replicas process equally many parts, as microbatches. Their sums are
    added in one balanced tree, ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)).

    `zero` is the level of ZeRO. At 1, each replica keeps and updates one shard of the optimizer states.

    `sync_batch_norm` selects batch norm statistics of all rows instead of those of each replica.

    `wire` is the dtype of gradient all-reduce, if narrower than the gradients.

    `in_flight` is the number of calls that may be in progress at once, and so the number of copies of a buffer that the
    next call fills during this one; 2 by default, set with the memory plan.

    `copies` is the policy for copies that pins require. `precision` is the dtype of products where the model has f32,
    from phase `train` on.

    `data` is the default training data. `values` is the safetensors file of states that begin with `data`; a relative
    path starts at the folder of this text.

    `least_training_rows` is the least number of rows of a call for which each batch norm has more than one value per
    channel in training.
  }];
  let arguments = (ins Arg<StrAttr, "its name in programs and files">:$name,
                       Arg<I64Attr, "the version of the text; incremented when its meaning changes">:$format,
                       Arg<StrAttr, "the last phase that ran">:$phase,
                       Arg<DefaultValuedAttr<I64Attr, "0">, "rows">:$capacity,
                       Arg<OptionalAttr<StrArrayAttr>, "the entry points to compile; all by default">:$entries,
                       Arg<UnitAttr, "states are inputs and outputs of entry points">:$functional,
                       Arg<OptionalAttr<I64Attr>, "calls in progress at once">:$in_flight,
                       Arg<OptionalAttr<Sluice_CopyPolicyAttr>, "explicit by default">:$copies,
                       Arg<OptionalAttr<Sluice_PrecisionAttr>, "f32 by default">:$precision,
                       Arg<DefaultValuedAttr<I64Attr, "1">, "copies of the program that run together">:$replicas,
                       Arg<OptionalAttr<I64Attr>, "rows over all replicas">:$batch,
                       Arg<DefaultValuedAttr<I64Attr, "1">, "parts of a call, one after another">:$microbatches,
                       Arg<DefaultValuedAttr<I64Attr, "0">,
                       "parts of a call, for any number of replicas">:$logical_shards,
                       Arg<DefaultValuedAttr<I64Attr, "0">, "the level of ZeRO: 0 or 1">:$zero,
                       Arg<UnitAttr, "batch norm uses the statistics of all rows">:$sync_batch_norm,
                       Arg<OptionalAttr<Sluice_PrecisionAttr>,
                       "dtype of gradient all-reduce; that of the gradients by default">:$wire,
                       Arg<OptionalAttr<StrAttr>, "a folder">:$data,
                       Arg<OptionalAttr<StrAttr>, "a file of initial values">:$values,
                       Arg<DefaultValuedAttr<I64Attr, "1">,
                       "the least number of rows of a training step, for the variances of batch "
                       "norm">:$least_training_rows);
  let assemblyFormat = [{
    $name `format` $format `phase` $phase (`capacity` $capacity^)? (`entries` $entries^)?
        (`functional` $functional^)? (`replicas` $replicas^)? (`batch` $batch^)? (`microbatches` $microbatches^)?
        (`logical_shards` $logical_shards^)? (`zero` $zero^)? (`sync_batch_norm` $sync_batch_norm^)?
        (`wire` custom<Word>($wire)^)? (`in_flight` $in_flight^)? (`copies` custom<Word>($copies)^)?
        (`precision` custom<Word>($precision)^)? (`data` $data^)? (`values` $values^)?
        (`least_training_rows` $least_training_rows^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// Whether `entries` selects an entry point.
    bool selects(::llvm::StringRef entry);
  }];
  let hasVerifier = 1;
}
def DeviceOp : Sluice_Op<"device"> {
  let summary = "a logical device, and the backend's device that it stands for";
  let description = [{
    The host is first, with the name cpu. Accelerators are acc0, acc1, and so on. A module without devices is for the
    host only. PyTorch: torch.device.
  }];
  let arguments = (ins Arg<StrAttr, "its name in types and pins">:$name,
                       Arg<StrAttr, "the name of its backend">:$backend,
                       Arg<I64Attr, "its number in the backend">:$ordinal,
                       Arg<OptionalAttr<DenseI64ArrayAttr>, "its numbers for the replicas after the first">:$replicas,
                       Arg<UnitAttr, "unplaced values go to it; to the host by default">:$first);
  let assemblyFormat = "$name `=` $backend $ordinal (`replicas` $replicas^)? (`first` $first^)? attr-dict";
}
def QueueOp : Sluice_Op<"queue"> {
  let summary = "a queue of a device, which runs its actions in order (torch.cuda.Stream)";
  let description = "Phase `scheduled` adds queues.";
  let arguments = (ins Arg<StrAttr, "its name in actions">:$name, Arg<StrAttr, "its device">:$device,
                       Arg<UnitAttr, "it only copies">:$copies,
                       Arg<UnitAttr, "it only communicates with other replicas">:$communicates);
  let assemblyFormat = "$name `on` $device (`copies` $copies^)? (`communicates` $communicates^)? attr-dict";
}
def ArenaOp : Sluice_Op<"arena"> {
  let summary = "an arena: memory of a device for one purpose";
  let description = [{
    Phase `planned` adds arenas. The name is that of the device, a dot, and the purpose. `state` lives as long as the
    instance. `transient` holds the values of a call. `constants` is part of the artifact.
  }];
  let arguments = (ins Arg<StrAttr, "its name in slots">:$name, Arg<StrAttr, "its device">:$device,
                       Arg<I64Attr, "its size in bytes">:$bytes,
                       Arg<OptionalAttr<I64Attr>, "the alignment of its slots in bytes; 64 by default">:$alignment);
  let assemblyFormat = "$name `on` $device `:` $bytes `bytes` (`aligned` $alignment^)? attr-dict";
}

#endif
