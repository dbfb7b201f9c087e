list(APPEND simulator_sources
  placement/defaults.cpp placement/placed_cluster.cpp)
