# The loader is part of the runtime; the communicator itself is a module of its own, so that nothing else needs MPI.
list(APPEND runtime_sources ${CMAKE_CURRENT_LIST_DIR}/loader.cpp)
list(APPEND runtime_depends ${CMAKE_DL_LIBS} ${TRIVIUM_FMT})
if(NOT TARGET trivium_mpi)
  add_subdirectory(${CMAKE_CURRENT_LIST_DIR} ${PROJECT_BINARY_DIR}/mpi_module)
endif()
