# The switches that CMake has names for, and the names that this project had for them before 0.2.0, which go on working:
# what they were set to becomes the value of the new name, once. Include before options are set.
if(PROJECT_IS_TOP_LEVEL)
  foreach(pair "TRIVIUM_UNITY CMAKE_UNITY_BUILD" "TRIVIUM_WERROR CMAKE_COMPILE_WARNING_AS_ERROR" "TRIVIUM_TESTS BUILD_TESTING")
    separate_arguments(pair)
    list(GET pair 0 old)
    list(GET pair 1 new)
    if(NOT DEFINED CACHE{${old}})
      continue()
    endif()
    if(NOT DEFINED CACHE{${new}})
      set(${new} ${${old}} CACHE BOOL "Was ${old}")
      message(STATUS "${old} is now ${new}, which was set to ${${old}}")
    endif()
    unset(${old} CACHE)
  endforeach()
endif()

# Only libraries and tests are written for unity builds, and warnings are errors only where warnings are chosen: both
# are properties of those targets (TriviumTargets.cmake), and not the default of all others.
set(trivium_unity "${CMAKE_UNITY_BUILD}")
set(trivium_warnings_are_errors "${CMAKE_COMPILE_WARNING_AS_ERROR}")
set(CMAKE_UNITY_BUILD OFF)
set(CMAKE_COMPILE_WARNING_AS_ERROR OFF)
