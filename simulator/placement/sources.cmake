list(APPEND simulator_sources
  placement/defaults.cpp placement/peer_buffers.cpp placement/placed_cluster.cpp)
