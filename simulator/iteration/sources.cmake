list(APPEND simulator_sources
  iteration/breakdown.cpp iteration/in_rounds.cpp iteration/played.cpp iteration/rounds.cpp)
