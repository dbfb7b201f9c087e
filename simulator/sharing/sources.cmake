list(APPEND simulator_sources
  sharing/max_min.cpp sharing/shared_links.cpp)
