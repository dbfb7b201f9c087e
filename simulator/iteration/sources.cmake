list(APPEND simulator_sources
  iteration/breakdown.cpp iteration/mfu_text.cpp iteration/trace.cpp iteration/rounds.cpp)
