# Compiled into the runtime and, once more, into each communicator module.
set(reduction_sources ${CMAKE_CURRENT_LIST_DIR}/agreement.cpp ${CMAKE_CURRENT_LIST_DIR}/reduce.cpp)
# The loops over elements are worth vectors; without -ffast-math this does not change a result.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/reduce.cpp PROPERTIES COMPILE_OPTIONS -O3)
