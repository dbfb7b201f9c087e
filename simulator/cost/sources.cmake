list(APPEND simulator_sources
  cost/attention.cpp cost/compute_cost.cpp cost/copy_cost.cpp cost/core_sharing.cpp
  cost/costed_program.cpp cost/flops.cpp cost/fp8.cpp cost/gemm.cpp cost/issue.cpp cost/lanes.cpp
  cost/op_rate.cpp cost/part_work.cpp cost/supported.cpp
  cost/transformer_engine.cpp)
