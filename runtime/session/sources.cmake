# What a run is: ranks that are started and watched over, and the training that each of them does.
list(APPEND runtime_sources
  ${CMAKE_CURRENT_LIST_DIR}/checkpointing.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gpu_ranks.cpp
  ${CMAKE_CURRENT_LIST_DIR}/own_network.cpp
  ${CMAKE_CURRENT_LIST_DIR}/record.cpp
  ${CMAKE_CURRENT_LIST_DIR}/relay.cpp
  ${CMAKE_CURRENT_LIST_DIR}/same_program.cpp
  ${CMAKE_CURRENT_LIST_DIR}/session.cpp
  ${CMAKE_CURRENT_LIST_DIR}/supervise.cpp
  ${CMAKE_CURRENT_LIST_DIR}/supervisor.cpp)
