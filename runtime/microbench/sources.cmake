# Measurements of this machine that make its hardware profile.
list(APPEND runtime_sources
  ${CMAKE_CURRENT_LIST_DIR}/all_reduce_times.cpp
  ${CMAKE_CURRENT_LIST_DIR}/bench_jobs.cpp
  ${CMAKE_CURRENT_LIST_DIR}/core_sharing.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_times.cpp
  ${CMAKE_CURRENT_LIST_DIR}/link_times.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gpu_profile.cpp
  ${CMAKE_CURRENT_LIST_DIR}/host_link.cpp
  ${CMAKE_CURRENT_LIST_DIR}/profile.cpp
  ${CMAKE_CURRENT_LIST_DIR}/set_rates.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rate_fit.cpp
  ${CMAKE_CURRENT_LIST_DIR}/statistics.cpp)
