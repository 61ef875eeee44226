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

PreparedLaunch::PreparedLaunch(const Launch &launch, const Plan &plan, const sluice_artifact &artifact,
                               const Devices &devices)
    : kernel_(&plan.kernels[launch.kernel]) {
  for (const Buffer &buffer : launch.buffers)
    buffers_.push_back({static_cast<size_t>(buffer.bytes), accessOf(buffer)});
  for (int64_t copy = 0; copy < plan.inFlight; ++copy)
    for (const Buffer &buffer : launch.buffers)
      addresses_.push_back(devices.address(buffer.slot, copy));
  for (const Stage &stage : kernel_->stages)
    stages_.push_back({artifact.stages[stage.function], 0});
  launch_.struct_size = sizeof launch_;
  launch_.stages = stages_.data();
  launch_.num_stages = stages_.size();
  launch_.stage_size = sizeof(sluice_launch_stage);
  launch_.module = kernel_->module ? devices.module(kernel_->device, *kernel_->module) : nullptr;
  launch_.function = kernel_->function.empty() ? nullptr : kernel_->function.c_str();
  launch_.parameters = kernel_->parameters.data();
  launch_.parameters_bytes = kernel_->parameters.size();
  launch_.name = launch.name.c_str();
  launch_.kind = kernel_->kind.c_str();
  launch_.buffers = buffers_.data();
  launch_.num_buffers = buffers_.size();
  launch_.buffer_size = sizeof(sluice_buffer);
}

void PreparedLaunch::rebind(const Launch &launch, const Slot &slot, std::byte *address) {
  for (size_t i = 0; i < addresses_.size(); ++i)
    if (launch.buffers[i % launch.buffers.size()].slot == slot)
      addresses_[i] = address;
}

void PreparedLaunch::setRows(int64_t rows) {
  rows_ = rows;
  for (size_t i = 0; i < stages_.size(); ++i)
    stages_[i].tasks = kernel_->stages[i].tasksFor(rows);
  launch_.flops = kernel_->cost.flopsFor(rows);
  launch_.bytes = kernel_->cost.bytesFor(rows);
}

} // namespace sluice::runtime
