list(APPEND runtime_sources
  executor/arenas.cpp
  executor/collect.cpp
  executor/disk_arena.cpp
  executor/exchange.cpp
  executor/initialise.cpp
  executor/lane_order.cpp
  executor/pin.cpp
  executor/rank_executor.cpp
  executor/train.cpp)
