# Text from a trained model.
list(APPEND runtime_sources
  ${CMAKE_CURRENT_LIST_DIR}/forward.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sample.cpp)
