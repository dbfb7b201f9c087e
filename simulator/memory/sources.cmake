list(APPEND simulator_sources
  memory/crowding.cpp memory/memory.cpp)
