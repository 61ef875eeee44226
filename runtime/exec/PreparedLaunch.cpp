#include "runtime/exec/PreparedLaunch.h"

namespace sluice::runtime {

static sluice_access accessOf(const Buffer &buffer) {
  switch (buffer.access) {
  case Access::read:
    return SLUICE_READ;
  case Access::write:
    return SLUICE_WRITE;
  case Access::readWrite:
    return SLUICE_READ_WRITE;
  }
  return SLUICE_READ_WRITE;
}

sluice_buffer bufferFor(const Buffer &buffer, const Devices &devices, int64_t call) {
  return {devices.address(buffer.slot, call), static_cast<size_t>(buffer.bytes), accessOf(buffer)};
}

PreparedLaunch::PreparedLaunch(const Launch &launch, const Plan &plan, const sluice_artifact &artifact,
                               const Devices &devices)
    : name_(&launch.name), kernel_(&plan.kernels[launch.kernel]) {
  for (const Stage &stage : kernel_->stages)
    stages_.push_back({artifact.stages[stage.function], 0});
  for (size_t parity : {0, 1}) {
    for (const Buffer &buffer : launch.buffers)
      buffers_[parity].push_back(bufferFor(buffer, devices, static_cast<int64_t>(parity)));
    sluice_launch &made = launches_[parity] = {};
    made.struct_size = sizeof made;
    made.name = name_->c_str();
    made.buffers = buffers_[parity].data();
    made.num_buffers = buffers_[parity].size();
    made.stages = stages_.data();
    made.num_stages = stages_.size();
    made.module = kernel_->module ? devices.module(kernel_->device, *kernel_->module) : nullptr;
    made.function = kernel_->function.empty() ? nullptr : kernel_->function.c_str();
    made.parameters = kernel_->parameters.data();
    made.parameters_bytes = kernel_->parameters.size();
    made.kind = kernel_->kind.c_str();
  }
}

void PreparedLaunch::setRows(int64_t rows) {
  rows_ = rows;
  for (size_t i = 0; i < stages_.size(); ++i)
    stages_[i].tasks = kernel_->stages[i].tasksFor(rows);
  for (sluice_launch &launch : launches_) {
    launch.rows = rows;
    launch.flops = kernel_->cost.flopsFor(rows);
    launch.bytes = kernel_->cost.bytesFor(rows);
  }
}

} // namespace sluice::runtime
