# The loader and what is decided without a device are part of the runtime; the backend is a module of its own.
list(APPEND runtime_sources
  ${CMAKE_CURRENT_LIST_DIR}/activity_log.cpp
  ${CMAKE_CURRENT_LIST_DIR}/epilogues.cpp
  ${CMAKE_CURRENT_LIST_DIR}/loader.cpp
  ${CMAKE_CURRENT_LIST_DIR}/refusal.cpp
  ${CMAKE_CURRENT_LIST_DIR}/../nccl/launch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/../nccl/share_bytes.cpp)
list(APPEND runtime_depends ${CMAKE_DL_LIBS} ${TRIVIUM_FMT})
if(TRIVIUM_HAS_CUDA AND NOT TARGET trivium_cuda)
  add_subdirectory(${CMAKE_CURRENT_LIST_DIR} ${PROJECT_BINARY_DIR}/cuda_module)
endif()
