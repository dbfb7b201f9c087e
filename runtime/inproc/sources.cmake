# Threads as ranks, and the rank-ordered arithmetic they share with the MPI module.
list(APPEND runtime_sources
  ${CMAKE_CURRENT_LIST_DIR}/cores.cpp
  ${CMAKE_CURRENT_LIST_DIR}/group.cpp
  ${CMAKE_CURRENT_LIST_DIR}/hub.cpp
  ${CMAKE_CURRENT_LIST_DIR}/thread_communicator.cpp
  ${CMAKE_CURRENT_LIST_DIR}/threads.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transfers.cpp)
include(${CMAKE_CURRENT_LIST_DIR}/../reduction/sources.cmake)
list(APPEND runtime_sources ${reduction_sources})
