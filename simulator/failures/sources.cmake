list(APPEND simulator_sources failures/checkpoint_size.cpp failures/goodput.cpp)
