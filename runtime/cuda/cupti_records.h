// CUPTI's buffers of activity records, read into a log. Needs cupti.h, not the library.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

#include "runtime/cuda/activity_log.h"

namespace trivium::runtime::cuda {

using NextRecord = CUptiResult (*)(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record);

/// Kernels, copies, fills and tags; records of other kinds are passed over. `next`: cuptiActivityGetNextRecord. The
/// oldest layouts are named that later ones only append to, so that CUDA 12 and 13 are read alike.
inline void read_records(std::uint8_t* buffer, std::size_t valid, NextRecord next, ActivityLog& log) {
  const auto add = [&](const auto* r) { log.add_work(r->correlationId, {r->start, r->end}); };
  CUpti_Activity* record = nullptr;
  while (next(buffer, valid, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        add(reinterpret_cast<const CUpti_ActivityKernel4*>(record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        add(reinterpret_cast<const CUpti_ActivityMemcpy4*>(record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMSET:
        add(reinterpret_cast<const CUpti_ActivityMemset3*>(record));
        break;
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto* tag = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
        log.add_tag(tag->correlationId, tag->externalId);
        break;
      }
      default:
        break;
    }
  }
}

}  // namespace trivium::runtime::cuda
