// What stands at the top of a module: the model, its devices, their queues and arenas.
#ifndef SLUICE_IR_OPS_MODULE
#define SLUICE_IR_OPS_MODULE

include "ir/Base.td"

def ModelOp : Sluice_Op<"model"> {
  let summary = "the model's name, the format of this text, the last phase that ran, and what holds for the whole module";
  let description = [{
    `capacity` is how many rows the dimension `?` may have, 0 if there is none; `in_flight` how many calls may be under way at once, so how often a
    buffer exists that the next call fills during this one: 2 unless it says otherwise, written down with the memory plan; `copies` what becomes of copies that pins need; `precision` what
    products compute in where the model says f32, from `train` on; `replicas` how many of this program run together, each on a share of the rows of a call, 0 for as many as processes are launched, from
    `parallel` on, when `batch` is how many rows they may have together and `capacity` how many each; `microbatches` in how many a replica does its rows at most, each of up to `capacity` rows; `logical_shards` into how many parts the rows of a call are cut for any number of replicas, so that this changes no bit of a result, 0 if nobody asks for that: each replica does as many of them as the others, as microbatches, and their sums are added in one balanced tree, ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)), of which it has a part; `zero` the stage of ZeRO: at 1 each replica keeps and updates a shard of what the optimizer keeps; `sync_batch_norm` that statistics are then those of all rows; `wire` what gradients are reduced in over replicas where that is narrower than they are; `least_training_rows` the least number of rows of a call for which each batch norm has more than one value per channel in training; `data` the folder to train on by default; `values` the safetensors file, beside this text unless its path is absolute, that has what states begin with whose `init` is data. A module has at most one; without it there are no rows, and everything else is as nobody said.
  }];
  let arguments = (ins Arg<StrAttr, "as programs and files say it">:$name, Arg<I64Attr, "of this text; incremented when its meaning changes">:$format,
                       Arg<StrAttr, "the last phase that ran">:$phase, Arg<DefaultValuedAttr<I64Attr, "0">, "rows">:$capacity,
                       Arg<OptionalAttr<I64Attr>, "calls under way at once">:$in_flight,
                       Arg<OptionalAttr<Sluice_CopyPolicyAttr>, "explicit unless it says otherwise">:$copies, Arg<OptionalAttr<Sluice_PrecisionAttr>, "f32 unless it says otherwise">:$precision,
                       Arg<DefaultValuedAttr<I64Attr, "1">, "of the program that run together">:$replicas, Arg<OptionalAttr<I64Attr>, "rows over all replicas">:$batch, Arg<DefaultValuedAttr<I64Attr, "1">, "of a call that a replica does one after another">:$microbatches, Arg<DefaultValuedAttr<I64Attr, "0">, "of a call, for any number of replicas">:$logical_shards, Arg<DefaultValuedAttr<I64Attr, "0">, "of ZeRO: 0 or 1">:$zero,
                       Arg<UnitAttr, "batch norm has the statistics of all rows, not of each replica's">:$sync_batch_norm,
                       Arg<OptionalAttr<Sluice_PrecisionAttr>, "of gradients between replicas; as they are unless it says otherwise">:$wire, Arg<OptionalAttr<StrAttr>, "a folder">:$data, Arg<OptionalAttr<StrAttr>, "a file of initial values">:$values,
                       Arg<DefaultValuedAttr<I64Attr, "1">, "least number of rows of a training step, for the variances of batch norm">:$least_training_rows);
  let assemblyFormat = [{
    $name `format` $format `phase` $phase (`capacity` $capacity^)? (`replicas` $replicas^)? (`batch` $batch^)? (`microbatches` $microbatches^)? (`logical_shards` $logical_shards^)? (`zero` $zero^)? (`sync_batch_norm` $sync_batch_norm^)? (`wire` custom<Word>($wire)^)? (`in_flight` $in_flight^)? (`copies` custom<Word>($copies)^)? (`precision` custom<Word>($precision)^)? (`data` $data^)? (`values` $values^)? (`least_training_rows` $least_training_rows^)? attr-dict
  }];
  let hasVerifier = 1;
}
def DeviceOp : Sluice_Op<"device"> {
  let summary = "a logical device, and the backend's that it is";
  let description = "The host is first and called cpu; accelerators are acc0, acc1, and so on. A module without any is for the host alone.";
  let arguments = (ins Arg<StrAttr, "as types and pins say it">:$name, Arg<StrAttr, "whose device it is">:$backend, Arg<I64Attr, "which of the backend's">:$ordinal, Arg<OptionalAttr<DenseI64ArrayAttr>, "which ones it is for the replicas behind the first">:$replicas,
                       Arg<UnitAttr, "unplaced values go to it; to the host if no device says so">:$first);
  let assemblyFormat = "$name `=` $backend $ordinal (`replicas` $replicas^)? (`first` $first^)? attr-dict";
}
def QueueOp : Sluice_Op<"queue"> {
  let summary = "a queue of a device: it does its actions one after another";
  let description = "Phase `scheduled` adds it.";
  let arguments = (ins Arg<StrAttr, "as actions say it">:$name, Arg<StrAttr, "whose">:$device, Arg<UnitAttr, "it copies, and computes nothing">:$copies, Arg<UnitAttr, "it communicates with other replicas, and computes nothing">:$communicates);
  let assemblyFormat = "$name `on` $device (`copies` $copies^)? (`communicates` $communicates^)? attr-dict";
}
def ArenaOp : Sluice_Op<"arena"> {
  let summary = "memory of a device: `state` lives as long as the instance, `transient` is one call's, `constants` are the artifact's own";
  let description = "Phase `planned` adds it. Its name is the device, a dot, and what it is for.";
  let arguments = (ins Arg<StrAttr, "as slots say it">:$name, Arg<StrAttr, "whose memory">:$device, Arg<I64Attr, "its size">:$bytes,
                       Arg<OptionalAttr<I64Attr>, "what slots in it are multiples of; 64 if it is not said">:$alignment);
  let assemblyFormat = "$name `on` $device `:` $bytes `bytes` (`aligned` $alignment^)? attr-dict";
}

#endif
