list(APPEND runtime_sources
  executor/amax_history.cpp
  executor/arenas.cpp
  executor/collect.cpp
  executor/training_schedule.cpp
  executor/disk_arena.cpp
  executor/documents.cpp
  executor/dropout.cpp
  executor/exchange.cpp
  executor/host_facts.cpp
  executor/initialise.cpp
  executor/lane_order.cpp
  executor/library_facts.cpp
  executor/loss_scale.cpp
  executor/rank_executor.cpp
  executor/replay.cpp
  executor/run_collective.cpp
  executor/spikes.cpp
  executor/step_loop.cpp
  executor/step_timeline.cpp
  executor/train.cpp
  executor/wire.cpp)
set_source_files_properties(executor/host_facts.cpp PROPERTIES
  COMPILE_DEFINITIONS TRIVIUM_MATRIX_LIBRARY="Eigen ${Eigen3_VERSION}")
