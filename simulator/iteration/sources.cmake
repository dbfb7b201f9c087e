list(APPEND simulator_sources
  iteration/breakdown.cpp iteration/trace.cpp iteration/rounds.cpp)
