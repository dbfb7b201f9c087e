list(APPEND simulator_sources
  certainty/certainty.cpp certainty/error_model.cpp certainty/measured_errors.cpp
  certainty/measured_machine.cpp certainty/time_errors.cpp)
