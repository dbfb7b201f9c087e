list(APPEND simulator_sources
  certainty/certainty.cpp certainty/error_model.cpp certainty/measured_errors.cpp)
