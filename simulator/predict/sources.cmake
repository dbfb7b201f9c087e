list(APPEND simulator_sources
  predict/in_rounds.cpp predict/predict.cpp predict/prepare.cpp predict/simulate.cpp)
