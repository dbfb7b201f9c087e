list(APPEND simulator_sources
  studies/checkpoint_size.cpp studies/goodput.cpp studies/link_use.cpp studies/uncertainty.cpp
  studies/whole_training.cpp)
